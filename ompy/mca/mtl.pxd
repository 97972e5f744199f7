# Matching transport layers: messages matched by the "network", below pml/cm (Open MPI's `mtl`).
#
# An MTL does what a PML does of matching, order and completion; pml/cm stands above it and turns MPI's calls into these.
# The rules of `pml.pxd` hold: arguments are checked, whoever calls keeps memory alive until completion, every method may
# progress the engine, negative tags belong to the library and ANY_TAG never takes them.
#
# Messages are sent, received, probed and cancelled by one thread at a time: pml/cm does so inside the engine
# (`ompy/core/owner.pxd`), but for the short cut `send`, which enters it by itself.
#
# An MTL moves contiguous bytes.  A request hands it `data`, which is the program's memory or, where that is not contiguous,
# a packed copy:
#
#     send      start packs, then `isend`                      the MTL calls `finish` or `fail`
#     receive   start makes `data`, then `irecv`               the MTL calls `deposited`, or `copied`, or `landing` and `landed`
#
# A call that a signal ends abandons its request (`ompy/core/request.pxd`): a receive by `withdraw`, else `forget`.  A send
# goes on, and arrives as it was: the MTL is asked to `set_aside` what lies in the program's memory, and where it can't, as one
# that does not override it, the signal's exception waits until the send is complete.
#
# An MTL subclasses both requests with what it keeps for each message, and makes them in `new_send` and `new_recv`.  One in
# plain Python overrides the cpdef methods and sees memoryviews.
#
# Clauses are numbered and named: the conformance kit (`ompy conformance --mca mtl NAME`) says which one was broken.
#
# LIFE CYCLE
#    1 open          The component's `query` makes the module, once in a process; pml/cm asks for it.  Messages may come before
#                    the communicator is known here, and are kept.
#    2 separate      A message is received on the communicator that it was sent on, by its `context`; ranks are the
#                    communicator's, of an inter-communicator those of the remote group.
#    3 free          `del_comm` drops what nobody received on the communicator; what goes on elsewhere goes on.
#    4 end           `finalize` returns when what was sent is where it arrives without this process.  `close` comes when every
#                    rank has finalised: nobody sends here any more.
#
# MATCHING (MPI-4.1, 3.5)
#    5 match         A receive takes a message of the source and the tag that it wants (`peer`, `tag`; -1 wants any).  Tags
#                    below zero belong to the library: a wildcard never takes those.
#    6 order         Of what one sender has sent, a receive takes the message that was sent first among those that it wants.
#    7 posted        A message is taken by the receive that came first among those that want it, with wildcards or without.
#    8 unexpected    A message that no receive wants yet is kept until one does, whatever its length and however many there are.
#    9 probe         `seen` (or `iprobe`) tells source, tag and bytes of the message that a receive of the same wishes would
#                    take, and leaves it where it is.
#   10 mprobe        `improbe` takes this message out: nothing else meets it again, what is behind it keeps its order, and
#                    `imrecv` receives it whenever it is called.
#   11 cancel        `withdraw` takes a receive back that was matched with nothing, and says so; it takes nothing any more.  One
#                    that was matched completes with its message.
#
# MESSAGES AND REQUESTS
#   12 delivery      Each message arrives once, whole and as it was, from 0 bytes on; `data` behind it stays as it was.
#   13 truncation    A message that is longer than `capacity` fills that and no more; the request is told its whole length and
#                    sees to the error.  The send completes, and whatever follows is not touched by this.
#   14 object        A receive without memory (`capacity` 0, `allocate`) is told of its message by `landing` or `take`, which
#                    make the memory.
#   15 status        The request is told source, tag and length of the message, not of its wishes.
#   16 completion    A send is complete when its `data` may change, and the message arrives as it was before; a receive when all
#                    bytes are there, and nobody touches `data` afterwards.  Both complete without another call for them.
#   17 synchronous   A send in synchronous mode is complete after a receive was matched with it, and not before.
#   18 persistent    A request may be started again when it is complete, with what `data` holds then.
#   19 abandon       A receive that was withdrawn or forgotten has nothing put into its memory; a send that was set aside
#                    arrives as it was, though `data` changes.
#
# RULES
#   20 progress      No method waits for another rank.  What can go on goes on whenever this process makes progress.
#   21 loss          `peer_lost` ends with `proc.failure` what waits for that process alone: sends to it, synchronous ones among
#                    them, and receives for which `loss` says so.  What is begun later raises it, or ends so, but for receives
#                    of what had come before, which may take that.  Everything else goes on.
#   22 quiet         A component never prints, aborts or exits, nor writes beside memory that is its own or was given to it.
from libc.stdint cimport uint64_t

from ompy.core.communicator cimport Communicator
from ompy.core.message_request cimport MessageRequest
from ompy.core.proc cimport Proc
from ompy.core.status cimport StatusRecord
from ompy.core.typemap cimport Typemap
from ompy.mca.pml cimport Message

cdef enum:
    INTERFACE = 1


cdef class MtlSend(MessageRequest):
    cdef Mtl mtl
    cdef readonly int mode
    cdef const char *data                        # the message, from `isend` to completion
    cdef readonly uint64_t length                # its bytes
    cdef char *packed                            # the packed copy, or NULL

    cdef int prepare(self, Mtl mtl, Communicator comm, size_t address, Py_ssize_t count, Typemap typemap, int dest, int tag,
                     int mode) except -1


cdef class MtlRecv(MessageRequest):
    cdef Mtl mtl
    cdef char *data                              # where a message may be put before the request knows it
    cdef readonly uint64_t capacity              # bytes there; 0 when memory is made at match time (`allocate`)
    cdef char *packed

    cdef int prepare(self, Mtl mtl, Communicator comm, size_t address, Py_ssize_t count, Typemap typemap, object allocate,
                     int source, int tag) except -1
    # A message of `length` bytes was matched, and as many of them as fit are in `data`.
    cpdef int deposited(self, int source, int tag, uint64_t length) except -1
    # It was matched, and lies in the MTL's memory.
    cdef int copied(self, int source, int tag, const char *body, uint64_t length) except -1
    # It was matched and must be brought: returns where its first `wanted` bytes are to be put.  Then `landed`.
    cdef char *landing(self, int source, int tag, uint64_t length) except? NULL
    cdef int landed(self) except -1

    cdef char *packed_memory(self, uint64_t size) except NULL


cdef class Mtl:
    cdef readonly str name
    cdef readonly int tag_upper_bound

    cpdef int add_comm(self, Communicator comm) except -1
    cpdef int del_comm(self, Communicator comm) except -1
    cpdef int add_proc(self, Proc proc) except -1
    cpdef int del_proc(self, Proc proc) except -1

    cpdef MtlSend new_send(self)
    cpdef MtlRecv new_recv(self)
    # Blocking, of contiguous memory, without a request: OK when the memory may be used again.  OUT_OF_RESOURCE: nothing
    # was taken, the message wants a request.  Not called in synchronous mode.
    cdef int send(self, const char *data, uint64_t length, int dest, int tag, int mode, Communicator comm) except -1
    cpdef int isend(self, MtlSend request) except -1
    # Look at the request's `data` no more, but at a copy of the MTL's own: the program may change its memory.  False: it
    # can't.  The MTL keeps the request until it is complete.
    cpdef bint set_aside(self, MtlSend request) except -1
    cpdef int irecv(self, MtlRecv request) except -1
    # Take a receive back, if nothing was matched: True when it was, and the request is not touched again.
    cpdef bint withdraw(self, MtlRecv request) except -1
    # Nothing is put into the request's memory any more.
    cpdef int forget(self, MtlRecv request) except -1

    # Is there a message?  The default asks `seen`, which returns (source, tag, bytes) or None.
    cdef bint iprobe(self, int source, int tag, Communicator comm, StatusRecord *status) except -1
    cpdef tuple seen(self, int source, int tag, Communicator comm)
    # Take a message out of the queues, with its `status`; None when there is none.
    cpdef Message improbe(self, int source, int tag, Communicator comm)
    cpdef int imrecv(self, MtlRecv request, Message message) except -1

    # Contact with a process is lost: whatever involves it fails with `proc.failure`.
    cpdef int peer_lost(self, Proc proc) except -1
    cpdef dict dump(self, Communicator comm)
    cpdef dict statistics(self)
    # Get out what was sent.
    cpdef int finalize(self) except -1
    # Give back what reaches peers.
    cpdef int close(self) except -1
    # What goes on this process's card, each entry by the name that peers look for; of an MTL with an address of its own.
    cpdef dict cards(self)


# How much has not left yet, 0 when all has.
ctypedef uint64_t (*Remainder)(void *context) except? 0xFFFFFFFFFFFFFFFF
# For `finalize`: wait until all has left, or until nothing has for ten seconds.  Meanwhile signals are heeded.
cdef int wait_for_departures(Remainder remainder, void *context) except -1


# Why nothing comes any more from a rank, or with ANY_SOURCE from any other: the failure of a process, or None.
cpdef object loss(Communicator comm, int source)
