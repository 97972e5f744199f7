# How a rank waits for another one's word: it looks for a while, lets the engine work, and at last sleeps on its doorbell, which
# whoever changes a word rings while anybody sleeps (`Header.blocked`).  No wake-up is lost: who sleeps has counted himself
# before he arms his doorbell, and arming is a fence in every process (`core/doorbell.pxd`).
from libc.stdint cimport uint32_t, uint64_t

from ompy.core.atomic cimport acquire32
from ompy.core.doorbell cimport Bell, after_publishing
from ompy.core.listener cimport listen_now_and_then
from ompy.core.proc cimport failures
from ompy.mca.epochs cimport Epochs
from ompy_osc_sm.rank_state cimport Room

# What is waited for.
cdef enum What:
    GRANTED                                      # a turn has been given the lock of `peer`
    REACHED                                      # a count of 64 bits has reached `value`
    REACHED32                                    # one of 32 bits has, which may have begun at 0 again
    ENDED                                        # nobody accumulates into the memory of `peer`

cdef struct Condition:
    What what
    void *place
    uint64_t value
    int peer                                     # whose word it is


cdef class Waits(Epochs):
    cdef Room room
    cdef list neighbours                         # rank -> Neighbour, or None for this one
    cdef Bell **bells                            # theirs; NULL for this one
    cdef int spins
    cdef bint crowded                            # ranks outnumber cores
    cdef bint serving                          # to orders of others (`mailbox.pxd`)
    cdef unsigned int breaths

    # Wake those who sleep until something here changes.
    cdef inline int ring(self) except -1:
        after_publishing()
        if acquire32(&self.room.header.blocked):
            self.ring_all()
        return 0

    # A program that only looks at memory still serves who waits for its messages.
    cdef inline int poll_now_and_then(self) except -1:
        self.breaths += 1
        if self.breaths % 64 == 0:
            self.poll_engine()
        return 0

    # The memory of a process that has died is still there; who names it hears so all the same, once that is known here.
    cdef inline int require_alive(self, int target) except -1:
        listen_now_and_then()
        return self.raise_death(target) if failures and target >= 0 else 0
    cdef int raise_death(self, int target) except -1

    cdef int ring_all(self) except -1
    cdef int poll_engine(self) except -1
    # Until it is so.  `operation` is what the job board calls it.  ERR_PROC_FAILED once a process that it depends on has died.
    cdef int await_(self, Condition *condition, int operation) except -1
    cdef bint spin(self, Condition *condition) except -1
    cdef int sleep(self, Condition *condition, int operation) except -1
    # Raises when who is waited for has died.
    cdef int look_for_the_dead(self, Condition *condition) except -1
    cdef object death_of(self, int rank)
