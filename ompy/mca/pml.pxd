# The point-to-point management layer: MPI's send and receive semantics (Open MPI slides, "PML: Interfaces").
#
# The layer above has checked arguments: ranks are in range and never PROC_NULL, counts not negative.  Memory is given
# as address, count and typemap; whoever calls keeps it alive until completion.  Every method may progress the engine.
#
# No method is called inside the engine (`ompy/core/owner.pxd`) but by what the engine calls: receivers, hooks and schedules,
# which may begin operations and never wait.  A PML enters it around whatever another thread must not see half done: a GIL is no
# lock where components in Python are called, or memory is allocated (a collection runs finalisers).  The requests that a PML
# makes can be abandoned (`ompy/core/request.pxd`): then the program may do as it likes with its memory, and the message,
# a sent one, arrives all the same.
#
# `mode` is MODE_STANDARD, MODE_SYNCHRONOUS or MODE_READY; buffered sends are standard sends of a copy that the layer above
# makes in the attached memory.
from ompy.core.communicator cimport Communicator
from ompy.core.proc cimport Proc
from ompy.core.request cimport Request
from ompy.core.status cimport StatusRecord
from ompy.core.typemap cimport Typemap

cdef enum:
    INTERFACE = 1


cdef class Message:
    """A message taken out of the matching queues by a matched probe (MPI-4.1, 3.8.2)."""
    cdef StatusRecord status
    cdef public object communicator
    cdef object hold                             # keeps that able to carry the message (`core/communicator.pxd`)


cdef class Pml:
    cdef readonly str name
    cdef readonly int tag_upper_bound

    cpdef int add_comm(self, Communicator comm) except -1
    cpdef int del_comm(self, Communicator comm) except -1
    cpdef int add_proc(self, Proc proc) except -1
    cpdef int del_proc(self, Proc proc) except -1

    # Blocking: None when it is over; else the caller waits for what is returned, and concludes or abandons it.
    cpdef Request send(self, size_t address, Py_ssize_t count, Typemap typemap, int dest, int tag, int mode,
                       Communicator comm)
    cpdef Request isend(self, size_t address, Py_ssize_t count, Typemap typemap, int dest, int tag, int mode,
                        Communicator comm)
    cpdef Request isend_init(self, size_t address, Py_ssize_t count, Typemap typemap, int dest, int tag, int mode,
                             Communicator comm)
    # The same: None when the message is there, with `status` (which may be NULL) filled in.
    cdef Request recv(self, size_t address, Py_ssize_t count, Typemap typemap, int source, int tag, Communicator comm,
                      StatusRecord *status)
    cpdef Request irecv(self, size_t address, Py_ssize_t count, Typemap typemap, int source, int tag, Communicator comm)
    cpdef Request irecv_init(self, size_t address, Py_ssize_t count, Typemap typemap, int source, int tag,
                             Communicator comm)
    # A receive whose memory is made when the message is matched: `allocate(nbytes)` returns a writable contiguous
    # buffer, kept in `request.buffer`.
    cpdef Request irecv_object(self, object allocate, int source, int tag, Communicator comm)
    # The same, and waits for it; returns the buffer.  Raises MPIError with `status` filled in all the same.
    cdef object recv_object(self, object allocate, int source, int tag, Communicator comm, StatusRecord *status)

    cdef bint iprobe(self, int source, int tag, Communicator comm, StatusRecord *status) except -1
    cdef int probe(self, int source, int tag, Communicator comm, StatusRecord *status) except -1
    cpdef Message improbe(self, int source, int tag, Communicator comm)          # None: nothing there
    cpdef Message mprobe(self, int source, int tag, Communicator comm)
    cpdef Request imrecv(self, size_t address, Py_ssize_t count, Typemap typemap, Message message)
    cpdef Request imrecv_object(self, object allocate, Message message)

    # For the job board and for people: the posted and unexpected queues of a communicator, as dicts.
    cpdef dict dump(self, Communicator comm)
    cpdef int finalize(self) except -1


# The end of `recv_object` by a request that has begun.
cdef object wait_for_object(Request request, StatusRecord *status)

# The PML of this process, set once when it is chosen; after the end one that raises.
cdef Pml pml
# Why there is none any more (MPI was finalised, this process is a rank's child), or None.  Who reaches peers by another way
# than the PML looks at this first.
cdef str closed
cpdef Pml chosen()
cpdef int choose(Pml module) except -1
cpdef int close(str reason) except -1
