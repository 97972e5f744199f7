# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=--param=max-inline-insns-single=200 --param=max-inline-insns-auto=30
"""Collectives whose parts have different lengths.  All are one exchange: each rank puts up what it has for the others, in as
many pieces as its longest part asks for, and takes from each what is meant for it.

    rank 0 puts up   | lengths | for 0 .. | for 1 .... | for 2 . |        step 1
                     |         |          | for 1 ..   |         |        step 2

Only the sender knows how long its parts are, so the lengths stand before them.  What a rank puts up as its length is that of
its longest part: from those of all ranks, everyone knows how many steps there are.
"""
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.stdint cimport uint64_t

from ompy.core.convertor cimport Convertor
from ompy.core.typemap cimport Typemap

from ompy_coll_sm.agreement cimport too_long
from ompy_coll_sm.area cimport SHORT
from ompy_coll_sm.memory cimport convertor_for, load, store


cdef class Parts:
    """One side of an exchange: memory for each rank, or (`width` 1) one part for all of them."""
    cdef int width
    cdef size_t *addresses
    cdef size_t *lengths                         # bytes
    cdef list convertors

    def __cinit__(self, int width):
        self.width = width
        self.convertors = [None] * width
        self.addresses = <size_t *> PyMem_Calloc(width, sizeof(size_t))
        self.lengths = <size_t *> PyMem_Calloc(width, sizeof(size_t))
        if self.addresses == NULL or self.lengths == NULL:
            raise MemoryError()

    def __dealloc__(self):
        PyMem_Free(self.addresses)
        PyMem_Free(self.lengths)

    cdef int set(self, int index, size_t address, Py_ssize_t count, Typemap typemap) except -1:
        self.addresses[index] = address
        self.lengths[index] = count * typemap.size
        self.convertors[index] = convertor_for(address, count, typemap)
        return 0

    cdef int set_all(self, size_t address, Py_ssize_t *counts, Py_ssize_t *displacements, Typemap typemap) except -1:
        """One part after the other, or where the displacements say."""
        cdef int index
        cdef Py_ssize_t elements = 0
        for index in range(self.width):
            self.set(index, address + (elements if displacements == NULL else displacements[index]) * typemap.extent,
                     counts[index], typemap)
            elements += counts[index]
        return 0

    cdef int set_types(self, size_t address, Py_ssize_t *counts, Py_ssize_t *displacements, list types) except -1:
        """Displacements in bytes."""
        cdef int index
        for index in range(self.width):
            self.set(index, address + (0 if displacements == NULL else displacements[index]), counts[index],
                     <Typemap> types[index])
        return 0

    cdef size_t longest(self) noexcept:
        cdef int index
        cdef size_t found = 0
        for index in range(self.width):
            found = max(found, self.lengths[index])
        return found


cdef inline size_t piece_of_part(Area area, int width, size_t longest) noexcept:
    """Bytes of each part that go in one step: all, if they are short."""
    cdef size_t table = width * sizeof(uint64_t)
    if table + width * longest <= SHORT:
        return longest
    return min(longest, (area.chunk - table) // width & ~<size_t> 7)


cdef inline size_t bytes_of_step(int width, size_t piece) noexcept:
    return width * (sizeof(uint64_t) + piece)


cdef int exchange(Area area, Parts out, Parts into, bint skip_own) except -1:
    """`into` has a part for each rank.  `skip_own`: this rank's is there already."""
    cdef int width = out.width
    cdef int mine = 0 if width == 1 else area.rank           # whose part of a contribution is this rank's
    cdef size_t piece = piece_of_part(area, width, out.longest()), their_piece
    cdef size_t step = 0, steps = 1, length
    cdef uint64_t *table
    cdef char *place
    cdef int index, rank, cut = -1
    cdef size_t cut_length = 0
    cdef Parts longest = Parts(area.size)                    # `lengths`: of each rank's longest part
    longest.lengths[area.rank] = out.longest()
    while step < steps:
        if step == 0 or step * piece < longest.lengths[area.rank]:
            table = <uint64_t *> area.claim(bytes_of_step(width, piece))
            place = <char *> (table + width)
            for index in range(width):
                table[index] = out.lengths[index]
                if step * piece < out.lengths[index]:
                    load(out.addresses[index], <Convertor> out.convertors[index], step * piece, place + index * piece,
                         min(piece, out.lengths[index] - step * piece))
            area.put_up(longest.lengths[area.rank])
        else:
            area.step += 1
        if step == 0:
            for rank in range(area.size):
                if rank != area.rank:
                    longest.lengths[rank] = area.length_of(rank)
                their_piece = piece_of_part(area, width, longest.lengths[rank])
                if longest.lengths[rank] > their_piece:
                    steps = max(steps, (longest.lengths[rank] + their_piece - 1) // their_piece)
            area.met()
        for rank in range(area.size):
            their_piece = piece_of_part(area, width, longest.lengths[rank])
            if (rank == area.rank and skip_own) or step * their_piece >= longest.lengths[rank]:
                continue
            table = <uint64_t *> area.look_at(rank, bytes_of_step(width, their_piece))
            length = table[mine]
            if length > into.lengths[rank]:
                cut, cut_length, length = rank, length, into.lengths[rank]
            if step * their_piece < length:
                store(into.addresses[rank], <Convertor> into.convertors[rank], step * their_piece,
                      <char *> (table + width) + mine * their_piece, min(their_piece, length - step * their_piece))
        area.end()
        step += 1
    if cut >= 0:
        raise too_long(cut, cut_length, into.lengths[cut])
    return 0


cdef int gatherv(Area area, CollectiveCall call) except -1:
    cdef Parts out = Parts(area.size), into = Parts(area.size)
    cdef bint in_place = area.rank == call.root and call.send_in_place
    if not in_place:
        out.set(call.root, call.send_address, call.send_count, call.send_type)
    if area.rank == call.root:
        into.set_all(call.recv_address, call.recv_counts, call.recv_displacements, call.recv_type)
    return exchange(area, out, into, in_place)


cdef int scatterv(Area area, CollectiveCall call) except -1:
    cdef Parts out = Parts(area.size), into = Parts(area.size)
    cdef bint in_place = area.rank == call.root and call.recv_in_place
    if area.rank == call.root:
        out.set_all(call.send_address, call.send_counts, call.send_displacements, call.send_type)
    if not in_place:
        into.set(call.root, call.recv_address, call.recv_count, call.recv_type)
    return exchange(area, out, into, in_place)


cdef int allgatherv(Area area, CollectiveCall call) except -1:
    cdef Parts out = Parts(1), into = Parts(area.size)
    into.set_all(call.recv_address, call.recv_counts, call.recv_displacements, call.recv_type)
    if call.send_in_place:
        out.set(0, into.addresses[area.rank], call.recv_counts[area.rank], call.recv_type)
    else:
        out.set(0, call.send_address, call.send_count, call.send_type)
    return exchange(area, out, into, call.send_in_place)


cdef int alltoallv(Area area, CollectiveCall call) except -1:
    cdef Parts out = Parts(area.size), into = Parts(area.size)
    into.set_all(call.recv_address, call.recv_counts, call.recv_displacements, call.recv_type)
    if call.send_in_place:
        out.set_all(call.recv_address, call.recv_counts, call.recv_displacements, call.recv_type)
    else:
        out.set_all(call.send_address, call.send_counts, call.send_displacements, call.send_type)
    return exchange(area, out, into, call.send_in_place)


cdef int alltoallw(Area area, CollectiveCall call) except -1:
    cdef Parts out = Parts(area.size), into = Parts(area.size)
    into.set_types(call.recv_address, call.recv_counts, call.recv_displacements, call.recv_types)
    if call.send_in_place:
        out.set_types(call.recv_address, call.recv_counts, call.recv_displacements, call.recv_types)
    else:
        out.set_types(call.send_address, call.send_counts, call.send_displacements, call.send_types)
    return exchange(area, out, into, call.send_in_place)
