# Who is polled by the progress engine (`ompy/core/progress.pxd`): the sources of events, one per transport and the like.
#
#     registered      ready           progress            descriptor          may_sleep           look_at_peers
#     sources ------- in C, without   inside the engine,  to poll(2) while    before a sleep      now and then
#                     the GIL         with the GIL        a rank sleeps
#
# A source is asked by `progress` when `ready` says so, and now and then otherwise.
from cpython.ref cimport PyObject

from ompy.core.owner cimport leave, try_enter
from ompy.core.request cimport sleepers, wake_sleepers

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
# What `goal` is while nobody waits.
cdef int never

# Events ever counted: two looks that differ show progress.
cdef unsigned long long events_made

# -- for the engine

cdef struct Entry:
    PyObject *source                             # a reference is held
    ReadyFunction ready                          # the source's, where threads without the GIL can read it
    void *ready_context
    int pause                                    # rounds between two calls while it is not known to be ready
    int countdown

cdef Entry *entries
cdef int entry_count
# So often a source came or went by which waits are timed: one with a descriptor, or without a `ready`.
cdef unsigned int changes

# Ask this source, which is due, and those after it that are; returns the number of events.  Inside the engine.
cdef int poll_from(int index) except -1

# The first source from this one on that is to be asked now; the pauses of those before it are a round shorter.
cdef inline int next_due(int index) noexcept:
    while index < entry_count:
        if entries[index].ready != NULL and entries[index].ready(entries[index].ready_context):
            break
        if entries[index].countdown <= 0:
            break
        entries[index].countdown -= 1
        index += 1
    return index


# One round.  It may end early where the goal is reached: what others have to bring can wait until the next one.
cdef inline int poll_once() except -1:
    cdef int events
    cdef int index = next_due(0)
    if index == entry_count or not try_enter():
        return 0
    try:
        events = poll_from(index)
    finally:
        leave()
    return events


# Like `poll_once`, and asks the sources that are pausing too.
cdef int poll_all() except -1
# Like `poll_all`, after the thread that is inside, if any: of threads that only try, each may find another one there, which
# looks for what to wait for, again and again.
cdef int poll_in_turn() except -1

# Each source's `look_at_peers`; nothing while another thread is inside the engine.
cdef int look_at_all_peers() except -1
# What all sources' `may_sleep` say; False while another thread is inside the engine.
cdef bint may_all_sleep() except -1

# A thread without the GIL calls `any_ready` between these two only; it says yes, too, when the thread has to leave.
cdef void begin_watching() noexcept nogil
cdef void end_watching() noexcept nogil
cdef bint any_ready() noexcept nogil

# In a child made by fork: no source is polled, and no thread watches.  Their references are kept.
cdef void forget_all() noexcept

cdef extern from *:
    """
    #include <poll.h>
    #include <time.h>

    static inline int ompy_peek(int *word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }
    static inline unsigned long long ompy_peek_long(unsigned long long *word) {
        return __atomic_load_n(word, __ATOMIC_ACQUIRE);
    }
    static inline void ompy_poll(struct pollfd *set, int count, long nanoseconds) {
        struct timespec limit = {nanoseconds / 1000000000, nanoseconds % 1000000000};
        ppoll(set, count, &limit, NULL);
    }
    static inline int ompy_any_readable(struct pollfd *set, int count) { return poll(set, count, 0) > 0; }
    """
    struct pollfd:
        int fd
        short events
        short revents
    short POLLIN
    int peek "ompy_peek"(int *word) noexcept nogil
    unsigned long long peek_long "ompy_peek_long"(unsigned long long *word) noexcept nogil
    void poll_for "ompy_poll"(pollfd *descriptors, int count, long nanoseconds) noexcept nogil
    bint any_readable "ompy_any_readable"(pollfd *descriptors, int count) noexcept nogil

cdef enum:
    MOST_DESCRIPTORS = 63                        # those beyond are left to the back-stop

cdef struct Descriptors:
    pollfd list[MOST_DESCRIPTORS + 1]            # the last is for one of the caller's own
    int count
    bint complete                                # every source can be watched or polled
    bint helped                                  # one can be polled alone: it has a thread of its own

# The descriptors of all sources; after the thread that is inside the engine, if any.
cdef int gather(Descriptors *found) except -1
