# One word from each of some ranks: who has sent it, and a request that is complete once all have.
#
#     counts   0 2 1 0       rank 1 is a round ahead: its second word stays for the next `need`
#     missing  {0, 3}
from ompy.core.request cimport Request

cdef class Tally:
    cdef object communicator                     # whose ranks these are, for the job board
    cdef dict gone                               # rank -> why no word of it will come any more
    cdef bint patient                            # the words of the others are waited for all the same
    cdef list counts
    cdef set missing
    cdef Request request                         # of the `need` under way, or None
    cdef object error                            # that it will end with

    cdef int add(self, int rank) except -1
    # Complete once each of the ranks has sent its word, which is used up.
    cdef Request need(self, list ranks, int operation)
    # The `need` under way is over before they came: the words of those who did are there for the next one.
    cdef int put_back(self, list ranks) except -1
    # The `need` under way ends with an error where a rank that it waits for is gone: at once, or when the others' are here.
    cdef int note_failures(self) except -1
    # It ends with this error, whoever it waits for.
    cdef int fail(self, object error) except -1
    # It has ended with an error, and the words that have come for it are used up.
    cdef int forget(self) except -1
    # All words are here that will come.
    cdef int end(self) except -1
