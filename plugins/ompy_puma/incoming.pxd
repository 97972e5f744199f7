# Messages that are matched and not whole: the body is being fetched, or comes in pieces.
#
#     opening, fragment, fragment ...     pieces go where the placement says, in any order; whole when all bytes are there
#     offer                               fetches of the sender's memory, one a run of the descriptor's; whole when all are done
#
# A record holds no body.  It is found by the sender's node and the sender's number for the message.
from libc.stdint cimport uint32_t, uint64_t

from ompy_puma.events cimport Way
from ompy_puma.header cimport Header
from ompy_puma.link cimport Link
from ompy_puma.placement cimport Placement
from ompy_puma.process cimport Process

cdef enum:
    BUCKETS = 64

cdef enum FetchVerdict:
    FETCH_WAITS, FETCH_DONE, FETCH_FAILED, FETCH_STALLED

cdef struct Incoming:
    Incoming *next                               # in its bucket, or spare
    void *process                                # Process, a reference; NULL: spare
    void *handle                                 # bytes, a reference, or NULL
    uint64_t number
    uint32_t node
    uint32_t slot_index
    uint64_t slot                                # its name for fetches: generation << 32 | index
    bint discarded                               # its memory was abandoned: throw away what still comes
    bint failed
    bint stalled                                 # a fetch found no resources
    bint asking                                  # inside `fetch`
    int fetches                                  # under way
    uint64_t remote                              # sender's address of the body
    uint64_t position                            # bytes that were asked for, or have come
    Way way
    Placement placement
    Header header


cdef class IncomingTable:
    cdef Incoming **slots
    cdef uint32_t slot_count, slot_room
    cdef Incoming *spare
    cdef Incoming *buckets[BUCKETS]
    cdef readonly uint32_t count
    cdef uint64_t generation

    cdef Incoming *open(self, Process process, uint64_t number, const Header *header, const Way *way,
                        const Placement *placement) except NULL
    cdef Incoming *find(self, uint32_t node, uint64_t number) noexcept
    cdef Incoming *at(self, uint64_t slot) noexcept
    cdef void close(self, Incoming *record) noexcept
    # Asks for what was not asked for yet.
    cdef FetchVerdict fetch(self, Incoming *record, Link link) except *
