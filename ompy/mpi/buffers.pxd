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
from ompy.mca.coll cimport CollectiveCall

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

# Fill one side of a collective's call.  What must stay alive is returned: put it into `call.send_owner` or `call.recv_owner`.
# Simple forms; `blocks` as above.  IN_PLACE and None are the caller's to look for (`is_in_place`).
cdef object fill_send(CollectiveCall call, object message, Py_ssize_t blocks)
cdef object fill_recv(CollectiveCall call, object message, Py_ssize_t blocks)
# Vector forms: counts and displacements (in elements) for `blocks` peers.
cdef object fill_send_vector(CollectiveCall call, object message, Py_ssize_t blocks)
cdef object fill_recv_vector(CollectiveCall call, object message, Py_ssize_t blocks)
# W forms: counts, displacements (in bytes) and types for `blocks` peers.
cdef object fill_send_types(CollectiveCall call, object message, Py_ssize_t blocks)
cdef object fill_recv_types(CollectiveCall call, object message, Py_ssize_t blocks)

cdef bint is_in_place(object message) noexcept
# Refuse, by the name of its argument, a datatype that the program has not committed.
cdef int require_committed(str name, Typemap typemap) except -1
# `blocks` counts from a sequence or an array of integers, PyMem_Malloc'd; `name` is for the error's words.
cdef Py_ssize_t *parse_counts(object values, Py_ssize_t blocks, str name) except NULL
