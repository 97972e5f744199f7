# The progress engine: who is polled, and how a rank waits.
#
# One thread at a time polls, as the engine's owner (`ompy/core/owner.pxd`): whoever polls calls sources, receivers and
# callbacks, and nobody else is inside, though a source lets the GIL go.  A wait, which owns the engine for a round at a time,
#
#   1. spins with the GIL: polls every source, until `complete` or the spin is over;
#   2. spins without it: only *watches*, through the sources' `ready` functions (C, no Python), so that other Python
#      threads run; on work it takes the GIL back and goes to 1;
#   3. yields the core;
#   4. sleeps on the doorbell (a futex while every source can be watched as memory; poll(2) on the doorbell's pipe and
#      the sources' descriptors otherwise), with a back-stop time-out, and writes the job board.
#
# Signal handlers run between rounds, where nothing is half done.
#
# No wake-up is lost: the waiter arms the doorbell, fences, looks at every source again, then sleeps; a peer publishes,
# fences, and rings if the doorbell is armed.
from libc.stdint cimport int64_t

from ompy.core.doorbell cimport Bell
from ompy.core.request cimport Request, sleepers, wake_sleepers

ctypedef bint (*ReadyFunction)(void *context) noexcept nogil

cdef class ProgressSource:
    # Is there anything to do?  Called without the GIL.  NULL for sources that only have a file descriptor.  Set before
    # the source is registered.  While it says no, `progress` is called only now and then, and after others' events.
    cdef ReadyFunction ready
    cdef void *ready_context

    # Do what can be done now, without waiting; returns the number of events (messages, completions).
    cpdef int progress(self) except -1
    # A descriptor that becomes readable when there is something to do, or -1.
    cpdef int descriptor(self) except -2
    # About to sleep: last chance to say that there is work (edge-triggered descriptors must look here).
    cpdef bint may_sleep(self) except -1
    # Now and then, while somebody only tests: report peers that have gone, where nothing else tells of it.  Who waits asks by
    # `may_sleep`.
    cpdef int look_at_peers(self) except -1


cpdef int register_source(ProgressSource source) except -1
cpdef int unregister_source(ProgressSource source) except -1

# One round over all sources; returns the number of events.  While anybody is inside the engine (this thread, from a
# callback, or another one) it returns 0 at once.
cdef int progress() except -1
# The same for who asks whether something has come, and will ask again if not: where ranks share cores, who asks in vain offers
# its own to those it waits for, which would have it after a time slice of some milliseconds only.
cdef int progress_or_yield() except -1

# Until the request is complete.  Raises what a signal handler raised; the request stays as it was.  Never inside the engine.
cdef int wait(Request request) except -1
# Until the word is not zero; `what` is the request shown on the job board, or None.
cdef int wait_for(int *word, Request what) except -1
# Until `done(context)` is true.
ctypedef bint (*DoneFunction)(void *context) except -1
cdef int wait_until(DoneFunction done, void *context, Request what) except -1

# Something has changed outside `progress`: threads of this process that sleep in a wait look again.  (The completion of a
# request wakes them by itself.)
cdef inline void wake() noexcept:
    if sleepers:
        wake_sleepers()

# Threads without the GIL may be inside `ready`.  Before a source takes away anything that its `ready` reads (memory,
# mappings), it calls this: until the GIL is next let go, none is.
cdef void exclude_watchers() noexcept

# Not zero once what the wait in progress is for has come.  A source that has more to hand over may stop then:
# what is asked for next is better matched than stored.
cdef int *goal

# How many waits are in progress.  A source asked by one of them, rather than by a test, may block for a moment where nothing
# else can happen: simulated time passes only while somebody waits for it.
cdef int waiting

# Threads that sleep on what the sources' descriptors tell of.
cdef int asleep

# Events ever counted: two looks that differ show progress.
cdef unsigned long long events_made
# Waits that did not end at once, so far: two looks that differ were in different ones.
cdef unsigned long long waits

# -- for the thread that moves the engine while nobody waits (`ompy/core/progress_thread.pxd`)

cdef Bell aside                                  # rung, if armed, when nobody waits any more
# The back-stop, nanoseconds: what a source that can neither be watched nor polled, or a peer's death, waits at most for
# notice.  In a wait it begins short and grows, and once the wait is long, past this.
cdef long longest_sleep
cdef int poll_all() except -1
# How long a wait watches before it offers its core to others, nanoseconds.
cdef int64_t watch_time
cdef bint watch(int *word, unsigned long long before, int64_t alone, int64_t yielding) except -1
cdef int sleep(int *word, unsigned long long before, long nanoseconds, bint awaits) except -1
cdef void wake_everybody() noexcept

cdef extern from *:
    """
    #include <stdint.h>
    #include <time.h>

    static inline int64_t ompy_now(void) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
    }
    static inline void ompy_rest(int64_t nanoseconds) {
        struct timespec time = {0, nanoseconds};
        nanosleep(&time, NULL);
    }
    static inline int ompy_peek(int *word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }
    static inline unsigned long long ompy_peek_long(unsigned long long *word) {
        return __atomic_load_n(word, __ATOMIC_ACQUIRE);
    }
    """
    int64_t clock_now "ompy_now"() noexcept nogil
    void rest_for "ompy_rest"(int64_t nanoseconds) noexcept nogil
    int peek "ompy_peek"(int *word) noexcept nogil
    unsigned long long peek_long "ompy_peek_long"(unsigned long long *word) noexcept nogil
