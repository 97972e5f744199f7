# When signal handlers run, and where what they raise goes.
#
# They run in the main thread, within MPI between two rounds of a wait, where nothing is half done.  What one raises ends the
# wait; or it is kept, where the other ranks count on this one's part of what has begun:
#
#     keep_exceptions      wait      wait      raise_kept
#           |               ^ raises              |
#           |               '...... kept ........>' raised
from ompy.core.owner cimport NOBODY, engine, is_inside, this_thread

cdef struct Keeping:
    int calls                       # of the main thread, in which alone handlers run, that keep what these raise
    int kept                        # whether there is an exception

cdef Keeping keeping

# From the first call to the second, signal handlers run in this thread's waits alone, and what they raise there is kept, and
# then raised: for those whose peers wait, too, for what they do next.  To a handler, what it calls is not within the two.
cdef inline int keep_exceptions() except -1:
    if this_thread() == engine.main:
        keeping.calls += 1
        engine.outside = NOBODY
        engine.handling[0] = NOBODY
    return 0


cdef inline int raise_kept() except -1:
    if this_thread() != engine.main:
        return 0
    keeping.calls -= 1
    if keeping.calls:
        return 0
    engine.outside = engine.main
    if not is_inside():
        engine.handling[0] = engine.main
    return raise_first() if keeping.kept or engine.pending[0] else 0


# What was kept, or what a handler raises now that has not run yet.
cdef int raise_first() except -1
# The exception that this thread has kept so far, also of signals that no wait has looked for, or None.
cdef object exception_kept()
# Run them now, and raise what they raise, also between the two: for who waits for the kernel, and has a way to give up.
cdef int handle_signals() except -1
# Run them now, as a wait does: what they raise is raised, unless it is kept.
cdef int check_signals() except -1
