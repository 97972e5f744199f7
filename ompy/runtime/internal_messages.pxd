# Messages of the library's own over a communicator, for agreement.  Values are what `marshal` knows.
from ompy.core.communicator cimport Communicator
from ompy.core.request cimport Request

# Each rank's numbers (as many from every rank), in rank order; over an intra-communicator.
cdef list allgather(Communicator comm, list numbers)
# A value, from the root to all.
cdef object bcast(Communicator comm, object value, int root)

# An array.array, which must live until the request is complete.
cdef Request send(Communicator comm, object data, int dest, int tag)
cdef Request receive(Communicator comm, object data, int source, int tag)
# A value for the peer's, which does the same.
cdef object swap(Communicator comm, object value, int peer, int tag)
# The end of a blocking call of the PML, whose memory is the caller's.
cdef int conclude(Request request) except -1

# A tag of the program's as one that neither a program nor a collective uses.
cdef int agreement_tag(int tag)
