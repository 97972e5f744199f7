# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""A call that libpmix answers later.  See `operation.pxd`."""
import time

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, strlen, strncpy

from ompy_rte_pmix.interface cimport *

from ompy.core.errors import ERR_ARG, ERR_INTERN, MPIError

cdef extern from "<sys/eventfd.h>" nogil:
    int EFD_CLOEXEC
    int eventfd(unsigned int value, int flags)

cdef extern from "<unistd.h>" nogil:
    ssize_t write(int descriptor, const void *data, size_t size)
    int close(int descriptor)

cdef enum:
    SLICE = 100  # milliseconds: a signal that another thread has got is noticed after so long


# -- on libpmix's thread

cdef void ring(int descriptor) noexcept nogil:
    cdef uint64_t one = 1
    write(descriptor, &one, sizeof(one))


cdef int64_t number_of(const pmix_value_t *value, int64_t otherwise) noexcept nogil:
    if value.type == TYPE_BOOL:
        return value.data.flag
    if value.type == TYPE_SIZE or value.type == TYPE_UINT64 or value.type == TYPE_INT64:
        return value.data.int64
    if value.type == TYPE_INT or value.type == TYPE_INT32 or value.type == TYPE_STATUS:
        return value.data.int32
    if value.type == TYPE_UINT or value.type == TYPE_UINT32 or value.type == TYPE_PROC_RANK:
        return value.data.uint32
    if value.type == TYPE_INT16:
        return value.data.int16
    if value.type == TYPE_UINT16:
        return value.data.uint16
    if value.type == TYPE_INT8:
        return value.data.int8
    if value.type == TYPE_UINT8:
        return value.data.uint8
    return otherwise


cdef void finished(pmix_status_t status, void *context) noexcept nogil:
    cdef Answer *answer = <Answer *> context
    answer.status = status
    ring(answer.bell)


cdef void registered(pmix_status_t status, size_t reference, void *context) noexcept nogil:
    finished(status, context)


cdef void answered(pmix_status_t status, pmix_value_t *value, void *context) noexcept nogil:
    if status == SUCCESS and value != NULL:
        keep(<Answer *> context, value)
    finished(status, context)


cdef void found(pmix_status_t status, pmix_pdata_t *data, size_t count, void *context) noexcept nogil:
    if status == SUCCESS and count:
        keep(<Answer *> context, &data[0].value)
    finished(status, context)


cdef void started(pmix_status_t status, char *nspace, void *context) noexcept nogil:
    if status == SUCCESS and nspace != NULL:
        copy(<Answer *> context, nspace, strlen(nspace))
    finished(status, context)


cdef void keep(Answer *answer, const pmix_value_t *value) noexcept nogil:
    answer.type = value.type
    if value.type == TYPE_BYTE_OBJECT:
        copy(answer, value.data.bo.bytes, value.data.bo.size)
    elif value.type == TYPE_STRING and value.data.string != NULL:
        copy(answer, value.data.string, strlen(value.data.string))
    else:
        answer.number = number_of(value, -1)


cdef void copy(Answer *answer, const char *data, size_t length) noexcept nogil:
    answer.content = <char *> malloc(length + 1)
    if answer.content != NULL:
        memcpy(answer.content, data, length)
        answer.length = length


# -- on the rank's threads

cdef class Operation:
    """A call that libpmix answers later, and what it reads until then.

    Attributes:
        bell: readable once the answer is here.
    """

    def __cinit__(self) -> None:
        self.answer.bell = eventfd(0, EFD_CLOEXEC)
        if self.answer.bell < 0:
            raise MPIError(ERR_INTERN, "no descriptor is left for an answer of the PMIx server's")
        self.kept = []

    def __dealloc__(self) -> None:
        free(self.answer.content)
        if self.answer.bell >= 0:
            close(self.answer.bell)

    @property
    def bell(self) -> int:
        return self.answer.bell

    cdef void *room(self, size_t size) except NULL:
        made = bytearray(size)
        self.kept.append(made)
        return <char *> made

    cdef char *string(self, bytes text) except NULL:
        if b"\0" in text:
            raise MPIError(ERR_ARG, f"{text!r}: PMIx takes no zero byte in it")
        self.kept.append(text)
        return <char *> text

    cdef char **strings(self, texts) except NULL:
        cdef char **made = <char **> self.room((len(texts) + 1) * sizeof(char *))
        for place, text in enumerate(texts):
            made[<size_t> place] = self.string(text)
        return made

    cdef pmix_info_t *infos(self, size_t count) except NULL:
        return <pmix_info_t *> self.room(max(count, 1) * sizeof(pmix_info_t))

    cdef int label(self, pmix_info_t *info, bytes key, pmix_data_type_t kind) except -1:
        if len(key) > MAX_KEYLEN or b"\0" in key:
            raise MPIError(ERR_ARG, f"{key!r}: PMIx takes names of at most {MAX_KEYLEN} bytes")
        strncpy(info.key, <char *> key, MAX_KEYLEN)
        info.value.type = kind
        return 0

    cdef bint is_answered(self) noexcept:
        cdef pollfd asked = pollfd(self.answer.bell, POLLIN, 0)
        return poll(&asked, 1, 0) > 0

    cdef bint wait(self, double seconds) except -1:
        cdef pollfd asked = pollfd(self.answer.bell, POLLIN, 0)
        cdef double end = time.monotonic() + seconds
        while True:
            with nogil:
                poll(&asked, 1, SLICE)
            if asked.revents:
                return True
            PyErr_CheckSignals()
            if time.monotonic() > end:
                return False

    cdef result(self):
        if self.answer.content != NULL:
            return self.answer.content[: self.answer.length]
        return self.answer.number
