# The request progression interface: LAM/MPI's split between an MPI layer and what moves messages (Psota, "rMPI", 4.2.1).
#
# Above it `pml/rpi` knows communicators, datatypes, send modes, probes and persistent requests.  Below it a component knows
# how an envelope and its bytes get from one process to another, and which receive takes which message; of a request it
# is told its envelope, and it asks it for the next bytes, or hands it the next ones:
#
#     sender                                           receiver
#     Outgoing.fetch(words)  --->  the wire  --->      Incoming.matched(envelope), then take(bytes) ..., then arrived()
#
# LIFE CYCLE
#   open       The component's `query` makes an `Rpi`; `begin` attaches it to the MPI layer before any request is made.
#   request    `start_send` and `start_receive` take a request over; it is the component's until it is complete.
#              `send` is the blocking form (LAM's fast path), whose default starts the request and lets the caller wait.
#   progress   `progress` advances every request, as far as it goes without waiting.  While `ompy.core.progress.waiting`
#              is set it may block for as long as nothing can happen but the arrival of a message, and not longer than a
#              few milliseconds of real time.
#   close      `finalize`, when every request is complete: nothing is left behind.
#
# RULES
#   * Messages from one process to another that match the same receive are matched in the order of their sends; receives
#     that match the same message, in the order of theirs.
#   * A tag below zero is never matched by ANY_TAG.
#   * A send is complete when its bytes may be overwritten.  The MPI layer makes synchronous sends out of that: it asks for
#     an acknowledgement by the envelope's kind, and the receiver's layer sends it when the message is matched.
#   * `matched` may be called while a component reads the network: it starts no request.
from libc.stdint cimport uint32_t, uint64_t

from ompy.core.progress cimport ProgressSource
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
