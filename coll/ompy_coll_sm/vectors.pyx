# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=--param=max-inline-insns-single=200 --param=max-inline-insns-auto=30
"""Collectives whose parts have different lengths.  From all to all they are one exchange: each rank puts up what it has for the
others, in as many pieces as its longest part asks for, and takes from each what is meant for it.

    rank 0 puts up   | lengths | for 0 .. | for 1 .... | for 2 . |        step 1
                     |         |          | for 1 ..   |         |        step 2

Only the sender knows how long its parts are, so the lengths stand before them.  What a rank puts up as its length is that of
its longest part: from those of all ranks, everyone knows how many steps there are.

From the root, it alone puts up, and the others take as many steps as it does.  To the root, each rank puts up its part alone
and goes on, so nobody learns how many steps another's would take: there is one, and longer parts are sent as messages.
"""
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.stdint cimport uint64_t

from ompy.core.basic cimport BASIC_BYTE
from ompy.core.communicator cimport Communicator
from ompy.core.convertor cimport Convertor
from ompy.core.schedule cimport Schedule, recycle, take_schedule
from ompy.core.typemap cimport Typemap, predefined

from ompy_coll_sm.agreement cimport slot, too_long
from ompy_coll_sm.area cimport LINE, SHORT
from ompy_coll_sm.exchange cimport copy_own
from ompy_coll_sm.memory cimport convertor_for, load, store

cdef Typemap byte = predefined(BASIC_BYTE)

# Bytes of a part to the root; longer ones are no later as messages.
cdef enum:
    LONGEST_PUT_UP = 32768


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

    cdef size_t longest(self, int owner) noexcept:
        """Of those that are put up."""
        cdef int index
        cdef size_t found = 0
        for index in range(self.width):
            if self.width == 1 or index != owner:
                found = max(found, self.lengths[index])
        return found


cdef inline int parts_of(int width) noexcept:
    """How many are put up: one for all, or one for each other rank."""
    return width - 1 if width > 1 else 1


cdef inline size_t in_lines(size_t nbytes) noexcept:
    return (nbytes + LINE - 1) & ~<size_t> (LINE - 1)


cdef inline size_t steps_of(size_t longest, size_t piece) noexcept:
    return 1 if longest <= piece else (longest + piece - 1) // piece


cdef inline size_t table_of(int width, size_t piece) noexcept:
    """Bytes of the lengths, and up to where the parts begin: long ones are copied sooner from line to line."""
    cdef size_t table = width * sizeof(uint64_t)
    return table if table + parts_of(width) * piece <= SHORT else in_lines(table)


cdef inline size_t piece_of_part(Area area, int width, size_t longest) noexcept:
    """Bytes of each part that go in one step.

    All, if they are short.  Of longer ones a power of two, as long parts often are a multiple of one, and the same on every
    rank with more than one step: who exchanges in place takes no more in a step than it has put up.
    """
    cdef size_t table = width * sizeof(uint64_t), most = sizeof(uint64_t)
    while 2 * most * width + in_lines(table) <= area.chunk:
        most *= 2
    if longest > most:
        return most
    return longest if table + parts_of(width) * longest <= SHORT else min(in_lines(longest), most)


cdef inline size_t bytes_of_step(int width, size_t piece) noexcept:
    return table_of(width, piece) + parts_of(width) * piece


cdef inline char *part_for(char *table, int width, size_t piece, int rank, int owner) noexcept:
    """Where in its owner's contribution a rank's part stands."""
    return table + table_of(width, piece) + (slot(rank, owner) * piece if width > 1 else 0)


cdef int load_parts(Parts out, char *table, size_t piece, size_t offset, int owner) except -1:
    """What the others get in one step, and the lengths before it."""
    cdef int index
    for index in range(out.width):
        (<uint64_t *> table)[index] = out.lengths[index]
        if offset < out.lengths[index] and (out.width == 1 or index != owner):
            load(out.addresses[index], <Convertor> out.convertors[index], offset,
                 part_for(table, out.width, piece, index, owner), min(piece, out.lengths[index] - offset))
    return 0


cdef int exchange(Area area, Parts out, Parts into, bint skip_own) except -1:
    """`into` has a part for each rank.  `skip_own`: this rank's is there already."""
    cdef int width = out.width
    cdef int mine = 0 if width == 1 else area.rank           # whose part of a contribution is this rank's
    cdef size_t piece = piece_of_part(area, width, out.longest(area.rank)), their_piece
    cdef size_t step = 0, steps = 1, length
    cdef char *table
    cdef int rank, cut = -1
    cdef size_t cut_length = 0
    cdef Parts longest = Parts(area.size)                    # `lengths`: of each rank's longest part
    longest.lengths[area.rank] = out.longest(area.rank)
    if not skip_own:
        length = out.lengths[mine]
        if length > into.lengths[area.rank]:
            cut, cut_length, length = area.rank, length, into.lengths[area.rank]
        copy_own(out.addresses[mine], <Convertor> out.convertors[mine], into.addresses[area.rank],
                 <Convertor> into.convertors[area.rank], length)
    while step < steps:
        if step == 0 or step * piece < longest.lengths[area.rank]:
            load_parts(out, area.claim(bytes_of_step(width, piece)), piece, step * piece, area.rank)
            area.put_up(longest.lengths[area.rank])
        else:
            area.step += 1
        if step == 0:
            for rank in range(area.size):
                if rank != area.rank:
                    longest.lengths[rank] = area.length_of(rank)
                their_piece = piece_of_part(area, width, longest.lengths[rank])
                steps = max(steps, steps_of(longest.lengths[rank], their_piece))
            area.met()
        for rank in range(area.size):
            their_piece = piece_of_part(area, width, longest.lengths[rank])
            if rank == area.rank or step * their_piece >= longest.lengths[rank]:
                continue
            table = area.look_at(rank, bytes_of_step(width, their_piece))
            length = (<const uint64_t *> table)[mine]
            if length > into.lengths[rank]:
                cut, cut_length, length = rank, length, into.lengths[rank]
            if step * their_piece < length:
                store(into.addresses[rank], <Convertor> into.convertors[rank], step * their_piece,
                      part_for(table, width, their_piece, area.rank, rank), min(their_piece, length - step * their_piece))
        area.end()
        step += 1
    if cut >= 0:
        raise too_long(cut, cut_length, into.lengths[cut])
    return 0


cdef int gatherv(Area area, CollectiveCall call, Communicator comm, int operation) except -1:
    """The root sees everyone; the others see nobody."""
    cdef Schedule messages = take_schedule(comm, operation)
    cdef size_t most = min(area.chunk, <size_t> LONGEST_PUT_UP), nbytes
    messages.buffer = call
    if area.rank == call.root:
        gather_parts(area, call, messages, most)
        return recycle(messages)
    nbytes = call.send_count * call.send_type.size
    if nbytes <= most:
        load(call.send_address, convertor_for(call.send_address, call.send_count, call.send_type), 0, area.claim(nbytes),
             nbytes)
        area.put_up(nbytes)
        area.end()
    else:
        area.claim(0)
        area.put_up(nbytes)
        area.end()
        messages.send(call.send_address, call.send_count, call.send_type, call.root)
        messages.run()
    return recycle(messages)


cdef int gather_parts(Area area, CollectiveCall call, Schedule messages, size_t most) except -1:
    """A part that is too long is received whole all the same, and its beginning kept: an error would give up the messages of
    the others, which wait until they are received."""
    cdef Parts into = Parts(area.size)
    cdef int rank, cut = -1
    cdef size_t length, cut_length = 0
    cdef dict whole = {}
    into.set_all(call.recv_address, call.recv_counts, call.recv_displacements, call.recv_type)
    area.claim(0)
    for rank in range(area.size):
        if rank == area.rank:
            length = into.lengths[rank] if call.send_in_place else call.send_count * call.send_type.size
        else:
            length = area.length_of(rank)
        if length > into.lengths[rank]:
            cut, cut_length = rank, length
        if rank == area.rank:
            if not call.send_in_place:
                copy_own(call.send_address, convertor_for(call.send_address, call.send_count, call.send_type),
                         into.addresses[rank], <Convertor> into.convertors[rank], min(length, into.lengths[rank]))
        elif length <= most:
            store(into.addresses[rank], <Convertor> into.convertors[rank], 0, area.place(rank, length),
                  min(length, into.lengths[rank]))
        elif length > into.lengths[rank]:
            whole[rank] = messages.scratch(length, byte)
            messages.recv(whole[rank], length, byte, rank)
        else:
            messages.recv(into.addresses[rank], call.recv_counts[rank], call.recv_type, rank)
    area.met()
    area.end()
    if messages.length:
        messages.run()
    for rank in whole:
        store(into.addresses[rank], <Convertor> into.convertors[rank], 0, <char *> <size_t> whole[rank], into.lengths[rank])
    if cut >= 0:
        raise too_long(cut, cut_length, into.lengths[cut])
    return 0


cdef int scatterv(Area area, CollectiveCall call) except -1:
    """The others see the root; it sees nobody."""
    cdef size_t room = call.recv_count * call.recv_type.size, step = 0, steps = 1, longest, piece, length
    cdef Convertor received
    cdef char *table
    if area.rank == call.root:
        return scatter_parts(area, call)
    received = convertor_for(call.recv_address, call.recv_count, call.recv_type)
    while step < steps:
        area.step += 1
        longest = area.length_of(call.root)
        piece = piece_of_part(area, area.size, longest)
        steps = steps_of(longest, piece)
        table = area.place(call.root, bytes_of_step(area.size, piece))
        length = (<const uint64_t *> table)[area.rank]
        if step * piece < min(length, room):
            store(call.recv_address, received, step * piece, part_for(table, area.size, piece, area.rank, call.root),
                  min(piece, min(length, room) - step * piece))
        area.end()
        step += 1
    if length > room:
        raise too_long(call.root, length, room)
    return 0


cdef int scatter_parts(Area area, CollectiveCall call) except -1:
    cdef Parts out = Parts(area.size)
    cdef size_t step, longest, piece, length, room
    cdef int own = area.rank
    out.set_all(call.send_address, call.send_counts, call.send_displacements, call.send_type)
    longest = out.longest(area.rank)
    piece = piece_of_part(area, area.size, longest)
    for step in range(steps_of(longest, piece)):
        load_parts(out, area.claim(bytes_of_step(area.size, piece)), piece, step * piece, own)
        area.put_up(longest)
        area.end()
    length = out.lengths[own]
    if call.recv_in_place:
        return 0
    room = call.recv_count * call.recv_type.size
    copy_own(out.addresses[own], <Convertor> out.convertors[own], call.recv_address,
             convertor_for(call.recv_address, call.recv_count, call.recv_type), min(length, room))
    if length > room:
        raise too_long(own, length, room)
    return 0


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
