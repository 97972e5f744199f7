# Messages from and to memory, whichever call begins them.  `buf` is in any form of `buffers.pxd`.
from ompy.core.communicator cimport Communicator
from ompy.core.request cimport Request as CoreRequest
from ompy.core.typemap cimport Typemap
from ompy.mpi.request cimport Prequest, Request

# Of packed data.
cdef Typemap byte_typemap

# Calls as a whole, with the communicator's error handler.
cdef int send(Communicator comm, object buf, int dest, int tag, int mode) except -1
cdef Request isend(Communicator comm, object buf, int dest, int tag, int mode)
cdef Prequest send_init(Communicator comm, object buf, int dest, int tag, int mode)
cdef Prequest recv_init(Communicator comm, object buf, int source, int tag)

# Parts of calls, which raise MPIError.  The caller has checked the envelope of what is sent.
cdef int send_memory(Communicator comm, object buf, int dest, int tag, int mode) except -1
cdef CoreRequest begin_send(Communicator comm, object buf, int dest, int tag, int mode)
cdef CoreRequest begin_receive(Communicator comm, object buf, int source, int tag)
# A message out, and another one in: what is wrong with the first is found before the second is taken from the queues.  The
# first one sends, and returns the receive; the other returns both as one.
cdef CoreRequest send_and_begin_receive(Communicator comm, object sendbuf, int dest, int sendtag, object recvbuf, int source,
                                        int recvtag)
cdef CoreRequest begin_both(Communicator comm, object sendbuf, int dest, int sendtag, object recvbuf, int source, int recvtag)
# The call that this receive belongs to has failed; the program's memory is the request's as long as it is used.
cdef int give_up(CoreRequest receive) except -1
# The packed data of a message, which is about to be overwritten; None for one to PROC_NULL.
cdef object copy_of(object buf, int dest, Py_ssize_t *nbytes)
