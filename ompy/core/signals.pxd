# When signal handlers run, and where what they raise goes.
#
# They run in the main thread, within MPI between two rounds of a wait, where nothing is half done.  What one raises ends the
# wait; or it is kept, where the other ranks count on this one's part of what has begun:
#
#     keep_exceptions      wait      wait      raise_kept
#           |               ^ raises              |
#           |               '...... kept ........>' raised

# From the first call to the second, signal handlers run in this thread's waits alone, and what they raise there is kept, and
# then raised: for those whose peers wait, too, for what they do next.  To a handler, what it calls is not within the two.
cdef int keep_exceptions() except -1
cdef int raise_kept() except -1
# The exception that this thread has kept so far, also of signals that no wait has looked for, or None.
cdef object exception_kept()
# Run them now, and raise what they raise, also between the two: for who waits for the kernel, and has a way to give up.
cdef int handle_signals() except -1
# Run them now, as a wait does: what they raise is raised, unless it is kept.
cdef int check_signals() except -1
