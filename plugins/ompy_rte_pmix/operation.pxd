# A call that libpmix answers later, on its own thread, which never asks for the GIL.
from libc.stdint cimport int64_t

from ompy_rte_pmix.interface cimport (
    pmix_data_type_t, pmix_info_t, pmix_pdata_t, pmix_proc_t, pmix_status_t, pmix_value_t,
)

cdef extern from "<poll.h>" nogil:
    struct pollfd:
        int fd
        short events
        short revents
    short POLLIN
    int poll(pollfd *descriptors, unsigned long count, int milliseconds)

cdef struct Answer:
    int bell  # rung last: libpmix's thread is then done with all of this
    pmix_status_t status
    pmix_data_type_t type
    int64_t number
    char *content
    size_t length


cdef class Operation:
    cdef Answer answer
    cdef pmix_proc_t proc
    cdef list kept

    # What the call reads, which lives as long as this does: zeroes, a string, an array of strings with NULL at its end.
    cdef void *room(self, size_t size) except NULL
    cdef char *string(self, bytes text) except NULL
    cdef char **strings(self, texts) except NULL
    cdef pmix_info_t *infos(self, size_t count) except NULL
    cdef int label(self, pmix_info_t *info, bytes key, pmix_data_type_t kind) except -1

    cdef bint is_answered(self) noexcept
    # Until the answer is here; False when it is not in that time.  Signals' handlers run meanwhile, and may raise.
    cdef bint wait(self, double seconds) except -1
    # A number, or bytes.
    cdef result(self)


# A value as a number, whatever its width.
cdef int64_t number_of(const pmix_value_t *value, int64_t otherwise) noexcept nogil
cdef void ring(int descriptor) noexcept nogil

# What libpmix calls with an answer, whose `context` is the operation's `answer`.
cdef void finished(pmix_status_t status, void *context) noexcept nogil
cdef void registered(pmix_status_t status, size_t reference, void *context) noexcept nogil
cdef void answered(pmix_status_t status, pmix_value_t *value, void *context) noexcept nogil
cdef void found(pmix_status_t status, pmix_pdata_t *data, size_t count, void *context) noexcept nogil
cdef void started(pmix_status_t status, char *nspace, void *context) noexcept nogil
