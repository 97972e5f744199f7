# The point-to-point management layer: MPI's send and receive semantics (Open MPI slides, "PML: Interfaces").
#
# The layer above has checked arguments: ranks are in range and never PROC_NULL, counts not negative.  Memory is given
# as address, count and typemap; whoever calls keeps it alive until completion.  Every method may progress the engine.
#
# No method is called inside the engine (`ompy/core/owner.pxd`) but by what the engine calls: receivers, hooks and schedules,
# which may begin operations and never wait.  A PML enters it around whatever another thread must not see half done: a GIL is no
# lock where components in Python are called, or memory is allocated (a collection runs finalisers).  A PML in Python loses it
# between any two lines, and enters by `with ompy.core.owner.inside:`.  The requests that a PML makes can be abandoned
# (`ompy/core/request.pxd`).
#
# `mode` is MODE_STANDARD, MODE_SYNCHRONOUS or MODE_READY; buffered sends are standard sends of a copy that the layer above
# makes in the attached memory.
#
# Clauses are numbered and named: the conformance kit (`ompy conformance --mca pml NAME`) says which one was broken.
#
# LIFE CYCLE
#    1 open          The component's `query` makes the module, once in a process, after the transports.  `add_comm` comes before
#                    the first call on a communicator; other ranks may have sent on it earlier, and that is kept.
#    2 separate      A message is received on the communicator that it was sent on, whatever others the same ranks share, and in
#                    whatever order those were made and freed.  Ranks are the communicator's; of an inter-communicator, those of
#                    the remote group.
#    3 free          `del_comm` drops what nobody received on the communicator, and its memory; what goes on elsewhere goes on.
#    4 end           `finalize` returns when what was sent is where it arrives without this process.
#
# MATCHING (MPI-4.1, 3.5)
#    5 match         A receive takes a message of the source and the tag that it wants; ANY_SOURCE and ANY_TAG want all of them.
#                    Tags below zero belong to the library: ANY_TAG never takes those.
#    6 order         Of what one sender has sent, a receive takes the message that was sent first among those that it wants,
#                    whatever their lengths, modes and forms.
#    7 posted        A message is taken by the receive that was posted first among those that want it, with wildcards or
#                    without.
#    8 unexpected    A message that no receive wants yet is kept until one does, whatever its length and however many there are.
#    9 probe         `iprobe` and `probe` tell source, tag and bytes of the message that a receive of the same wishes would
#                    take, and leave it where it is.  `iprobe` says no only while none has come.
#   10 mprobe        `improbe` and `mprobe` take this message out: no other receive and no probe meets it again, what is behind
#                    it keeps its order, and `imrecv` or `imrecv_object` receives it whenever it is called.
#   11 cancel        A receive that was matched with nothing completes as cancelled, and takes nothing any more; one that was
#                    matched completes with its message.
#
# MESSAGES
#   12 delivery      Each message arrives once, whole and as it was, from 0 bytes on; memory of the receive behind it stays as
#                    it was.  Every mode delivers: standard, synchronous, and ready where the receive is posted.
#   13 layout        Either side's typemap may be any, with gaps, lower bounds and extents of its own; gaps stay as they are.
#   14 truncation    A message that is longer than its receive's memory fills that, and nothing behind it; the receive's error
#                    is ERR_TRUNCATE, the send completes, and whatever follows is not touched by this.
#   15 object        `irecv_object` and `imrecv_object` call `allocate(nbytes)` once, when the message is known, with its bytes;
#                    `request.buffer` is then what it returned, filled.
#
# REQUESTS
#   16 status        A receive's tells source, tag and bytes of its message, not of its wishes.
#   17 completion    A send is complete when the program may change its memory, and the message arrives as it was before; a
#                    receive when all bytes are in its memory, which nobody touches afterwards.  Both complete without another
#                    call for them, as soon as both sides make progress, and once.
#   18 synchronous   A send in synchronous mode is complete after a receive was matched with it, and not before.
#   19 persistent    What `isend_init` and `irecv_init` return does nothing until it is started; each start is an operation
#                    like any other, with what the memory holds then.
#   20 abandon       An abandoned receive that was not matched takes nothing; an abandoned send arrives as it was, though the
#                    program changes its memory.
#
# RULES
#   21 progress      No call but `send`, `recv`, `recv_object`, `probe` and `mprobe` waits for another rank.  What can go on
#                    goes on whenever this process makes progress, whatever else it waits for.
#   22 loss          `peer_lost` ends what waits for that process alone, with its `failure`: sends to it, synchronous ones among
#                    them, receives and probes that want it by name.  What is begun later raises it, or ends so, but for
#                    receives of what had come from it before, which may take that.  Everything else goes on, receives from
#                    any source too while there is another one.
#   23 threads       Any thread may call, several at once, and each has what these clauses say.
#   24 quiet         A component never prints, aborts or exits, nor writes beside memory that is its own or was given to it.
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
    # Set before an `isend` whose caller has still to wait for it, cleared by a PML that looks at it: its message may leave with
    # others, when the engine polls next.
    cdef bint deferrable

    cpdef int add_comm(self, Communicator comm) except -1
    cpdef int del_comm(self, Communicator comm) except -1
    cpdef int add_proc(self, Proc proc) except -1
    cpdef int del_proc(self, Proc proc) except -1

    # Contact with a process has ended, as a BTL or the launcher says, perhaps both.
    cpdef int peer_lost(self, Proc proc, object error) except -1

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
    # Every rank has finalised, and nobody sends here any more: give back what reaches peers without the BML.
    cpdef int close(self) except -1
    # What goes on this process's card beside the BTLs' addresses, each entry by the name that peers look for.
    cpdef dict cards(self)


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
