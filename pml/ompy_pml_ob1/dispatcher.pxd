# What becomes of a message when it arrives.
from libc.stdint cimport uint64_t

from ompy.core.communicator cimport Communicator
from ompy.mca.btl cimport Btl, Receiver

from ompy_pml_ob1.engine cimport Engine
from ompy_pml_ob1.matching cimport Direct, Matching
from ompy_pml_ob1.recv_request cimport RecvRequest

cdef enum:
    RECENT = 64                     # communicators that are found without a dictionary
    CLOSED = 1024                   # contexts of freed ones, for which messages may still come; none is used twice


cdef class Dispatcher(Receiver):
    """Takes ob1's active messages, whichever BTL they come by."""
    cdef Engine engine
    cdef dict matchings             # context -> Matching
    cdef dict early                 # context -> messages for a communicator that is not made here yet
    cdef uint64_t closed[CLOSED]    # contexts of those freed last, each where its hash says
    cdef void *recent[RECENT]       # Matching, by the low bits of the context
    cdef unsigned long long matched, kept         # messages that found their receive posted, and that did not

    cdef int arrive_for_transfer(self, Btl btl, const char *data, size_t length) except -1
    cdef int arrive_envelope(self, Matching matching, const char *data, size_t length) except -1
    cdef int match(self, Matching matching, const char *data, size_t length) except -1

    cdef bint hand_over(self, Direct *direct, const char *data, size_t length) except -1
    # The request that takes the place of the receive that waits directly.
    cdef RecvRequest request_in_place(self, Matching matching)
    cdef int match_early(self, Matching matching, int source) except -1
    cdef int add(self, Matching matching) except -1
    cdef int drop(self, Communicator comm) except -1
