# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Collectives among processes of one host, through shared memory.

Each is a few steps of the pattern in `area.pxd`.  A reduction of ranks 0 to 3 is always a0 op (a1 op (a2 op a3)), whoever
came first, so results are the same on every rank and in every run.  What does not fit a slot goes in pieces:

    bcast of 3 pieces     root     put up 1   put up 2   put up 3
                          others              look at 1  look at 2  look at 3
"""
from libc.string cimport memcpy

from ompy.core.basic cimport BASIC_BYTE
from ompy.core.board import OPERATIONS
from ompy.core.convertor cimport Convertor
from ompy.core.doorbell cimport own as own_doorbell
from ompy.core.errors import ERR_TRUNCATE, MPIError
from ompy.core.segment cimport Segment, attach, create
from ompy.core.typemap cimport predefined
from ompy.mca.coll import FUNCTIONS
from ompy.mca.coll cimport (
    ALLGATHER, ALLREDUCE, ALLTOALL, BARRIER, BCAST, EXSCAN, FUNCTION_COUNT, GATHER, INTERFACE, REDUCE,
    REDUCE_SCATTER_BLOCK, SCAN, SCATTER,
)

from ompy_coll_sm.area cimport CARD_SIZE, LINE, SHORT, bytes_needed
from ompy_coll_sm.memory cimport convertor_for, load, store

interface = INTERFACE

# What the job board calls each function.
cdef int operations[FUNCTION_COUNT]
for function, name in enumerate(FUNCTIONS):
    operations[function] = OPERATIONS.index(name.capitalize())


class SharedMemory:
    """The one algorithm of this component, for those who list algorithms."""

    name = "shared_memory"
    summary = "contributions are put up in shared memory, where each rank looks at those it needs"


cdef inline size_t piece_of(size_t total, size_t limit) noexcept:
    """Bytes of each piece of a contribution: all of a short one."""
    return total if total <= SHORT else limit


cdef inline size_t whole(size_t limit, Py_ssize_t size) noexcept:
    """The largest multiple of an element's size."""
    return limit - limit % size


cdef int fold(Area area, char *target, const char *last, size_t offset, size_t own_address, size_t nbytes, size_t whole_step,
              int first, int count, Typemap typemap, Operation operation) except -1:
    """Reduce ranks `first` to `first + count - 1` into target, rightmost first.

    Parameters:
        last: contribution of the last of them.
        offset: of the bytes wanted in each contribution.
        own_address: of this rank's contribution when it was not put up, else 0.
        nbytes: wanted.
        whole_step: bytes of a contribution, which say where it stands.
    """
    cdef int rank
    cdef char *input
    memcpy(target, last + offset, nbytes)
    for rank in range(first + count - 2, first - 1, -1):
        input = <char *> own_address if own_address and rank == area.rank else area.look_at(rank, whole_step)
        operation.reduce(input + offset, target, nbytes // typemap.size, typemap)
    return 0


cdef class SmModule(CollModule):
    """The collectives of one communicator whose processes share a host.

    Parameters:
        chunk: bytes of a piece of a long contribution.
        spins: rounds of looking before a wait is the progress engine's.
        crowded: ranks outnumber cores.
        backing: of the shared memory, as `ompy.core.segment.create` has it.
    """

    def __init__(self, size_t chunk, int spins, bint crowded, str backing not None):
        super().__init__("sm")
        self.chunk = chunk & ~<size_t> (LINE - 1)
        self.spins = spins
        self.crowded = crowded
        self.backing = backing

    cdef bint serves(self, int function, CollectiveCall call, Communicator comm) except -1:
        """The same answer on every rank: it depends on what MPI wants to be equal there."""
        cdef Typemap typemap
        if self.unusable:
            return False
        if function in (REDUCE, ALLREDUCE, REDUCE_SCATTER_BLOCK, SCAN, EXSCAN):
            typemap = call.recv_type if call.send_in_place or function == REDUCE_SCATTER_BLOCK else call.send_type
            return call.operation.predefined and typemap.basic >= 0 and typemap.contiguous and typemap.size <= LINE
        return True

    cpdef int run(self, int function, CollectiveCall call, Communicator comm) except -1:
        """Carry the collective out; returns when this rank's part is done."""
        cdef Area area = self.area
        if not self.serves(function, call, comm):
            return self.hand_on(function, call, comm)
        if area is None:
            self.set_up(comm)
            area = self.area
            if area is None:
                return self.hand_on(function, call, comm)
        area.shown.operation = operations[function]
        if function == ALLREDUCE:
            return self.allreduce(area, call)
        if function == BARRIER:
            return self.barrier(area)
        if function == BCAST:
            return self.bcast(area, call)
        if function == REDUCE:
            return self.reduce(area, call)
        if function == ALLGATHER:
            return self.allgather(area, call)
        if function == ALLTOALL:
            return self.alltoall(area, call)
        if function == GATHER:
            return self.gather(area, call)
        if function == SCATTER:
            return self.scatter(area, call)
        if function == REDUCE_SCATTER_BLOCK:
            return self.reduce_scatter_block(area, call)
        return self.scan(area, call, function == SCAN)

    cpdef int free(self) except -1:
        """The communicator is gone."""
        if self.area is not None:
            self.area.close()
            self.area = None
        return 0

    def explain(self, int function, Communicator comm not None, Py_ssize_t nbytes, bint commutative=True):
        """[(algorithm, whether it would serve, when it is taken)]: this component has one for each function."""
        return [(SharedMemory, not self.unusable, "wherever operations are predefined")]

    # -- setting up -----------------------------------------------------------------------------------------------

    cdef int set_up(self, Communicator comm) except -1:
        """Share memory, all ranks together, with the help of the module that stands behind this one."""
        cdef Segment segment = None
        cdef bytearray told = bytearray(CARD_SIZE)
        size = bytes_needed(comm.size, self.chunk)
        if comm.rank == 0:
            try:
                segment = create("ompy-coll", size, self.backing)
                location = segment.location()
                told[: len(location)] = location
            except MPIError:
                segment = None
        self.tell(comm, told)
        location = bytes(told).rstrip(b"\0")
        if comm.rank != 0 and location:
            try:
                segment = attach(location, size)
            except MPIError:
                segment = None
        cards = self.exchange(comm, b"" if segment is None else own_doorbell().card())
        if segment is not None:
            segment.seal()
        if not all(cards):
            self.unusable = True
            if segment is not None:
                segment.close()
            return 0
        self.area = Area(segment, comm, self.chunk, self.spins, self.crowded)
        return self.area.connect(cards)

    def tell(self, Communicator comm, bytearray data):
        """Rank 0's bytes to everyone."""
        cdef CollectiveCall call = CollectiveCall()
        call.send_address = call.recv_address = <size_t> <char *> data
        call.send_count = call.recv_count = len(data)
        call.send_type = call.recv_type = predefined(BASIC_BYTE)
        call.owner = data
        self.hand_on(BCAST, call, comm)

    def exchange(self, Communicator comm, bytes card):
        """Everyone's card to everyone."""
        cdef CollectiveCall call = CollectiveCall()
        cdef bytearray mine = bytearray(card.ljust(CARD_SIZE, b"\0"))
        cdef bytearray everyone = bytearray(CARD_SIZE * comm.size)
        call.send_address = <size_t> <char *> mine
        call.recv_address = <size_t> <char *> everyone
        call.send_count = call.recv_count = CARD_SIZE
        call.send_type = call.recv_type = predefined(BASIC_BYTE)
        call.owner = (mine, everyone)
        self.hand_on(ALLGATHER, call, comm)
        return [bytes(everyone[at : at + CARD_SIZE]).rstrip(b"\0") for at in range(0, len(everyone), CARD_SIZE)]

    cdef int meet(self, Area area, size_t total) except -1:
        """Every rank's contribution is there and of this length; otherwise all ranks find out here and stop alike."""
        cdef int rank, other = -1
        for rank in range(area.size):
            if area.length_of(rank) != total:
                other = rank
        area.met()
        if other >= 0:
            length = area.slot(other).length
            area.end()
            raise MPIError(ERR_TRUNCATE, f"rank {other} has {length} bytes in this collective, rank {area.rank} has {total}")
        return 0

    # -- without arithmetic ---------------------------------------------------------------------------------------

    cdef int barrier(self, Area area) except -1:
        cdef int rank
        area.claim(0)
        area.put_up(0)
        for rank in range(area.size):
            if rank != area.rank:
                area.look_at(rank, 0)
        area.met()
        return area.end()

    cdef int bcast(self, Area area, CollectiveCall call) except -1:
        """The others take as many steps as the root's data ask for, whatever they have room for."""
        cdef Convertor convertor = convertor_for(call.send_address, call.send_count, call.send_type)
        cdef size_t room = call.send_count * call.send_type.size, total = room, offset = 0, nbytes, piece
        while True:
            if area.rank == call.root:
                piece = piece_of(total, area.chunk)
                nbytes = min(piece, total - offset)
                load(call.send_address, convertor, offset, area.claim(piece), nbytes)
                area.put_up(total)
            else:
                area.step += 1
                total = area.length_of(call.root)
                piece = piece_of(total, area.chunk)
                nbytes = min(piece, total - offset)
                if offset < room:
                    store(call.send_address, convertor, offset, area.place(call.root, piece), min(nbytes, room - offset))
            area.end()
            offset += nbytes
            if offset >= total:
                break
        if total > room:
            raise too_long(call.root, total, room)
        return 0

    cdef int gather(self, Area area, CollectiveCall call) except -1:
        cdef bint is_root = area.rank == call.root
        cdef bint in_place = is_root and call.send_in_place
        cdef size_t total = call.recv_count * call.recv_type.size if is_root else call.send_count * call.send_type.size
        cdef size_t piece = piece_of(total, area.chunk), offset = 0, nbytes
        cdef size_t stride = call.recv_count * call.recv_type.extent if is_root else 0
        cdef Convertor sent = None if in_place else convertor_for(call.send_address, call.send_count, call.send_type)
        cdef list received = []
        cdef int rank, other = -1
        if is_root:
            received = [convertor_for(call.recv_address + rank * stride, call.recv_count, call.recv_type)
                        for rank in range(area.size)]
        while True:
            nbytes = min(piece, total - offset)
            if not is_root:
                load(call.send_address, sent, offset, area.claim(piece), nbytes)
                area.put_up(total)
            else:
                area.step += 1
                for rank in range(area.size):
                    if rank != area.rank:
                        store(call.recv_address + rank * stride, received[rank], offset, area.look_at(rank, piece), nbytes)
                        if area.slot(rank).length != total:
                            other = rank
            area.end()
            offset += nbytes
            if offset >= total:
                break
        if is_root and not in_place and total:
            copy_own(call.send_address, sent, call.recv_address + area.rank * stride, received[area.rank], total)
        return differs(area, other, total)

    cdef int scatter(self, Area area, CollectiveCall call) except -1:
        cdef bint is_root = area.rank == call.root
        cdef bint in_place = is_root and call.recv_in_place
        cdef size_t total = call.send_count * call.send_type.size if is_root else call.recv_count * call.recv_type.size
        cdef size_t stride = call.send_count * call.send_type.extent if is_root else 0
        # A piece holds one part for each rank.
        cdef size_t part = total if total * area.size <= SHORT else min(total, whole(area.chunk // area.size, 8))
        cdef size_t piece = part * area.size, offset = 0, nbytes
        cdef Convertor received = None if in_place else convertor_for(call.recv_address, call.recv_count, call.recv_type)
        cdef list sent = []
        cdef char *place
        cdef int rank, other = -1
        if is_root:
            sent = [convertor_for(call.send_address + rank * stride, call.send_count, call.send_type)
                    for rank in range(area.size)]
        while True:
            nbytes = min(part, total - offset)
            if is_root:
                place = area.claim(piece)
                for rank in range(area.size):
                    if rank != area.rank:
                        load(call.send_address + rank * stride, sent[rank], offset, place + rank * part, nbytes)
                area.put_up(total)
            else:
                area.step += 1
                store(call.recv_address, received, offset, area.look_at(call.root, piece) + area.rank * part, nbytes)
                if area.slot(call.root).length != total:
                    other = call.root
            area.end()
            offset += nbytes
            if offset >= total:
                break
        if is_root and not in_place and total:
            copy_own(call.send_address + area.rank * stride, sent[area.rank], call.recv_address, received, total)
        return differs(area, other, total)

    cdef int allgather(self, Area area, CollectiveCall call) except -1:
        cdef size_t total = call.recv_count * call.recv_type.size
        cdef size_t stride = call.recv_count * call.recv_type.extent
        cdef size_t piece = piece_of(total, area.chunk), offset = 0, nbytes
        cdef size_t source = call.send_address
        cdef Convertor sent
        cdef list received = None
        cdef int rank
        if call.send_in_place:
            source = call.recv_address + area.rank * stride
            sent = convertor_for(source, call.recv_count, call.recv_type)
        else:
            sent = convertor_for(source, call.send_count, call.send_type)
        if not call.recv_type.contiguous:
            received = [convertor_for(call.recv_address + rank * stride, call.recv_count, call.recv_type)
                        for rank in range(area.size)]
        while True:
            nbytes = min(piece, total - offset)
            load(source, sent, offset, area.claim(piece), nbytes)
            area.put_up(total)
            self.meet(area, total)
            for rank in range(area.size):
                if rank != area.rank or not call.send_in_place:
                    store(call.recv_address + rank * stride, None if received is None else received[rank], offset,
                          area.look_at(rank, piece), nbytes)
            area.end()
            offset += nbytes
            if offset >= total:
                break
        return 0

    cdef int alltoall(self, Area area, CollectiveCall call) except -1:
        cdef size_t total = call.recv_count * call.recv_type.size
        cdef size_t stride = call.recv_count * call.recv_type.extent
        cdef size_t part = total if total * area.size <= SHORT else min(total, whole(area.chunk // area.size, 8))
        cdef size_t piece = part * area.size, offset = 0, nbytes
        cdef size_t source = call.recv_address if call.send_in_place else call.send_address
        cdef Py_ssize_t count = call.recv_count if call.send_in_place else call.send_count
        cdef Typemap typemap = call.recv_type if call.send_in_place else call.send_type
        cdef size_t source_stride = count * typemap.extent
        cdef list sent = None
        cdef list received = None
        cdef char *place
        cdef int rank
        if not typemap.contiguous:
            sent = [convertor_for(source + rank * source_stride, count, typemap) for rank in range(area.size)]
        if not call.recv_type.contiguous:
            received = [convertor_for(call.recv_address + rank * stride, call.recv_count, call.recv_type)
                        for rank in range(area.size)]
        while True:
            nbytes = min(part, total - offset)
            place = area.claim(piece)
            for rank in range(area.size):
                load(source + rank * source_stride, None if sent is None else sent[rank], offset, place + rank * part, nbytes)
            area.put_up(total)
            self.meet(area, total)
            for rank in range(area.size):
                store(call.recv_address + rank * stride, None if received is None else received[rank], offset,
                      area.look_at(rank, piece) + area.rank * part, nbytes)
            area.end()
            offset += nbytes
            if offset >= total:
                break
        return 0

    # -- reductions -----------------------------------------------------------------------------------------------

    cdef int reduce(self, Area area, CollectiveCall call) except -1:
        cdef bint in_place = call.send_in_place
        cdef Typemap typemap = call.recv_type if in_place else call.send_type
        cdef size_t total = (call.recv_count if in_place else call.send_count) * typemap.size
        cdef size_t piece = piece_of(total, whole(area.chunk, typemap.size)), offset = 0, nbytes
        cdef size_t own = 0
        cdef const char *last
        cdef char *place
        cdef int rank, other = -1
        while True:
            nbytes = min(piece, total - offset)
            if area.rank != call.root:
                memcpy(area.claim(piece), <char *> (call.send_address + offset), nbytes)
                area.put_up(total)
            else:
                place = area.claim(piece)
                if in_place or nbytes == 0:
                    # The result overwrites this rank's contribution, which may be needed after that; and no bytes may be
                    # at address 0, which means that a contribution was put up.
                    memcpy(place, <char *> (call.recv_address + offset), nbytes)
                    own = <size_t> place
                else:
                    own = call.send_address + offset
                last = <char *> own if area.rank == area.size - 1 else area.look_at(area.size - 1, piece)
                fold(area, <char *> (call.recv_address + offset), last, 0, own, nbytes, piece, 0, area.size, typemap,
                     call.operation)
                for rank in range(area.size):
                    if rank != area.rank and area.slot(rank).length != total:
                        other = rank
            area.end()
            offset += nbytes
            if offset >= total:
                break
        return differs(area, other, total)

    cdef int allreduce(self, Area area, CollectiveCall call) except -1:
        cdef Typemap typemap = call.recv_type if call.send_in_place else call.send_type
        cdef size_t total = (call.recv_count if call.send_in_place else call.send_count) * typemap.size
        cdef size_t source = call.recv_address if call.send_in_place else call.send_address
        if total > SHORT:
            return self.allreduce_long(area, source, call.recv_address, total, typemap, call.operation)
        memcpy(area.claim(total), <char *> source, total)
        area.put_up(total)
        self.meet(area, total)
        fold(area, <char *> call.recv_address, area.look_at(area.size - 1, total), 0, 0, total, total, 0, area.size, typemap,
             call.operation)
        return area.end()

    cdef int allreduce_long(self, Area area, size_t source, size_t target, size_t total, Typemap typemap,
                            Operation operation) except -1:
        """Each rank reduces its slice of a piece, leaves it where its contribution stood, and takes the others' slices.

            piece of rank 0   | a0 b0 c0 |      then     | A .. .. |        A = a0 op a1 op a2
            piece of rank 1   | a1 b1 c1 |               | .. B .. |
            piece of rank 2   | a2 b2 c2 |               | .. .. C |
        """
        cdef size_t piece = whole(area.chunk, typemap.size), offset = 0, nbytes, low, high
        cdef Py_ssize_t elements
        cdef char *place
        cdef int rank
        while True:
            nbytes = min(piece, total - offset)
            elements = nbytes // typemap.size
            place = area.claim(piece)
            memcpy(place, <char *> (source + offset), nbytes)
            area.put_up(total)
            self.meet(area, total)
            low = elements * area.rank // area.size * typemap.size
            high = elements * (area.rank + 1) // area.size * typemap.size
            if high > low:
                fold(area, <char *> (target + offset + low), area.look_at(area.size - 1, piece), low, 0, high - low, piece, 0,
                     area.size, typemap, operation)
                memcpy(place + low, <char *> (target + offset + low), high - low)
            area.put_up_second()
            for rank in range(area.size):
                if rank == area.rank:
                    continue
                area.look_at_second(rank)
                low = elements * rank // area.size * typemap.size
                high = elements * (rank + 1) // area.size * typemap.size
                memcpy(<char *> (target + offset + low), area.place(rank, piece) + low, high - low)
            area.end()
            offset += nbytes
            if offset >= total:
                break
        return 0

    cdef int reduce_scatter_block(self, Area area, CollectiveCall call) except -1:
        cdef Typemap typemap = call.recv_type
        cdef size_t total = call.recv_count * typemap.size
        cdef size_t source = call.recv_address if call.send_in_place else call.send_address
        cdef size_t part = total if total * area.size <= SHORT else min(total, whole(area.chunk // area.size, typemap.size))
        cdef size_t piece = part * area.size, offset = 0, nbytes
        cdef char *place
        cdef int rank
        while True:
            nbytes = min(part, total - offset)
            place = area.claim(piece)
            for rank in range(area.size):
                memcpy(place + rank * part, <char *> (source + rank * total + offset), nbytes)
            area.put_up(total)
            self.meet(area, total)
            fold(area, <char *> (call.recv_address + offset), area.look_at(area.size - 1, piece), area.rank * part, 0, nbytes,
                 piece, 0, area.size, typemap, call.operation)
            area.end()
            offset += nbytes
            if offset >= total:
                break
        return 0

    cdef int scan(self, Area area, CollectiveCall call, bint inclusive) except -1:
        cdef Typemap typemap = call.recv_type if call.send_in_place else call.send_type
        cdef size_t total = (call.recv_count if call.send_in_place else call.send_count) * typemap.size
        cdef size_t source = call.recv_address if call.send_in_place else call.send_address
        cdef size_t piece = piece_of(total, whole(area.chunk, typemap.size)), offset = 0, nbytes
        cdef int last = area.rank if inclusive else area.rank - 1
        while True:
            nbytes = min(piece, total - offset)
            memcpy(area.claim(piece), <char *> (source + offset), nbytes)
            area.put_up(total)
            if last >= 0:
                fold(area, <char *> (call.recv_address + offset), area.look_at(last, piece), 0, 0, nbytes, piece, 0, last + 1,
                     typemap, call.operation)
            area.end()
            offset += nbytes
            if offset >= total:
                break
        return 0


cdef int differs(Area area, int rank, size_t total) except -1:
    """Raises when a rank, unless it is -1, was seen to take part with another length than this one."""
    if rank >= 0:
        raise MPIError(ERR_TRUNCATE, f"rank {rank} has another length in this collective than rank {area.rank}, which has "
                                     f"{total} bytes")
    return 0


cdef object too_long(int rank, size_t length, size_t room):
    return MPIError(ERR_TRUNCATE, f"{length} bytes from rank {rank}, but there is room for {room} bytes")


cdef int copy_own(size_t source, Convertor sent, size_t target, Convertor received, size_t total) except -1:
    """A rank's block to itself."""
    cdef bytearray packed
    if sent is None:
        return store(target, received, 0, <char *> source, total)
    if received is None:
        return load(source, sent, 0, <char *> target, total)
    packed = bytearray(total)
    load(source, sent, 0, <char *> packed, total)
    return store(target, received, 0, <char *> packed, total)
