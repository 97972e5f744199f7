# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Version I of rMPI: polling."""
from libc.stdint cimport uint32_t, uint64_t

from ompy.core.errors import ERR_INTERN, MPIError
from ompy.mca.rpi cimport INTERFACE, Envelope, Incoming

from ompy_rpi_raw.actions cimport COMPARE, POOL, perform
from ompy_rpi_raw.length cimport set_length, type_of, words_of
from ompy_rpi_raw.message cimport PooledMessage
from ompy_rpi_raw.module cimport Format

interface = INTERFACE


cdef class RawV1(RawRpi):
    """rMPI's first version.

    Parameters:
        context: of the component's query.
    """

    def __init__(self, context):
        RawRpi.__init__(self, "raw_v1", context, 4 * ((1 << 32) - 1))
        self.format = Format(5, 26, 2, 29)
        self.outstanding = OutstandingMessages(context.rte.size)
        self.pool = PacketPool()
        self.packet_over()

    cdef int first_header(self, const Envelope *envelope, int payload_words, uint32_t *words) noexcept:
        words[0] = <uint32_t> envelope.source
        words[1] = <uint32_t> envelope.tag
        words[2] = words_of(envelope)
        words[3] = type_of(envelope)
        words[4] = envelope.scope
        return 5

    cdef int other_header(self, const Envelope *envelope, int payload_words, uint32_t *words) noexcept:
        words[0] = <uint32_t> envelope.source
        words[1] = <uint32_t> envelope.tag
        return 2

    cdef int packet_over(self) except -1:
        self.reading = SOURCE_AND_TAG
        self.message = None
        self.wanted = 2
        return 0

    cdef int await_payload(self, int most_words) except -1:
        cdef uint64_t left = self.message.envelope.length - self.message.received
        self.reading = PAYLOAD
        self.wanted = <int> min((left + 3) >> 2, <uint64_t> most_words)
        return 0

    cdef int take_section(self) except -1:
        if self.reading == SOURCE_AND_TAG:
            self.source, self.tag = <int> self.section[0], <int> self.section[1]
            if <uint32_t> self.source >= <uint32_t> self.processes:
                raise MPIError(ERR_INTERN, f"a packet for tile {self.tile.number} begins with rank {self.section[0]}, but "
                                           f"there are {self.processes}: some program writes to the network past MPI")
            self.message = self.outstanding.unfinished(self.source, self.tag)
            perform(self.tile, COMPARE(), self.outstanding.visited)
            if self.message is not None:
                return self.await_payload(self.format.other_payload)
            self.reading = REST_OF_HEADER
            self.wanted = 3
            return 0
        if self.reading == REST_OF_HEADER:
            return self.take_header()
        return self.take_payload()

    cdef int take_header(self) except -1:
        cdef Envelope envelope
        envelope.source, envelope.tag, envelope.scope = self.source, self.tag, self.section[2]
        set_length(&envelope, self.section[0], self.section[1])
        self.message = self.begin_message(&envelope)
        if envelope.length:
            return self.await_payload(self.format.first_payload)
        if self.message is not None:
            self.end_message(self.message)
        return self.packet_over()

    cdef int take_payload(self) except -1:
        cdef uint64_t left = self.message.envelope.length - self.message.received
        perform(self.tile, POOL())
        self.tile.charge(self.misses(self.message.envelope.length, self.wanted))
        self.message.append(self.section, min(left, <uint64_t> (4 * self.wanted)))
        if self.message.received == self.message.envelope.length:
            self.end_message(self.message)
        return self.packet_over()

    # -- the outstanding messages structure -----------------------------------------------------------------------

    cdef Stored new_message(self):
        return PooledMessage.__new__(PooledMessage, self.pool)

    cdef int keep(self, Stored message) except -1:
        self.outstanding.add(message)
        perform(self.tile, COMPARE(), self.outstanding.visited)
        return 0

    cdef int drop(self, Stored message) except -1:
        perform(self.tile, POOL(), <int> (message.received // 100) + 1)
        return self.outstanding.remove(message)

    cdef Stored find(self, Incoming wanted):
        cdef Stored message = self.outstanding.find(wanted)
        perform(self.tile, COMPARE(), self.outstanding.visited)
        return message

    cdef list messages(self):
        return self.outstanding.messages()
