# Message specifications: what the program passes as a buffer argument, as address, count and typemap.
#
#     buf   [buf, type]   [buf, count]   [buf, count, type]   [buf, (count, displ), type]      simple forms
#     [buf, counts]   [buf, (counts, displs), type]   [buf, counts, displs, type]              vector forms
#     [buf, (counts, displs), types]                                                           w forms
#
# A Spec lives on the caller's stack, so that a blocking call makes no heap object.  Every Spec that was parsed must be
# given to exactly one of `release` (the call is over) and `keep` (the operation outlasts the call):
#
#     cdef Spec spec
#     parse_send(buf, &spec)
#     try:
#         pml.send(spec.address, spec.count, <Typemap> spec.typemap, ...)
#     finally:
#         release(&spec)
from cpython.buffer cimport Py_buffer, PyBuffer_Release
from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF

from ompy.core.typemap cimport Typemap

cdef struct Spec:
    size_t address
    Py_ssize_t count
    PyObject *typemap                            # a Typemap; the Spec owns the reference
    PyObject *owner                              # what `keep` must hold besides the view; owned, or NULL
    bint held                                    # `view` is acquired
    Py_buffer view


# Both raise TypeError, ValueError, BufferError or MPIError naming the message, and leave nothing to release then.
# `blocks`: the count that is inferred is that of one of so many equal blocks (1 for point-to-point).
cdef int parse_send(object message, Spec *spec, Py_ssize_t blocks=*) except -1
cdef int parse_recv(object message, Spec *spec, Py_ssize_t blocks=*) except -1
cdef inline void release(Spec *spec) noexcept:
    if spec.held:
        PyBuffer_Release(&spec.view)
        spec.held = False
    Py_XDECREF(spec.typemap)
    Py_XDECREF(spec.owner)
    spec.typemap = NULL
    spec.owner = NULL


# Everything that the operation needs, in one object (or None); the Spec is empty afterwards.
cdef object keep(Spec *spec)

# Refuse, by the name of its argument, a datatype that the program has not committed.
cdef int require_committed(str name, Typemap typemap) except -1

# The steps in which what is no plain array is parsed; vector and w forms take them too (`collective_buffers.pyx`).
cdef class Parts:
    cdef object source, counts, displacements, kind


# `vector`: a list behind the buffer is one of counts.
cdef Parts split(object message, bint vector)
# Memory and typemap; the typemap is NULL for DATATYPE_NULL.
cdef int locate(Parts parts, bint writable, Spec *spec, Py_ssize_t *nbytes) except -1
# Address and size of the program's memory; the format, when wanted, becomes the typemap.
cdef int acquire_memory(object source, bint writable, bint want_format, Spec *spec, Py_ssize_t *nbytes) except -1
# How many elements fill the memory.
cdef Py_ssize_t whole_elements(Spec *spec, Py_ssize_t nbytes) except -1
# Bytes that elements may lie in.
cdef Py_ssize_t room_in(object source, Py_ssize_t nbytes) noexcept
# Refuse DATATYPE_NULL, and a datatype that the program has not committed.
cdef int require_typemap(Spec *spec) except -1
