# A thread that moves the engine while the program does something else (MPI-4.1, 2.9 and 12.7.3: progress).
#
#     program       waits | computes ...............................  | waits
#     this thread   aside | asleep ..... polls, asleep ..... polls .. | aside
#                                 ^ a peer rings         ^
#
# While the program waits, it polls itself, and faster than a second thread could: this one keeps out of its way.  It looks
# again after 50, 100, 200, 400 us, and once one wait lasts as long as that, sleeps on a bell of its own until it ends.  Once
# the program has not waited for such a while, it arms the doorbell and sleeps as a wait does; what peers then bring is served
# as soon as it has the GIL.  What comes seldom comes alone, and to be woken takes longer than to serve: for 50 us it watches,
# without the GIL, before it sleeps again.
from libc.stdint cimport uint64_t

cdef class ProgressThread:
    cdef object thread                           # threading.Thread
    cdef int stopping
    cdef unsigned long long waits_seen
    cdef bint expecting                          # something was served, and nothing has been looked for since
    cdef readonly unsigned long long served      # rounds in which something came

    cdef void stand_aside(self) noexcept nogil
    cdef int serve(self) except -1


# The process has one while anybody wants it: as often as it was employed, it is dismissed.
cpdef int employ() except -1
cpdef int dismiss() except -1
# Whoever wants it, it stops now, for good.
cpdef int retire() except -1
cpdef bint is_employed() noexcept
