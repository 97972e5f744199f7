# What is known of a finished receive (MPI-4.1, 3.2.5).
#
#   source, tag   envelope of the message; ANY_SOURCE and ANY_TAG in an empty status
#   error         an error class of `ompy.core.errors`, 0 for success
#   cancelled     1 when a cancel took effect
#   nbytes        bytes of data that arrived; the MPI layer turns them into a count of some datatype

cdef struct StatusRecord:
    int source
    int tag
    int error
    bint cancelled
    Py_ssize_t nbytes


cdef inline void set_empty(StatusRecord *status) noexcept nogil:
    status.source = -1
    status.tag = -1
    status.error = 0
    status.cancelled = 0
    status.nbytes = 0
