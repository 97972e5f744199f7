# When signal handlers run, and where what they raise goes.
#
# They run in the main thread, within MPI between two rounds of a wait, where nothing is half done.  What one raises ends the
# wait; or it is kept, where the other ranks count on this one's part of what has begun:
#
#     keep_exceptions      wait      wait      raise_kept
#           |               ^ raises              |
#           |               '...... kept ........>' raised
#
# Either without limit, and handlers run in waits alone (`keep_exceptions`), where what goes on in Python in between must not be
# interrupted.  Or, where that is C, or the program's own functions, as long as others may be expected to come soon
# (`keep_a_while`): who waits for one that hangs gets what its watchdog raises a few seconds late.
from libc.stdint cimport int64_t

from ompy.core.owner cimport NOBODY, allow_handlers, engine, forbid_handlers, is_inside, remind, this_thread

cdef struct Keeping:
    int calls                       # of the main thread, in which alone handlers run, that keep what these raise
    int unlimited                   # of these
    int kept                        # whether there is an exception
    int64_t since                   # when that was, nanoseconds

cdef Keeping keeping

# From the first call to the second, signal handlers run in this thread's waits alone, and what they raise there is kept, and
# then raised: for those whose peers wait, too, for what they do next.  To a handler, what it calls is not within the two.
cdef inline int keep_exceptions() except -1:
    if this_thread() == engine.main:
        keeping.calls += 1
        keeping.unlimited += 1
        engine.outside = NOBODY
        engine.handling[0] = NOBODY
    return 0


cdef inline int raise_kept() except -1:
    if this_thread() != engine.main:
        return 0
    keeping.unlimited -= 1
    if keeping.unlimited == 0:
        engine.outside = engine.main
        if not is_inside():
            engine.handling[0] = engine.main
    keeping.calls -= 1
    return raise_first() if keeping.calls == 0 and (keeping.kept or engine.pending[0]) else 0


# The same for a while only, and handlers run as ever.
cdef inline int keep_a_while() noexcept:
    if this_thread() == engine.main:
        keeping.calls += 1
    return 0


cdef inline int raise_kept_a_while() except -1:
    if this_thread() != engine.main:
        return 0
    keeping.calls -= 1
    return raise_first() if keeping.calls == 0 and keeping.kept else 0


# The end of the same, where there is more to do first: what was kept is raised by the next wait, or by `raise_late`.
cdef inline void end_keeping() noexcept:
    if this_thread() == engine.main:
        keeping.calls -= 1


cdef inline int raise_late() except -1:
    return raise_first() if keeping.kept and keeping.calls == 0 and this_thread() == engine.main else 0


# From the first to the second, for what must reach the program whatever comes meanwhile: handlers run in this thread's waits
# alone, and what they raise ends those, as ever.  Whether the second is this caller's to call.
cdef inline bint defer_handlers() noexcept:
    if this_thread() != engine.main or engine.outside == NOBODY:
        return False
    forbid_handlers()
    return True


cdef inline void resume_handlers() noexcept:
    allow_handlers()
    if engine.pending[0]:
        remind()


# What was kept, or what a handler raises now that has not run yet.
cdef int raise_first() except -1
# The exception that this thread has kept so far, also of signals that no wait has looked for, or None.
cdef object exception_kept()
# Run them now, and raise what they raise, also between the two: for who waits for the kernel, and has a way to give up.
cdef int handle_signals() except -1
# Run them now, as a wait does: what they raise is raised, unless it is kept.
cdef int check_signals() except -1
