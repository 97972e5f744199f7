# The request progression interface: LAM/MPI's split between an MPI layer and what moves messages (Psota, "rMPI", 4.2.1).
#
# Above it `pml/rpi` knows communicators, datatypes, send modes, probes and persistent requests.  Below it a component knows
# how an envelope and its bytes get from one process to another, and which receive takes which message; of a request it
# is told its envelope, and it asks it for the next bytes, or hands it the next ones:
#
#     sender                                           receiver
#     Outgoing.fetch(words)  --->  the wire  --->      Incoming.matched(envelope), then take(bytes) ..., then arrived()
#
# `matched` may be called while a component reads the network: it starts no request.
#
# Clauses are numbered and named: the conformance kit (`ompy conformance --mca rpi NAME`) says which one was broken.
#
# LIFE CYCLE
#    1 open          The component's `query` makes an `Rpi`, once in a process; `begin` attaches it to the MPI layer before any
#                    request is made.
#    2 separate      A message is received in the scope that it was sent in; components carry SCOPE_BITS of the number.
#    3 free          `close_scope` drops what nobody can receive any more; what goes on in other scopes goes on.
#    4 end           `finalize`, when every request is complete, returns when what was sent is where it arrives without this
#                    process.
#
# MATCHING (MPI-4.1, 3.5)
#    5 match         A receive takes an envelope that it `takes`: a tag below zero is never matched by ANY_TAG.
#    6 order         Messages from one process to another that fit the same receive are matched in the order of their sends.
#    7 posted        Receives that fit the same message are matched in the order in which they were started.
#    8 unexpected    A message that no receive fits yet is kept until one does, whatever its length and however many there are.
#    9 probe         `probe` tells the envelope of the message that a receive of the same wishes would take, and leaves it
#                    there.
#   10 mprobe        `detach` takes this message out: nothing else meets it again, what is behind it keeps its order, and
#                    `receive_detached` receives it whenever it is called.
#   11 cancel        `cancel_receive` takes a receive back that was matched with nothing, and says so; False when it is too
#                    late.
#
# MESSAGES AND REQUESTS, which are the component's from `start_send` and `start_receive` until they are complete
#   12 delivery      Each message arrives once: `matched`, `take` with its bytes in order and once each, `arrived`.  A length
#                    of 0 has no `take`, and a last word that is not full is cut at the envelope's `length`.
#   13 truncation    A message is handed over whole, whatever room its receive has: the request drops what does not fit.
#   14 object        A receive may make its memory in `matched`: `take` comes after it.
#   15 status        The envelope that `matched` gets is the message's: its source, tag and length.
#   16 completion    `sent` is called when the program's bytes may be overwritten, and the message arrives as it was before;
#                    `arrived` when all bytes were taken.  Both come without another call for the request, and once.
#   17 synchronous   KIND_SYNCHRONOUS arrives as it was sent, and the acknowledgements that the MPI layer sends by `settle` come
#                    back to `acknowledged`, never to a receive; `settle` is called after whatever may have been matched.
#   18 persistent    A request that is complete may be started again.
#   19 abandon       An abandoned request goes on as any other, until it is complete.
#
# RULES
#   20 progress      `progress` advances every request, as far as it goes without waiting.  While `ompy.core.progress.waiting`
#                    is set it may block for as long as nothing can happen but the arrival of a message, and not longer than a
#                    few milliseconds of real time.  `send` is the blocking form (LAM's fast path), whose default starts the
#                    request and lets the caller wait.
#   21 quiet         A component never prints, aborts or exits, nor writes beside memory that is its own or was given to it.
from libc.stdint cimport uint32_t, uint64_t

from ompy.core.progress_source cimport ProgressSource
from ompy.core.message_request cimport MessageRequest

cdef enum:
    INTERFACE = 1

# What a message is for.
cdef enum Kind:
    KIND_DATA = 0
    KIND_SYNCHRONOUS = 1                         # the sender waits for an acknowledgement of the match
    KIND_ACKNOWLEDGEMENT = 2                     # of that; no data, and never matched by a receive

# What a receiver must know of a message before its bytes: ranks are those of the job's world.
cdef struct Envelope:
    int source
    int tag
    uint32_t scope                               # the communicator, the same number on all its processes
    uint32_t kind
    uint64_t length                              # bytes of data

cdef enum:
    SCOPE_BITS = 28                              # what components must carry of `scope`


cdef class Outgoing(MessageRequest):
    """A message to be sent, as a component sees it."""
    cdef Envelope envelope
    cdef int dest                                # rank in the world
    cdef bint contiguous                         # fetching needs no packing
    # The next `length` bytes, in order; the last of its words is filled up with zeros.
    cdef int fetch(self, uint32_t *words, size_t length) except -1
    # All bytes were fetched and are on their way.
    cdef int sent(self) except -1


cdef class Incoming(MessageRequest):
    """A receive that waits for a message, as a component sees it."""
    cdef int world_source                        # the wanted source as a rank in the world, or ANY_SOURCE
    cdef uint32_t scope
    cdef bint contiguous
    # This message is the one.
    cdef int matched(self, const Envelope *envelope) except -1
    # Its next bytes, in order; what the program has no room for is dropped.
    cdef int take(self, const char *data, size_t length) except -1
    # Those were all.
    cdef int arrived(self) except -1

    cdef inline bint takes(self, const Envelope *envelope) noexcept:
        """Do these envelopes match (MPI-4.1, 3.5; figure 4-14 of the thesis)?"""
        return (self.scope == envelope.scope
                and (self.world_source == envelope.source or self.world_source == -1)
                and (self.wanted_tag == envelope.tag or (self.wanted_tag == -1 and envelope.tag >= 0)))


cdef class Detached:
    """A message that a matched probe took: the component's own, until `receive_detached`."""
    cdef Envelope envelope


cdef class MpiLayer:
    """What a component calls above it."""
    # An acknowledgement has come: `envelope` has its source, tag and scope.  Starts no request.
    cdef int acknowledged(self, const Envelope *envelope) except -1
    # Called where requests may be started, after any that may have been matched: send the acknowledgements owed for them.
    cdef int settle(self) except -1


cdef class Rpi(ProgressSource):
    cdef readonly str name
    cdef readonly dict limits                    # what the wire format can't carry, for people and tests
    cdef MpiLayer layer

    cpdef int begin(self, MpiLayer layer) except -1
    cdef int start_send(self, Outgoing request) except -1
    cdef int send(self, Outgoing request) except -1
    cdef int start_receive(self, Incoming request) except -1
    # Take a receive back that has matched nothing; False when it is too late.
    cdef bint cancel_receive(self, Incoming request) except -1
    # The envelope of the first message that the receive described by `wanted` would take.
    cdef bint probe(self, Incoming wanted, Envelope *found) except -1
    # The same, taken out; None when there is none.
    cdef Detached detach(self, Incoming wanted)
    cdef int receive_detached(self, Incoming request, Detached message) except -1
    # The communicator is gone: drop what nobody can receive any more.
    cdef int close_scope(self, uint32_t scope) except -1
    # Posted receives, and messages that nobody has asked for, as lists of (source, tag, scope, bytes), for people.
    cpdef dict dump(self)
    cpdef dict statistics(self)
    cpdef int finalize(self) except -1
