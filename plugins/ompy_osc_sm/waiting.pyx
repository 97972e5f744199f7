# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""How a rank waits for another one's word.  See `waiting.pxd`."""
from time import monotonic

from cpython.mem cimport PyMem_Free
from libc.stdint cimport uint32_t, uint64_t

from ompy.core.atomic cimport acquire, acquire32, add32
from ompy.core.progress cimport wait_until
from ompy.core.progress_source cimport ProgressSource, register_source, unregister_source, wake
from ompy.core.progress cimport progress as poll
from ompy.core.reach cimport has_gone
from ompy.core.request cimport Request
from ompy.mca.epochs cimport Epochs
from ompy_osc_sm.mailbox cimport serve
from ompy_osc_sm.rank_state cimport HELD, dead_holder, has_reached, mend, state_of
from ompy_osc_sm.neighbours cimport Neighbour

from ompy.core.errors import ERR_PROC_FAILED, MPIError

cdef extern from "<sched.h>" nogil:
    int sched_yield()

# Looks at a word between two rounds of the progress engine.
cdef int LOOKS = 200
# ... and between two into the mailbox.
cdef enum:
    LOOKS_AT_A_WORD = 8
# Times that a core which others want is offered to them before the wait is the engine's.
cdef int TURNS = 8
# Seconds between looks at whether who is waited for lives.
cdef double LOOK_INTERVAL = 0.05


cdef inline bint is_so(const Condition *condition) noexcept nogil:
    if condition.what == GRANTED:
        return acquire(<uint64_t *> condition.place) & HELD
    if condition.what == REACHED:
        return acquire(<uint64_t *> condition.place) >= condition.value
    if condition.what == REACHED32:
        return has_reached(acquire32(<uint32_t *> condition.place), <uint32_t> condition.value)
    return acquire32(<uint32_t *> condition.place) == 0


cdef bint has_come(void *context) noexcept nogil:
    return is_so(&(<Sleep> context).condition)


cdef class Sleep(ProgressSource):
    """One wait that is the engine's."""
    cdef Condition condition
    cdef Waits window
    cdef double next_look

    def __cinit__(self):
        self.ready = has_come
        self.ready_context = <void *> self

    cpdef int progress(self) except -1:
        """What is waited for is memory, which the waiter looks at itself."""
        return 1 if is_so(&self.condition) else 0


cdef bint is_over(void *context) except -1:
    cdef Sleep sleep = <Sleep> context
    if is_so(&sleep.condition):
        return True
    now = monotonic()
    if now >= sleep.next_look:
        sleep.next_look = now + LOOK_INTERVAL
        sleep.window.look_for_the_dead(&sleep.condition)
    return False


cdef class Waits(Epochs):
    """What the ranks of a window share, and how they wait for one another."""

    def __dealloc__(self):
        PyMem_Free(self.bells)
        PyMem_Free(self.room.reaches)

    cdef int ring_all(self) except -1:
        cdef int rank
        wake()
        for rank in range(self.ranks):
            if self.bells[rank] != NULL and self.bells[rank].armed:
                (<Neighbour> self.neighbours[rank]).doorbell.ring_now()
        return 0

    cdef int poll_engine(self) except -1:
        poll()
        return 0

    cdef int await_(self, Condition *condition, int operation) except -1:
        if is_so(condition) or self.spin(condition):
            return 0
        return self.sleep(condition, operation)

    cdef bint spin(self, Condition *condition) except -1:
        cdef int _spin, _look
        if self.crowded:
            for _spin in range(TURNS):
                with nogil:
                    sched_yield()
                if is_so(condition):
                    return True
            return False
        for _spin in range(self.spins):
            for _look in range(LOOKS):
                if is_so(condition):
                    return True
                if self.serving and _look % LOOKS_AT_A_WORD == 0:
                    serve()
            poll()
        return False

    cdef int sleep(self, Condition *condition, int operation) except -1:
        cdef Sleep sleep = Sleep()
        cdef Request shown = Request()
        sleep.condition = condition[0]
        sleep.window = self
        shown.operation = operation
        shown.communicator = self.window.communicator
        shown.peer = condition.peer
        add32(&self.room.header.blocked, 1)
        register_source(sleep)
        try:
            wait_until(is_over, <void *> sleep, shown)
        finally:
            unregister_source(sleep)
            add32(&self.room.header.blocked, -1)
        return 0

    cdef int look_for_the_dead(self, Condition *condition) except -1:
        cdef int rank = condition.peer
        cdef str doing = "before it came to this window's synchronisation"
        if condition.what == GRANTED:
            if mend(&self.room, condition.peer):
                self.ring()
            rank = dead_holder(&self.room, condition.peer)
            doing = f"while it held the lock of rank {condition.peer}"
        elif condition.what == ENDED:
            rank = <int> acquire32(&state_of(&self.room, condition.peer).combining) - 1
            doing = f"in an accumulate into the memory of rank {condition.peer}"
        if rank < 0 or rank == self.rank or not has_gone(self.room.reaches[rank]) or is_so(condition):
            return 0
        raise MPIError(ERR_PROC_FAILED, f"{self.death_of(rank)} {doing}")

    cdef int raise_death(self, int target) except -1:
        if target != self.rank and has_gone(self.room.reaches[target]):
            raise MPIError(ERR_PROC_FAILED, self.death_of(target))
        return 0

    cdef object death_of(self, int rank):
        return f"rank {rank} of the window (process {self.room.reaches[rank].pid}) has died"
