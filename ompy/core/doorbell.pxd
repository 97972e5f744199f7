# How a process that sleeps is woken by its peers on this host.  One doorbell a process, shared by all transports.
#
#     waiter                                      peer
#     arm: armed = FUTEX or PIPE                  publish a message
#     fence                                       fence
#     look at every source again                  armed?  then take it (exchange with 0) and
#     sleep on `word`, or on the pipe                 word += 1, wake the futex, write to the pipe
#
# Either the waiter sees the message or the peer sees `armed`.  The fence is the waiter's: membarrier(2) makes every
# process of the job pass one, so that a peer's fast path is one look at a cache line that it already has.  Where
# membarrier is refused, peers fence themselves (`peers_fence`).
from libc.stdint cimport uint32_t

from ompy.core.atomic cimport full_fence
from ompy.core.segment cimport Segment

cdef enum:
    ARMED_NOT = 0
    ARMED_FUTEX = 1
    ARMED_PIPE = 2

cdef struct Bell:
    uint32_t word                                # counts rings
    uint32_t armed


cdef class Doorbell:
    """This process's own."""
    cdef Segment segment
    cdef Bell *bell
    cdef int reader, writer                      # of the pipe, non-blocking

    # What a peer passes to `RemoteDoorbell`.
    cpdef bytes card(self)
    cpdef int finalize(self) except -1

    cdef void disarm(self) noexcept nogil
    # Empties the pipe.
    cdef void drain(self) noexcept nogil
    # Wakes this process's own sleeping threads.
    cdef void ring(self) noexcept nogil


cdef class RemoteDoorbell:
    """A peer's."""
    cdef Segment segment
    cdef Bell *bell
    cdef int writer
    cdef object __weakref__

    cdef void ring_now(self) noexcept nogil
    cpdef int close(self) except -1


# Arms and fences; returns the word to wait on.
cdef uint32_t arm(Bell *bell, uint32_t how) noexcept nogil
# Sleeps until the bell is rung (at once when it has been since `word` was read), a signal comes, or the time is over.
cdef void futex_wait(Bell *bell, uint32_t word, long nanoseconds) noexcept nogil

# Wakes whoever sleeps behind the bell, with a byte for the pipe if that is how it was armed; of several who ring, the
# first does it.
cdef void ring_bell(Bell *bell, int writer) noexcept nogil

cdef bint peers_fence

cdef extern from *:
    """
    static inline void ompy_compiler_fence(void) { __atomic_signal_fence(__ATOMIC_SEQ_CST); }
    """
    void compiler_fence "ompy_compiler_fence"() noexcept nogil


# Between publishing and looking at the bells.
cdef inline void after_publishing() noexcept nogil:
    if peers_fence:
        full_fence()
    else:
        compiler_fence()


# After publishing.
cdef inline void ring(RemoteDoorbell peer) noexcept:
    after_publishing()
    if peer.bell.armed:
        peer.ring_now()


# This process's, made at the first call; and given back.
cpdef Doorbell own(str backing=*)
cpdef int disown() except -1
