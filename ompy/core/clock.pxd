# The clock that a program sees: the host's, unless a component that simulates a machine has put its own in place.
ctypedef double (*ClockFunction)(void *context) noexcept

# From now on `Wtime` is `read(context)`, in seconds, in steps of `tick`; `owner` is kept alive.  NULL: the host's again.
cdef int replace(ClockFunction read, void *context, double tick, object owner) except -1
cdef double now() noexcept
cdef double resolution() noexcept
