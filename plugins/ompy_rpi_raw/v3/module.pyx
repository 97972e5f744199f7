# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Version III of rMPI: interrupt driven, posted receives filled in place."""
from libc.stdint cimport int64_t, uint32_t

from ompy.core.errors import ERR_INTERN, MPIError
from ompy.mca.rpi cimport INTERFACE, KIND_ACKNOWLEDGEMENT, SCOPE_BITS, Envelope, Incoming

from ompy_rpi_raw.actions cimport ALLOCATE, COMPARE, HASH, perform
from ompy_rpi_raw.message cimport BufferedMessage, Stored
from ompy_rpi_raw.module cimport Format

interface = INTERFACE

STATES = ("BETWEEN_PACKETS", "IN_ENVELOPE", "IN_PAYLOAD")


cdef class RawV3(RawRpi):
    """rMPI's production version.

    Parameters:
        context: of the component's query.
    """

    def __init__(self, context):
        RawRpi.__init__(self, "raw_v3", context, (1 << 32) - 1)
        self.format = Format(4, 27, 1, 30)
        self.interrupt_driven = True
        self.receives = [OutstandingReceive() for _ in range(context.rte.size)]
        self.unexpected = UnexpectedMessages()
        self.packet_over()

    @property
    def handler_state(self) -> str:
        """Where the interrupt handler is, for people and tests."""
        return STATES[self.state]

    cdef int first_header(self, const Envelope *envelope, int payload_words, uint32_t *words) noexcept:
        words[0] = <uint32_t> envelope.source
        words[1] = <uint32_t> envelope.length
        words[2] = <uint32_t> envelope.tag
        words[3] = envelope.kind << SCOPE_BITS | envelope.scope
        return 4

    cdef int other_header(self, const Envelope *envelope, int payload_words, uint32_t *words) noexcept:
        words[0] = <uint32_t> envelope.source
        return 1

    # -- drain_gdn ------------------------------------------------------------------------------------------------

    cdef int take_section(self) except -1:
        if self.state == BETWEEN_PACKETS:
            return self.take_rank()
        if self.state == IN_ENVELOPE:
            return self.take_envelope()
        return self.take_payload()

    cdef int packet_over(self) except -1:
        self.state = BETWEEN_PACKETS
        self.sender = None
        self.wanted = 1
        return 0

    cdef int await_payload(self, int most_words) except -1:
        self.state = IN_PAYLOAD
        self.packet_bytes = <int> min(self.sender.bytes_outstanding, <int64_t> (4 * most_words))
        self.wanted = (self.packet_bytes + 3) >> 2
        return 0

    cdef int take_rank(self) except -1:
        cdef uint32_t rank = self.section[0]
        if rank >= <uint32_t> self.processes:
            raise MPIError(ERR_INTERN, f"a packet for tile {self.tile.number} begins with rank {rank}, but there are "
                                       f"{self.processes}: some program writes to the network past MPI")
        self.sender = self.receives[rank]
        if self.sender.active:
            return self.await_payload(self.format.other_payload)
        self.sender.envelope.source = <int> rank
        self.state = IN_ENVELOPE
        self.wanted = 3
        return 0

    cdef int take_envelope(self) except -1:
        cdef OutstandingReceive receive = self.sender
        cdef Envelope *envelope = &receive.envelope
        envelope.length = self.section[0]
        envelope.tag = <int> self.section[1]
        envelope.scope = self.section[2] & ((1 << SCOPE_BITS) - 1)
        envelope.kind = self.section[2] >> SCOPE_BITS
        receive.bytes_outstanding = envelope.length
        receive.posted = receive.unexpected = None
        if envelope.kind == KIND_ACKNOWLEDGEMENT:
            self.begin_message(envelope)
        else:
            receive.posted = self.match_posted(envelope)
            if receive.posted is not None:
                receive.posted.matched(envelope)
            else:
                receive.unexpected = self.store_message(envelope, None)
        if envelope.length:
            receive.active = True
            return self.await_payload(self.format.first_payload)
        return self.take_payload()

    cdef int take_payload(self) except -1:
        cdef OutstandingReceive receive = self.sender
        cdef int length = self.packet_bytes if receive.bytes_outstanding else 0
        if length:
            self.tile.charge(self.misses(receive.envelope.length, self.wanted))
            if receive.posted is not None:
                receive.posted.take(<const char *> self.section, length)
            elif receive.unexpected is not None:
                receive.unexpected.append(self.section, length)
            receive.bytes_outstanding -= length
        if receive.bytes_outstanding == 0:
            receive.active = False
            if receive.posted is not None:
                self.arrived.append(receive.posted)
            elif receive.unexpected is not None:
                self.end_message(receive.unexpected)
            receive.posted = receive.unexpected = None
        return self.packet_over()

    # -- the unexpected message structure -------------------------------------------------------------------------

    cdef Stored new_message(self):
        perform(self.tile, ALLOCATE())
        return BufferedMessage.__new__(BufferedMessage)

    cdef int keep(self, Stored message) except -1:
        perform(self.tile, HASH())
        return self.unexpected.add(message)

    cdef int drop(self, Stored message) except -1:
        perform(self.tile, HASH())
        perform(self.tile, ALLOCATE())
        return self.unexpected.remove(message)

    cdef Stored find(self, Incoming wanted):
        cdef Stored message = self.unexpected.find(wanted)
        perform(self.tile, HASH())
        perform(self.tile, COMPARE(), self.unexpected.compared)
        return message

    cdef list messages(self):
        return list(self.unexpected.arrivals)
