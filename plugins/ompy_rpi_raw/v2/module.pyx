# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Version II of rMPI: interrupt driven, three hash tables."""
from libc.stdint cimport uint32_t, uint64_t

from ompy.core.errors import ERR_INTERN, MPIError
from ompy.mca.rpi cimport INTERFACE, KIND_ACKNOWLEDGEMENT, Envelope, Incoming

from ompy_rpi_raw.actions cimport COMPARE, HASH, POOL, perform
from ompy_rpi_raw.length cimport set_length, type_of, words_of
from ompy_rpi_raw.message cimport PooledMessage
from ompy_rpi_raw.module cimport MOST_WORDS, Format

interface = INTERFACE

# Words of the headers that follow a packet's first word.
cdef enum:
    FIRST_HEADER = 6
    OTHER_HEADER = 2


cdef class RawV2(RawRpi):
    """rMPI's second version.

    Parameters:
        context: of the component's query.
    """

    def __init__(self, context):
        RawRpi.__init__(self, "raw_v2", context, 4 * ((1 << 32) - 1))
        self.format = Format(1 + FIRST_HEADER, 24, 1 + OTHER_HEADER, 28)
        self.interrupt_driven = True
        self.outstanding = OutstandingMessages()
        self.pool = PacketPool()
        self.wanted = 1

    cdef int first_header(self, const Envelope *envelope, int payload_words, uint32_t *words) noexcept:
        words[0] = 1 + FIRST_HEADER + payload_words
        words[1] = <uint32_t> envelope.source
        words[2] = <uint32_t> envelope.tag
        words[3] = words_of(envelope)
        words[4] = type_of(envelope)
        words[5] = envelope.scope
        words[6] = POINT_TO_POINT if envelope.tag >= 0 else COLLECTIVE
        if envelope.kind == KIND_ACKNOWLEDGEMENT:
            words[6] = ACKNOWLEDGEMENT
        return 1 + FIRST_HEADER

    cdef int other_header(self, const Envelope *envelope, int payload_words, uint32_t *words) noexcept:
        words[0] = 1 + OTHER_HEADER + payload_words
        words[1] = <uint32_t> envelope.source
        words[2] = <uint32_t> envelope.tag
        return 1 + OTHER_HEADER

    cdef int take_section(self) except -1:
        if self.packet_words == 0:
            if not OTHER_HEADER < self.section[0] <= MOST_WORDS:
                raise MPIError(ERR_INTERN, f"a packet for tile {self.tile.number} says that it has {self.section[0]} words: "
                                           "some program writes to the network past MPI")
            self.packet_words = self.wanted = <int> self.section[0] - 1
            perform(self.tile, POOL())
            return 0
        self.take_packet()
        self.packet_words = 0
        self.wanted = 1
        return 0

    cdef int take_packet(self) except -1:
        """Sort a whole packet into the outstanding message structure."""
        cdef int source = <int> self.section[0]
        cdef int tag = <int> self.section[1]
        cdef Stored message = self.outstanding.unfinished(source, tag)
        cdef Envelope envelope
        perform(self.tile, HASH())
        perform(self.tile, COMPARE(), self.outstanding.compared)
        if message is not None:
            return self.add_payload(message, OTHER_HEADER)
        envelope.source, envelope.tag, envelope.scope = source, tag, self.section[4]
        set_length(&envelope, self.section[2], self.section[3])
        message = self.begin_message(&envelope)
        return self.add_payload(message, FIRST_HEADER) if message is not None else 0

    cdef int add_payload(self, Stored message, int header) except -1:
        cdef uint64_t left = message.envelope.length - message.received
        cdef uint64_t part = min(left, <uint64_t> (4 * (self.packet_words - header)))
        self.tile.charge(self.misses(message.envelope.length, self.packet_words))
        if part:
            message.append(self.section + header, part)
        if message.received == message.envelope.length:
            self.end_message(message)
        return 0

    # -- the outstanding message structure ------------------------------------------------------------------------

    cdef Stored new_message(self):
        return PooledMessage.__new__(PooledMessage, self.pool)

    cdef int keep(self, Stored message) except -1:
        perform(self.tile, HASH(), 3)
        return self.outstanding.add(message)

    cdef int drop(self, Stored message) except -1:
        perform(self.tile, HASH(), 3)
        perform(self.tile, POOL(), <int> (message.received // 100) + 1)
        return self.outstanding.remove(message)

    cdef Stored find(self, Incoming wanted):
        cdef Stored message = self.outstanding.find(wanted)
        perform(self.tile, HASH())
        perform(self.tile, COMPARE(), self.outstanding.compared)
        return message

    cdef list messages(self):
        return list(self.outstanding.everything.values())
