# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=--param=max-inline-insns-single=200 --param=max-inline-insns-auto=30
"""Collectives among processes of one host, through shared memory: steps of the pattern in `area.pxd`."""
from ompy.core.basic cimport BASIC_BYTE
from ompy.core.board import OPERATIONS
from ompy.core.doorbell cimport own as own_doorbell
from ompy.core.errors import MPIError
from ompy.core.progress cimport progress as poll
from ompy.core.signals cimport keep_a_while, raise_kept_a_while, raise_late
from ompy.core.typemap cimport Typemap, predefined
from ompy.mca.coll import FUNCTIONS
from ompy.mca.coll cimport (
    ALLGATHER, ALLGATHERV, ALLREDUCE, ALLTOALL, ALLTOALLV, ALLTOALLW, BARRIER, BCAST, EXSCAN, FUNCTION_COUNT, GATHER,
    GATHERV, INTERFACE, REDUCE, REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, SCAN, SCATTER, SCATTERV,
)

from ompy_coll_sm.area cimport CARD_SIZE, LINE, SHORT, Area
from ompy_coll_sm.arena cimport Room, doorbell_of, enter, lend
from ompy_coll_sm.exchange cimport allgather, alltoall, barrier, bcast, gather, scatter
from ompy_coll_sm.reduction cimport allreduce, reduce, reduce_scatter, reduce_scatter_block, scan
from ompy_coll_sm.vectors cimport allgatherv, alltoallv, alltoallw, gatherv, scatterv

interface = INTERFACE

# Who waits looks at memory, and a peer that is as quick is there at once: what else is under way is looked for each so many
# calls, and goes on with each of them once there is something.
cdef enum:
    CALLS_BETWEEN = 16
    MOST_ROUNDS = 16

# What the job board calls each function.
cdef int operations[FUNCTION_COUNT]
for function, name in enumerate(FUNCTIONS):
    operations[function] = OPERATIONS.index(name.capitalize())


cdef bint is_one_step(int function, CollectiveCall call, Area area) noexcept:
    """Whether the others count on no more of this rank, once it waits, than it has put up: what a signal handler raises may end
    the call at once."""
    cdef Py_ssize_t most = SHORT // area.size
    if function == BARRIER:
        return True
    if function == GATHERV:
        return area.rank != call.root
    if function in (REDUCE_SCATTER, ALLGATHERV, ALLTOALLV, ALLTOALLW, SCATTERV):
        return False
    return (call.send_type is None or call.send_count * call.send_type.size <= most) \
        and (call.recv_type is None or call.recv_count * call.recv_type.size <= most)


cdef bint move_on() except -1:
    """Whether there was something under way, which has gone on as far as it could, or for some rounds."""
    cdef int left = MOST_ROUNDS
    while left and poll():
        left -= 1
    return left < MOST_ROUNDS


class SharedMemory:
    """The one algorithm of this component, for those who list algorithms."""

    name = "shared_memory"
    summary = "contributions are put up in shared memory, where each rank looks at those it needs"


cdef class SmModule(CollModule):
    """The collectives of one communicator whose processes share a host.

    Parameters:
        chunk: bytes of a piece of a long contribution.
        spins: rounds of looking before a wait is the progress engine's.
        crowded: ranks outnumber cores.
        backing: of the shared memory, as `ompy.core.segment.create` has it.
        memory: bytes that this process lends to communicators, at most.
    """

    def __init__(self, size_t chunk, int spins, bint crowded, str backing not None, size_t memory):
        super().__init__("sm")
        self.chunk = max(chunk, SHORT) & ~<size_t> (LINE - 1)
        self.spins = spins
        self.crowded = crowded
        self.backing = backing
        self.memory = memory

    cdef bint serves(self, int function, CollectiveCall call, Communicator comm) except -1:
        """The same answer on every rank: it depends on what MPI wants to be equal there."""
        cdef Typemap typemap
        if self.unusable:
            return False
        if function in (REDUCE, ALLREDUCE, REDUCE_SCATTER_BLOCK, REDUCE_SCATTER, SCAN, EXSCAN):
            typemap = call.send_type
            if call.send_in_place or function == REDUCE_SCATTER_BLOCK or function == REDUCE_SCATTER:
                typemap = call.recv_type
            return call.operation.predefined and typemap.basic >= 0 and typemap.contiguous and typemap.size <= LINE
        return True

    cpdef int run(self, int function, CollectiveCall call, Communicator comm) except -1:
        """Carry the collective out; returns when this rank's part is done."""
        cdef Area area = self.area
        if not self.serves(function, call, comm):
            return self.hand_on(function, call, comm)
        if area is not None and is_one_step(function, call, area):
            self.carry_out(area, function, call, comm)
            return raise_late()
        keep_a_while()
        try:
            if area is None:
                self.set_up(comm)
                area = self.area
            return self.hand_on(function, call, comm) if area is None else self.carry_out(area, function, call, comm)
        finally:
            raise_kept_a_while()

    cdef int carry_out(self, Area area, int function, CollectiveCall call, Communicator comm) except -1:
        area.shown.operation = operations[function]
        self.calls_left -= 1
        if self.calls_left <= 0:
            self.calls_left = 1 if move_on() else CALLS_BETWEEN
        if function == ALLREDUCE:
            return allreduce(area, call)
        if function == BARRIER:
            return barrier(area)
        if function == BCAST:
            return bcast(area, call)
        if function == REDUCE:
            return reduce(area, call)
        if function == ALLGATHER:
            return allgather(area, call)
        if function == ALLTOALL:
            return alltoall(area, call)
        if function == GATHER:
            return gather(area, call)
        if function == SCATTER:
            return scatter(area, call)
        if function == REDUCE_SCATTER_BLOCK:
            return reduce_scatter_block(area, call)
        if function == REDUCE_SCATTER:
            return reduce_scatter(area, call)
        if function == ALLGATHERV:
            return allgatherv(area, call)
        if function == ALLTOALLV:
            return alltoallv(area, call)
        if function == ALLTOALLW:
            return alltoallw(area, call)
        if function == GATHERV:
            return gatherv(area, call, comm, operations[function])
        if function == SCATTERV:
            return scatterv(area, call)
        return scan(area, call, function == SCAN)

    cpdef int free(self) except -1:
        """The communicator is gone; the next one asks for memory anew."""
        self.area = None
        self.unusable = False
        if self.room is not None:
            self.room.leave()
            self.room = None
        return 0

    def explain(self, int function, Communicator comm not None, Py_ssize_t nbytes, bint commutative=True):
        """[(algorithm, whether it would serve, when it is taken)]: this component has one for each function."""
        return [(SharedMemory, not self.unusable, "wherever operations are predefined")]

    # -- setting up -----------------------------------------------------------------------------------------------

    cdef int set_up(self, Communicator comm) except -1:
        """Share memory, all ranks together, with the help of the module that stands behind this one."""
        cdef Room room = None
        cdef bytearray told = bytearray(CARD_SIZE)
        cdef bytes card
        if comm.rank == 0:
            room = lend(comm.size, self.chunk, self.memory, self.backing)
            if room is not None:
                card = room.card()
                told[: len(card)] = card
        self.tell(comm, told)
        card = bytes(told).rstrip(b"\0")
        if comm.rank != 0 and card:
            try:
                room = enter(card)
            except MPIError:
                room = None
        cards = self.exchange(comm, b"" if room is None else own_doorbell().card())
        if room is None or not all(cards):
            self.unusable = True
            if room is not None:
                room.withdraw()
            return 0
        room.settle()
        self.room = room
        self.area = Area(<size_t> room.address(), comm, room.chunk, self.spins, self.crowded)
        return self.area.connect([doorbell_of(cards[rank]) for rank in range(comm.size) if rank != comm.rank])

    def tell(self, Communicator comm, bytearray data):
        """Rank 0's bytes to everyone."""
        cdef CollectiveCall call = CollectiveCall()
        call.send_address = call.recv_address = <size_t> <char *> data
        call.send_count = call.recv_count = len(data)
        call.send_type = call.recv_type = predefined(BASIC_BYTE)
        call.send_owner = data
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
        call.send_owner, call.recv_owner = mine, everyone
        self.hand_on(ALLGATHER, call, comm)
        return [bytes(everyone[at : at + CARD_SIZE]).rstrip(b"\0") for at in range(0, len(everyone), CARD_SIZE)]
