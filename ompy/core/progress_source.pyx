# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-O3
"""Who is polled: the sources of the progress engine; described in `progress_source.pxd`."""
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from libc.stdlib cimport realloc

from ompy.core.owner cimport enter, leave, try_enter

cdef extern from *:
    """
    #include <sched.h>

    static void ompy_add(int *count, int change) { __atomic_fetch_add(count, change, __ATOMIC_SEQ_CST); }
    static void ompy_write(int *word, int value) { __atomic_store_n(word, value, __ATOMIC_SEQ_CST); }
    """
    int sched_yield() nogil
    void add_int "ompy_add"(int *count, int change) noexcept nogil
    void write_int "ompy_write"(int *word, int value) noexcept nogil

# A source whose `ready` says no, or that has none, is asked all the same, after 1, 2, 4 ... rounds, at most this many: a
# call may be costly (Python, a system call).  Its own events start again from 1; those of others do so where there is a
# `ready`, since such sources are cheap to ask and may have waited for just that.
cdef int LONGEST_PAUSE = 512
# Of so many rounds that might end early one does not, so that nobody is forgotten.
cdef enum:
    MOST_CUT = 16
cdef unsigned int rounds_cut = 0

entries = NULL
entry_count = 0
cdef int entry_room = 0
cdef int watchers = 0                            # threads that may be inside a `ready`
cdef int eviction = 0                            # asks them to leave

never = 0
goal = &never


cdef class ProgressSource:
    """Something to be polled; see `progress_source.pxd`."""

    cpdef int progress(self) except -1:
        """Do what can be done now; returns the number of events."""
        raise NotImplementedError(f"{type(self).__name__} does not override progress")

    cpdef int descriptor(self) except -2:
        """A file descriptor that becomes readable when there is something to do, or -1."""
        return -1

    cpdef bint may_sleep(self) except -1:
        """About to sleep: False when there is something to do after all."""
        return True

    cpdef int look_at_peers(self) except -1:
        """Report peers that have gone, where nothing else tells of it; returns how many."""
        return 0


cdef int position_of(ProgressSource source) noexcept:
    cdef int index
    for index in range(entry_count):
        if entries[index].source == <PyObject *> source:
            return index
    return -1


cpdef int register_source(ProgressSource source) except -1:
    """Poll this source from now on; again is harmless."""
    global entries, entry_count, entry_room, changes
    cdef void *larger
    if position_of(source) >= 0:
        return 0
    exclude_watchers()
    if entry_count == entry_room:
        larger = realloc(entries, (2 * entry_room + 8) * sizeof(Entry))
        if larger == NULL:
            raise MemoryError("no memory for another progress source")
        entries = <Entry *> larger
        entry_room = 2 * entry_room + 8
    Py_INCREF(source)
    entries[entry_count] = Entry(<PyObject *> source, source.ready, source.ready_context, 1, 0)
    entry_count += 1
    changes += source.ready == NULL or source.descriptor() >= 0
    return 0


cpdef int unregister_source(ProgressSource source) except -1:
    """Do not poll this source any more; harmless when it was not registered."""
    global entry_count, changes
    cdef int index = position_of(source)
    if index < 0:
        return 0
    exclude_watchers()
    entry_count -= 1
    while index < entry_count:
        entries[index] = entries[index + 1]
        index += 1
    changes += source.ready == NULL or source.descriptor() >= 0
    Py_DECREF(source)
    return 0


cdef int ask(ProgressSource source, int index) except -1:
    """Calls one source's `progress`."""
    global events_made
    cdef int other
    cdef int events = source.progress()
    if events > 0:
        events_made += events
        for other in range(entry_count):
            if entries[other].ready != NULL or other == index:
                entries[other].pause = 1
                entries[other].countdown = 0
        wake()                                   # another thread's request may be among what is now complete
    elif index < entry_count:
        if entries[index].pause < LONGEST_PAUSE:
            entries[index].pause *= 2
        entries[index].countdown = entries[index].pause
    return events


cdef int poll_from(int index) except -1:
    global rounds_cut
    cdef int events = 0
    while index < entry_count:
        events += ask(<ProgressSource> entries[index].source, index)
        if goal[0]:
            rounds_cut += 1
            if rounds_cut % MOST_CUT:
                break
        index = next_due(index + 1)
    return events


cdef int poll_all() except -1:
    cdef int index
    for index in range(entry_count):
        entries[index].countdown = 0
    return poll_once()


cdef int poll_in_turn() except -1:
    cdef int index
    for index in range(entry_count):
        entries[index].countdown = 0
    enter()
    try:
        return poll_from(next_due(0))
    finally:
        leave()


cdef int look_at_all_peers() except -1:
    cdef int index = 0
    if not try_enter():
        return 0
    try:
        while index < entry_count:
            (<ProgressSource> entries[index].source).look_at_peers()
            index += 1
    finally:
        leave()
    return 0


cdef bint may_all_sleep() except -1:
    cdef int index = 0
    cdef bint quiet = True
    if not try_enter():
        return False
    try:
        while index < entry_count:
            if not (<ProgressSource> entries[index].source).may_sleep():
                quiet = False
            index += 1
    finally:
        leave()
    return quiet


cdef int gather(Descriptors *found) except -1:
    enter()
    try:
        return gather_each(found)
    finally:
        leave()


cdef int gather_each(Descriptors *found) except -1:
    cdef int index = 0
    cdef int number
    found.count = 0
    found.complete = True
    found.helped = False
    while index < entry_count:
        number = (<ProgressSource> entries[index].source).descriptor()
        if number >= 0 and found.count < MOST_DESCRIPTORS:
            found.list[found.count] = pollfd(number, POLLIN, 0)
            found.count += 1
            found.helped |= entries[index].ready == NULL
        elif index < entry_count and entries[index].ready == NULL:
            found.complete = False
        index += 1
    return 0


# -- without the GIL

cdef void begin_watching() noexcept nogil:
    add_int(&watchers, 1)


cdef void end_watching() noexcept nogil:
    add_int(&watchers, -1)


cdef bint any_ready() noexcept nogil:
    cdef int index
    if peek(&eviction):
        return True
    for index in range(entry_count):
        if entries[index].ready != NULL and entries[index].ready(entries[index].ready_context):
            return True
    return False


cdef void exclude_watchers() noexcept:
    global eviction
    if peek(&watchers):
        write_int(&eviction, 1)
        while peek(&watchers):
            sched_yield()
        write_int(&eviction, 0)


cdef void forget_all() noexcept:
    global entry_count, watchers, eviction, goal
    entry_count = watchers = eviction = 0
    goal = &never
