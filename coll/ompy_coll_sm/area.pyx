# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=--param=max-inline-insns-single=200 --param=max-inline-insns-auto=30
"""The slow paths of a communicator's shared memory; `area.pxd` has the picture."""
from cpython.mem cimport PyMem_Calloc, PyMem_Free

from ompy.core.atomic cimport add32, release32
from ompy.core.doorbell cimport Bell, RemoteDoorbell
from ompy.core.progress cimport wait_until
from ompy.core.progress_source cimport register_source, unregister_source
from ompy.core.progress cimport progress as poll
from ompy.core.segment cimport page_size
from ompy.core.signals cimport end_keeping, keep_a_while

cdef extern from "<sched.h>" nogil:
    int sched_yield()
    int sched_getcpu()

cdef enum:
    CHUNKS = 2                                   # contributions that a ring holds when they are as long as they may be
# So many contributions run ahead at most, unless they fit so many bytes.
cdef size_t DEPTH = 4
cdef size_t NEAR = 65536
# Looks at a word between two rounds of the progress engine.
cdef int LOOKS = 200
# Looks before a rank offers its core to others, where those that share it are as far as it is.
cdef int PATIENCE = 1000
# Turns between two rounds of the progress engine.
cdef int TURNS = 16

# Never armed: stands for a doorbell that can't be reached.
cdef Bell unheard


cdef size_t words_needed(int size) noexcept:
    return (HEADER + size * (sizeof(Control) + LINES * sizeof(Line)) + page_size - 1) & ~(page_size - 1)


cdef size_t bytes_needed(int size, size_t chunk) noexcept:
    return (words_needed(size) + size * CHUNKS * chunk + page_size - 1) & ~(page_size - 1)


cdef bint has_come(void *context) noexcept nogil:
    """Is what this rank waits for there?  For those who watch without the GIL."""
    cdef const uint64_t *awaited = (<Area> context).awaited
    return awaited != NULL and acquire(awaited) >= (<Area> context).awaited_step


cdef bint is_there(void *context) except -1:
    return has_come(context)


cdef class Area(ProgressSource):
    """The shared memory of one communicator, as one rank has it mapped.

    Parameters:
        address: of `bytes_needed` bytes, whose words were zero when the first member came; they live longer than this.
        comm: the communicator.
        chunk: bytes of the longest contribution, a multiple of 64.
        spins: rounds of looking and progress before the engine waits its own way.
        crowded: ranks outnumber cores: who waits offers its core to the others.
    """

    def __init__(self, size_t address, Communicator comm not None, size_t chunk, int spins, bint crowded):
        self.rank = comm.rank
        self.size = comm.size
        self.chunk = chunk
        self.spins = spins
        self.crowded = crowded
        self.header = <Header *> address
        self.controls = <Control *> (address + HEADER)
        self.lines = <Line *> (self.controls + self.size)
        self.rings = <char *> address + words_needed(self.size)
        self.ring_size = CHUNKS * chunk
        self.doorbells = []
        self.bells = <Bell **> PyMem_Calloc(self.size, sizeof(Bell *))
        if self.bells == NULL:
            raise MemoryError()
        self.shown = Request()
        self.shown.communicator = comm
        self.ready = has_come
        self.ready_context = <void *> self
        self.sit_down()

    def __dealloc__(self):
        PyMem_Free(self.bells)

    cpdef int progress(self) except -1:
        """What is waited for is memory, which the waiter looks at itself."""
        return 1 if has_come(<void *> self) else 0

    cdef int connect(self, list bells) except -1:
        """The doorbells of the other ranks, each a RemoteDoorbell; None: that one sleeps until its back-stop."""
        cdef RemoteDoorbell peer
        cdef int place = 0
        self.doorbells = bells
        for peer in bells:
            self.bells[place] = &unheard if peer is None else peer.bell
            place += 1
        return 0

    cdef int wake_up(self, int peer) except -1:
        (<RemoteDoorbell> self.doorbells[peer]).ring_now()
        return 0

    cdef int put_up_second(self) except -1:
        release(&self.controls[self.rank].second, self.step)
        return self.ring()

    cdef int look_at_second(self, int rank) except -1:
        if acquire(&self.controls[rank].second) < self.step:
            self.wait_for(&self.controls[rank].second, self.step, rank)
        return 0

    # -- waiting --------------------------------------------------------------------------------------------------

    cdef int wait_for(self, const uint64_t *word, uint64_t step, int rank) except -1:
        """Until the word, which is the rank's, has reached the step."""
        # Who puts up rings all sleepers; who is done does so only where somebody sleeps until then.
        cdef int until_done = word == &self.controls[rank].done
        if self.take_turns(word, step) if self.crowded else self.spin(word, step):
            return 0
        self.awaited_step = step
        self.awaited = word
        self.shown.peer = rank
        add32(&self.header.blocked, until_done)
        register_source(self)
        try:
            wait_until(is_there, <void *> self, self.shown)
        finally:
            self.awaited = NULL
            unregister_source(self)
            add32(&self.header.blocked, -until_done)
        return 0

    cdef bint spin(self, const uint64_t *word, uint64_t step) except -1:
        """Every rank has a core."""
        cdef int _spin, _look
        for _spin in range(self.spins):
            for _look in range(LOOKS):
                if acquire(word) >= step:
                    return True
            poll()
        return False

    cdef bint take_turns(self, const uint64_t *word, uint64_t step) except -1:
        """Ranks share cores: whoever can do more with this one has it at once."""
        cdef int _look, turn
        for turn in range(self.spins):
            if not self.core_is_wanted(self.sit_down()):
                for _look in range(PATIENCE):
                    if acquire(word) >= step:
                        return True
            sched_yield()
            if acquire(word) >= step:
                return True
            if turn % TURNS == TURNS - 1:
                with nogil:
                    sched_yield()
                poll()
        return False

    cdef uint32_t sit_down(self) noexcept:
        """Tell the others which core this rank is on."""
        cdef uint32_t core = sched_getcpu() + 1
        if self.controls[self.rank].core != core:
            release32(&self.controls[self.rank].core, core)
        return core

    cdef bint core_is_wanted(self, uint32_t core) noexcept:
        """Does a rank that shares this core have yet to put up what this one has?"""
        cdef int rank
        for rank in range(self.size):
            if acquire32(&self.controls[rank].core) == core and acquire(&self.line(rank).step) < self.step \
                    and rank != self.rank:
                return True
        return False

    # -- places ---------------------------------------------------------------------------------------------------

    cdef char *claim_long(self, size_t nbytes) except NULL:
        """`claim` in the ring, in one run, behind what was put up last: once that which stood there is not needed."""
        cdef size_t used = self.taken % self.ring_size
        cdef uint64_t begin = self.taken
        cdef uint64_t needed = self.step - LINES if self.step > LINES else 0
        cdef Kept *oldest
        # Not all of the ring where less will do: what was used a moment ago is in the cache.
        if used + nbytes > min(self.ring_size, max(DEPTH * nbytes, NEAR)):
            begin += self.ring_size - used
        self.taken = begin + ((nbytes + LINE - 1) & ~<size_t> (LINE - 1))
        while self.kept_first < self.kept_end:
            oldest = &self.kept[self.kept_first % LINES]
            if oldest.step > needed and oldest.begin + self.ring_size >= self.taken:
                break
            needed = max(needed, oldest.step)
            self.kept_first += 1
        self.kept[self.kept_end % LINES] = Kept(self.step, begin)
        self.kept_end += 1
        if needed > self.floor:
            self.raise_floor(needed, nbytes <= SHORT)
        self.begin = begin % self.ring_size
        return self.rings + self.rank * self.ring_size + self.begin

    cdef int raise_floor(self, uint64_t needed, bint short) except -1:
        """Wait until every rank is done with the step that is needed.

        Who has to wait at all waits until half of what it has put up is done with, so that it does not wait again at once;
        but long contributions are better written and read at the same time, by ranks that have a core each.

        Others count on the contribution that is to come: what a signal handler raises meanwhile is raised once it is there.
        """
        cdef int rank
        cdef uint64_t done, wanted = needed, lowest = self.step
        if short or self.crowded:
            wanted += (self.step - needed) // 2
        keep_a_while()
        try:
            for rank in range(self.size):
                if rank == self.rank:
                    continue
                done = acquire(&self.controls[rank].done)
                if done < needed:
                    self.wait_for(&self.controls[rank].done, wanted, rank)
                    done = acquire(&self.controls[rank].done)
                lowest = min(lowest, done)
        finally:
            end_keeping()
        self.floor = lowest
        return 0
