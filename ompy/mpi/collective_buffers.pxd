# What the program passes as a buffer argument of a collective, as one side of its call; `buffers.pxd` lists the forms.
from ompy.mca.coll cimport CollectiveCall

# Fill one side of a collective's call.  What must stay alive is returned: put it into `call.send_owner` or `call.recv_owner`.
# IN_PLACE and None are the caller's to look for (`is_in_place`).
# Simple forms; `blocks`: the count that is inferred is that of one of so many equal blocks.
cdef object fill_send(CollectiveCall call, object message, Py_ssize_t blocks)
cdef object fill_recv(CollectiveCall call, object message, Py_ssize_t blocks)
# Vector forms: counts and displacements (in elements) for `blocks` peers.
cdef object fill_send_vector(CollectiveCall call, object message, Py_ssize_t blocks)
cdef object fill_recv_vector(CollectiveCall call, object message, Py_ssize_t blocks)
# W forms: counts, displacements (in bytes) and types for `blocks` peers.
cdef object fill_send_types(CollectiveCall call, object message, Py_ssize_t blocks)
cdef object fill_recv_types(CollectiveCall call, object message, Py_ssize_t blocks)

cdef bint is_in_place(object message) noexcept

# `blocks` counts from a sequence or an array of integers, PyMem_Malloc'd; `name` is for the error's words.
cdef Py_ssize_t *parse_counts(object values, Py_ssize_t blocks, str name) except NULL
