# Python objects as messages.
#
# A small object travels as its pickle, byte for byte, so that a raw receive can unpickle it.  Large buffers inside an
# object (PEP 574) travel straight from the sender's memory, in the same message:
#
#     | header: magic, sizes | pickle | pad | buffer 0 | pad | buffer 1 | pad |       each part 64-byte aligned
#
# The receiver takes the whole message into one block of memory; the objects' buffers are parts of that block, so that a
# received array lies where the transport wrote it.
from ompy.core.typemap cimport Typemap


cdef class Parcel:
    """A pickled object, ready to be sent as `count` elements of `typemap` at `address`."""
    cdef readonly size_t address
    cdef readonly Py_ssize_t count
    cdef readonly Typemap typemap
    cdef readonly Py_ssize_t nbytes              # length of the message, what the receiver allocates
    cdef object failure                          # of a collective: why this is not the object; else None
    cdef object kept                             # the pickle and the buffers, alive as long as the parcel


# Pickle an object with `MPI.pickle`.
cdef Parcel wrap(object obj)
# The same as it is now: nothing of it lies in the object's own memory, which the program may change before it is sent.
cdef Parcel wrap_snapshot(object obj)
# The same with the standard pickle, whatever `MPI.pickle` is.
cdef Parcel wrap_standard(object obj)
# The same for a short message that is sent at once, to `room`, of PLAIN_ROOM bytes (see `plain.pxd`); returns its length.
# What is not plain has length 0, and is to be wrapped.
cdef Py_ssize_t write_plain(object obj, char *room) noexcept
cdef Parcel wrap_pickle(object obj)
# Memory for a message is made by the Python function `new_block(nbytes)`, which a PML's `irecv_object` takes.
# The object in a received message (anything with the buffer protocol, at least a message long).  UnpicklingError for a header
# that is not true of the message.
cdef object unwrap(object block)
# Address of a block's first byte.
cdef size_t block_address(object block) except? 0
# The parcel's bytes in one block, for collectives that put several objects into one buffer.
cdef object flatten(Parcel parcel)
