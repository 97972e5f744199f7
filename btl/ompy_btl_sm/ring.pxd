# A ring carries messages one way between two processes: one writer, one reader, no lock.
#
# Positions count bytes for ever; the place of a position in the ring is `position & mask`.  A message is a run of 64-byte
# lines.  The first eight bytes of its first line, the *head*, are written last and say that it is there:
#
#     line n      | head: VALID, tag, length | PML's header, 24 bytes | 32 bytes of payload |
#     line n+1    | payload, from byte 32 on ...                                            |
#
# so that a message of up to 32 bytes costs one cache line.  A reader knows its next message by a head that is not zero.
# What an earlier lap left in a line could look like a head, so the writer zeroes the head after a message before it
# publishes the message:
#
#     lap 1    [A A][B B B][C]        writer's next message D is two lines long
#     lap 2    [D D] 0  B  B  C       the zero overwrites B's old bytes, then D's head is set
#
# Most messages are one line, so once it has published one, the writer zeroes the head of the line after the next
# beforehand, away from the path of the next message (`zeroed`).
#
# A lap ago the reader has read the line that is to be written next, so its core has it, and the writer's core would wait for
# each line that it stores to.  It asks for some lines beforehand (`own_ahead`).
#
# The data is mapped twice in a row (see `Segment`), so a message never wraps.  The reader returns space in quarters of
# the ring, on a line of its own; the writer looks at that line only when it believes that the ring is full.
#
# A writer that finds the ring full asks to be woken, and takes that back once it has found room:
#
#     writer   wants_space = 1 ... arm the bell, fence, returned since? no: sleep ... returned since? yes: wants_space = 0
#     reader                                    returned = here, fence, wants_space? then ring the bell
#
# Only the writer changes `wants_space`: a reader that put it back could put back what the writer, full again, asks meanwhile.
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy

from ompy.core.atomic cimport acquire, acquire32, fetch_to_write, full_fence, release, release32
from ompy.core.segment cimport Segment, page_size
from ompy_btl_sm.joint_copy cimport JointCopy

cdef enum:
    LINE = 64
    HEAD = 8
    AHEAD = 512                                  # bytes that the writer's core asks for besides the next message's
    LONGEST_AHEAD = 768                          # in longer messages the processor itself sees the stream coming
    CARD_SIZE = 244                              # makes the writer's part of the header whole lines

cdef extern from *:
    """
    #define OMPY_RING_VALID (1ull << 63)
    """
    uint64_t VALID "OMPY_RING_VALID"


cdef enum:
    WITHDRAWN = 3                                # stretches, makes it a line

cdef struct Stretch:
    uint64_t address
    uint64_t size


# What the two share, at the beginning of the segment; each group on a line of its own.
cdef struct RingHeader:
    # written once by the writer
    uint64_t size                                # bytes of data
    uint32_t writer_pid
    char doorbell[CARD_SIZE]                     # the writer's
    # written by the reader
    uint64_t returned                            # everything before this position may be overwritten
    uint32_t attached
    uint32_t reader_closed
    uint32_t writing                             # into memory of the writer's, or about to
    char pad0[44]
    # written by the writer
    uint32_t wants_space                         # ring the doorbell whenever space is returned
    uint32_t writer_closed
    # Memory of the writer's that the reader may have been told of, and must not believe any more (clause 28 of
    # ompy/mca/btl.pxd): how many stretches, how many of them are not listed, and the others, in the places whose size is not 0.
    uint32_t withdrawals
    uint32_t withdrawals_unlisted
    Stretch withdrawn[WITHDRAWN]
    # a long copy for the other direction that the reader may help with
    JointCopy joint


cdef struct Writer:
    RingHeader *header                           # NULL while there is no ring
    char *data
    uint64_t mask
    uint64_t position                            # of the next message
    uint64_t limit                               # `position` may not pass this one
    uint64_t zeroed                              # the head at this position is zero
    uint64_t owned                               # lines before this position were asked for
    bint blocked                                 # was full when last asked


cdef struct Reader:
    RingHeader *header
    char *data
    uint64_t mask
    uint64_t position                            # of the next message
    uint64_t returned
    uint32_t spent                               # the offer of a long copy that there is nothing left to do of


cdef inline uint64_t lines(size_t length) noexcept nogil:
    """Bytes that a message takes up in the ring."""
    return (length + HEAD + LINE - 1) & ~<uint64_t> (LINE - 1)


# Room for a message of `length` bytes, or NULL: the ring is full.
cdef inline char *reserve(Writer *writer, size_t length) noexcept nogil:
    if writer.position + lines(length) + LINE > writer.limit and not find_space(writer, lines(length) + LINE):
        return NULL
    return writer.data + (writer.position & writer.mask) + HEAD


# The message that was written to the reserved room is there.
cdef inline void publish(Writer *writer, size_t length, int tag) noexcept nogil:
    cdef char *head = writer.data + (writer.position & writer.mask)
    cdef uint64_t following = writer.position + lines(length)
    if writer.zeroed != following:
        (<uint64_t *> (writer.data + (following & writer.mask)))[0] = 0
    release(<uint64_t *> head, VALID | <uint64_t> tag << 32 | length)
    writer.position = following
    if following + 2 * LINE <= writer.limit:
        (<uint64_t *> (writer.data + ((following + LINE) & writer.mask)))[0] = 0
        writer.zeroed = following + LINE


# Once the message is on its way: fetch the lines of the next one, which is probably like it.
cdef inline void own_ahead(Writer *writer, size_t length) noexcept nogil:
    cdef uint64_t wanted = writer.position + lines(length) + AHEAD
    if length > LONGEST_AHEAD:
        return
    if writer.owned < writer.position:
        writer.owned = writer.position
    while writer.owned < wanted:
        fetch_to_write(writer.data + (writer.owned & writer.mask))
        writer.owned += LINE


cdef inline uint64_t peek(Reader *reader) noexcept nogil:
    """Head of the next message, 0 when there is none."""
    return acquire(<uint64_t *> (reader.data + (reader.position & reader.mask)))


# The number of the long copy that the writer offers, where this process may still do part of it, else 0.
cdef inline uint32_t offered(Reader *reader) noexcept nogil:
    cdef uint32_t offer = acquire32(&reader.header.joint.open)
    return 0 if offer == reader.spent else offer


# The writer: memory is not to be believed, or is again.
cdef void withdraw(RingHeader *header, uint64_t address, uint64_t size) noexcept nogil
cdef void restore(RingHeader *header, uint64_t address, uint64_t size) noexcept nogil
cdef bint overlaps_withdrawn(RingHeader *header, uint64_t address, uint64_t size) noexcept nogil

# The reader, after it has read such memory: is what it has read good?
cdef inline bint is_good(RingHeader *header, uint64_t address, uint64_t size) noexcept nogil:
    full_fence()
    return acquire32(&header.withdrawals) == 0 or not overlaps_withdrawn(header, address, size)


# The reader, around writing into such memory: may it?  Whoever withdraws it waits while `writing` is set:
#
#     reader   writing = 1, fence, withdrawn? no: write ...... writing = 0      writing = 1, fence, withdrawn? yes: writing = 0
#     writer                          withdraw, fence, writing? ... waits ... no: the memory is its own
cdef inline bint begin_writing(RingHeader *header, uint64_t address, uint64_t size) noexcept nogil:
    release32(&header.writing, 1)
    return is_good(header, address, size)


cdef inline void end_writing(RingHeader *header) noexcept nogil:
    release32(&header.writing, 0)


cdef bint find_space(Writer *writer, uint64_t needed) noexcept nogil
cdef bint has_space(Writer *writer) noexcept nogil

cdef size_t round_size(size_t size) noexcept
cdef Segment make(Writer *writer, size_t size, str backing, bytes doorbell)
cdef Segment open_reader(Reader *reader, bytes location, size_t size)
