# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The slow paths of a communicator's shared memory; `area.pxd` has the picture."""
from ompy.core.atomic cimport add32
from ompy.core.doorbell cimport RemoteDoorbell
from ompy.core.doorbell cimport ring as ring_doorbell
from ompy.core.progress cimport exclude_watchers, register_source, unregister_source, wait_until
from ompy.core.progress cimport progress as poll

cdef extern from "<sched.h>" nogil:
    int sched_yield()

# Looks at a word between two rounds of the progress engine.
cdef int LOOKS = 64


cdef size_t bytes_needed(int size, size_t chunk) noexcept:
    return HEADER + size * (LINE + SLOTS * SLOT_SIZE + CHUNKS * chunk) + SLOT_SIZE


cdef bint has_come(void *context) noexcept nogil:
    """Is what this rank waits for there?  For those who watch without the GIL."""
    cdef const uint64_t *awaited = (<Area> context).awaited
    return awaited != NULL and acquire(awaited) >= (<Area> context).awaited_step


cdef bint is_there(void *context) except -1:
    return has_come(context)


cdef class Area(ProgressSource):
    """The shared memory of one communicator, as one rank has it mapped.

    Parameters:
        segment: `bytes_needed` bytes, zeroed when they were made.
        comm: the communicator.
        chunk: bytes of a chunk, a multiple of 64.
        spins: rounds of looking and progress before the engine waits its own way.
        crowded: ranks outnumber cores: every round offers the core to the others.
    """

    def __init__(self, Segment segment not None, Communicator comm not None, size_t chunk, int spins, bint crowded):
        cdef size_t slots_at
        self.segment = segment
        self.rank = comm.rank
        self.size = comm.size
        self.chunk = chunk
        self.spins = spins
        self.crowded = crowded
        self.header = <Header *> segment.address
        self.done_lines = segment.address + HEADER
        slots_at = (HEADER + self.size * LINE + SLOT_SIZE - 1) & ~<size_t> (SLOT_SIZE - 1)
        self.slots = segment.address + slots_at
        self.chunks = self.slots + self.size * SLOTS * SLOT_SIZE
        self.doorbells = []
        self.shown = Request()
        self.shown.communicator = comm
        self.ready = has_come
        self.ready_context = <void *> self

    cpdef int progress(self) except -1:
        """What is waited for is memory, which the waiter looks at itself."""
        return 1 if has_come(<void *> self) else 0

    cdef int connect(self, list cards) except -1:
        cdef int rank
        for rank in range(self.size):
            self.doorbells.append(None if rank == self.rank else RemoteDoorbell(cards[rank]))
        return 0

    cdef int ring(self) except -1:
        cdef RemoteDoorbell peer
        for peer in self.doorbells:
            if peer is not None:
                ring_doorbell(peer)
        return 0

    cdef int put_up_second(self) except -1:
        release(&self.slot(self.rank).second, self.step)
        return self.ring()

    cdef int look_at_second(self, int rank) except -1:
        if acquire(&self.slot(rank).second) != self.step:
            self.wait_for(&self.slot(rank).second, self.step, rank)
        return 0

    cdef int wait_for(self, const uint64_t *word, uint64_t step, int rank) except -1:
        cdef int _spin, _look
        cdef int looks = 1 if self.crowded else LOOKS
        for _spin in range(self.spins):
            for _look in range(looks):
                if acquire(word) >= step:
                    return 0
            poll()
            if self.crowded:
                with nogil:
                    sched_yield()
        self.awaited_step = step
        self.awaited = word
        self.shown.peer = rank
        register_source(self)
        try:
            wait_until(is_there, <void *> self, self.shown)
        finally:
            self.awaited = NULL
            unregister_source(self)
        return 0

    cdef int raise_floor(self, uint64_t step) except -1:
        """Wait until every rank is done with the step."""
        cdef int rank
        cdef uint64_t done, lowest = self.step
        for rank in range(self.size):
            if rank == self.rank:
                continue
            done = acquire(self.done_of(rank))
            if done < step:
                add32(&self.header.blocked, 1)
                try:
                    self.wait_for(self.done_of(rank), step, rank)
                finally:
                    add32(&self.header.blocked, -1)
                done = acquire(self.done_of(rank))
            lowest = min(lowest, done)
        self.floor = lowest
        return 0

    cdef int close(self) except -1:
        cdef RemoteDoorbell peer
        exclude_watchers()
        for peer in self.doorbells:
            if peer is not None:
                peer.close()
        self.doorbells = []
        self.segment.close()
        return 0
