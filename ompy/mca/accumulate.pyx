# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""What accumulates do to memory.  See `accumulate.pxd`."""
from cpython.bytearray cimport PyByteArray_AS_STRING
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy

from ompy.core.basic cimport basics
from ompy.core.convertor cimport pack_all, unpack_all
from ompy.core.operation cimport Operation, predefined
from ompy.core.typemap cimport Typemap, predefined as predefined_type, span
from ompy.mca.osc cimport Access

from ompy.core.errors import ERR_ARG, ERR_OP, ERR_TYPE, MPIError

cdef enum:
    FAR_APART = 16                               # bytes of memory for one of data

REPLACE = predefined("REPLACE")
NO_OP = predefined("NO_OP")


cpdef int check_operation(Access access) except -1:
    """ERR_OP or ERR_TYPE unless the operation makes sense for the two types (MPI-4.1, 12.3.4)."""
    if not access.operation.predefined:
        raise MPIError(ERR_OP, f"op: a predefined operation expected in an accumulate, not {access.operation.name}")
    if not access.operation.defined_on(access.target_type):
        raise MPIError(ERR_OP, f"op: {access.operation.name} is not defined on the target's datatype")
    if access.origin_type.basic != access.target_type.basic:
        raise MPIError(ERR_TYPE, "origin and target of an accumulate must be of one and the same predefined datatype")
    return 0


cdef int combine(Operation operation, const char *data, char *place, Py_ssize_t count, Typemap typemap) except -1:
    cdef Py_ssize_t first = 0, nbytes
    cdef char *laid_out
    if operation is NO_OP:
        return 0
    if operation is REPLACE:
        unpack_all(data, count * typemap.size, place, count, typemap)
        return 0
    if typemap.contiguous:
        return operation.reduce(<char *> data, place, count, typemap)
    nbytes = span(typemap, count, &first)
    if nbytes // FAR_APART > count * typemap.size:
        return combine_far_apart(operation, data, place, count, typemap)
    # An operation wants both sides laid out alike.
    laid_out = <char *> malloc(max(nbytes, 1))
    if laid_out == NULL:
        raise MemoryError(f"no memory for {nbytes} bytes to accumulate from")
    try:
        unpack_all(data, count * typemap.size, laid_out - first, count, typemap)
        operation.reduce(laid_out - first, place, count, typemap)
    finally:
        free(laid_out)
    return 0


cdef int combine_far_apart(Operation operation, const char *data, char *place, Py_ssize_t count, Typemap typemap) except -1:
    """By packed copies: from one array of a dynamic window to another it may be farther than there is memory."""
    cdef Py_ssize_t nbytes = count * typemap.size
    cdef bytearray elements = bytearray(nbytes)
    pack_all(place, count, typemap, PyByteArray_AS_STRING(elements))
    combine_packed(operation, data, PyByteArray_AS_STRING(elements), nbytes // basics[typemap.basic].size,
                   predefined_type(typemap.basic))
    unpack_all(PyByteArray_AS_STRING(elements), nbytes, place, count, typemap)
    return 0


cdef int combine_packed(Operation operation, const char *data, char *elements, Py_ssize_t count, Typemap basic) except -1:
    cdef char *laid_out
    if basic.contiguous:
        return combine(operation, data, elements, count, basic)
    laid_out = <char *> malloc(count * basic.extent)
    if laid_out == NULL:
        raise MemoryError(f"no memory for {count * basic.extent} bytes to accumulate in")
    try:
        unpack_all(elements, count * basic.size, laid_out, count, basic)
        combine(operation, data, laid_out, count, basic)
        pack_all(laid_out, count, basic, elements)
    finally:
        free(laid_out)
    return 0


cdef bint swap_if_equal(const char *compare, const char *new, char *place, Typemap typemap) except -1:
    cdef bytearray now
    if typemap.contiguous:
        if memcmp(place, compare, typemap.size) != 0:
            return False
        memcpy(place, new, typemap.size)
        return True
    now = bytearray(typemap.size)
    pack_all(place, 1, typemap, PyByteArray_AS_STRING(now))
    if memcmp(PyByteArray_AS_STRING(now), compare, typemap.size) != 0:
        return False
    unpack_all(new, typemap.size, place, 1, typemap)
    return True


def combine_at(Operation operation not None, bytes data not None, size_t address, Py_ssize_t count, Typemap typemap not None):
    """`combine`, for components in Python: packed `data` with `count` elements at an address of this process.

    Errors: ERR_ARG when the data are not as many bytes as the elements.
    """
    require_bytes(data, count * typemap.size)
    combine(operation, data, <char *> address, count, typemap)


def swap_at(bytes compare not None, bytes new not None, size_t address, Typemap typemap not None):
    """`swap_if_equal`, for components in Python, on one element at an address of this process; whether it was equal.

    Errors: ERR_ARG when one of the two is not as many bytes as the element.
    """
    require_bytes(compare, typemap.size)
    require_bytes(new, typemap.size)
    return swap_if_equal(compare, new, <char *> address, typemap)


cdef int require_bytes(bytes data, Py_ssize_t expected) except -1:
    if len(data) != expected:
        raise MPIError(ERR_ARG, f"{expected} bytes of packed data expected, got {len(data)}")
    return 0
