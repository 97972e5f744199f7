# A request for one message between the program's memory and a peer: what every PML's sends and receives have in common.
#
# The memory is `count` elements of `typemap` at `address`.  A convertor stands by where they are not contiguous; a PML that
# moves contiguous memory by other means needs none and sees None.
#
# A receive learns of its message by `open`, and then takes the bytes by `place`, in any order.  What does not fit is dropped,
# and the wait raises ERR_TRUNCATE; `wanted` is what does fit.  What comes for an abandoned one is dropped.
from libc.stdint cimport uint64_t

from ompy.core.convertor cimport Convertor
from ompy.core.request cimport Request
from ompy.core.typemap cimport Typemap

cdef class MessageRequest(Request):
    cdef size_t address
    cdef Py_ssize_t count
    cdef Typemap typemap            # None: `nbytes` bytes
    cdef Convertor convertor        # None for contiguous memory
    # -- of a receive
    cdef object allocate            # makes the memory at match time, or None
    cdef int wanted_source, wanted_tag
    cdef bint plain                 # the memory is there already, and contiguous
    cdef uint64_t wanted            # bytes of the message that fit
    cdef uint64_t received          # bytes that have arrived

    # The message as bytes in a row in memory of our own, which is returned: the program's is not looked at any more.
    cdef object set_aside(self)

    cdef int aim(self, size_t address, Py_ssize_t count, Typemap typemap, object allocate, int source, int tag) except -1
    # The message is known: fill in the status, make the memory if that is left to us, find out how much fits.
    cdef int open(self, int source, int tag, uint64_t length) except -1
    cdef int make_memory(self, uint64_t length) except -1
    # The same and `place` for a message that is here in one piece.
    cdef int take_whole(self, int source, int tag, const char *data, size_t length) except -1
    # Put bytes of the message, from `offset` on, where they belong.
    cdef int place(self, uint64_t offset, const char *data, size_t length) except -1
