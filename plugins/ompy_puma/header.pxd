# What travels: packets, each a kind, then the message's header (MPI on portals, p. 2), then bytes of its body.
#
#      0 | kind | flags |    portal     |          source rank          |
#      8 |         source group         |          target group         |
#     16 | target process | source pr.  |          source node          |
#     24 |                            length                            |
#     32 |                          match bits                          |  <- a PLAIN header ends here: the rest is zero
#     40 |                            offset                            |
#     48 |                      return match bits                       |
#     56 |                        return offset                         |
#     64 |                        return length                         |
#     72 |      user data, 12 bytes                     | return  | --  |
#     80 |                                              | portal  |     |
#
# A message whose second half would be zero goes without it, so that 16 bytes of body still fit the first cache line of a
# shared-memory ring.  What is saved in a portal is always the whole struct.
#
#     PACKET_MESSAGE    header | body                                     the whole message
#     PACKET_OPENING    header | Transfer | first bytes of the body       PACKET_FRAGMENTs follow
#     PACKET_OFFER      header | Transfer | handle                        the receiver's kernel reads the body, then says
#                                                                         PACKET_FETCHED, or asks for fragments by PACKET_STREAM
#     PACKET_FRAGMENT   Piece | bytes
#     PACKET_FETCHED    Piece
#     PACKET_STREAM     Piece
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef enum PacketKind:
    PACKET_MESSAGE = 1
    PACKET_OPENING = 2
    PACKET_OFFER = 3
    PACKET_FRAGMENT = 4
    PACKET_FETCHED = 5
    PACKET_STREAM = 6

# Header.flags
cdef enum:
    RETURN = 0x01               # set by senders: the return fields say where an acknowledgement or a reply goes
    ACKNOWLEDGEMENT = 0x02      # set by kernels: user_data[0] is what was saved, return_length its bytes
    REPLY = 0x04                # set by kernels: the body is what was read
    PLAIN = 0x08                # set by kernels: only the first half is on the wire

cdef enum:
    PLAIN_SIZE = 40
    USER_DATA = 12
    OLD_VALUE = 4               # where in the user data an acknowledgement has what a changed word was, 8 bytes

cdef struct Header:
    uint8_t kind
    uint8_t flags
    uint16_t portal                              # at the target
    uint32_t source_rank
    uint32_t source_group
    uint32_t target_group
    uint16_t target_process                      # in the target node's context table
    uint16_t source_process
    uint32_t source_node
    uint64_t length                              # of the body, whatever became of it
    uint64_t match_bits
    uint64_t offset                              # for descriptors whose offset the sender manages
    uint64_t return_match_bits
    uint64_t return_offset
    uint64_t return_length                       # bytes wanted from read memory, or of a word; in an acknowledgement: saved
    uint8_t user_data[USER_DATA]
    uint16_t return_portal
    uint16_t reserved

# The body of a message to a word, which lies at the sender's offset and has `return_length` bytes: 4 or 8.
cdef struct Change:
    int32_t operation                            # by the numbers of `ompy.core.atomic`
    uint32_t reserved
    int64_t operand, compare

# Follows the header of an opening or an offer.
cdef struct Transfer:
    uint64_t number                              # the sender's name for it
    uint64_t address                             # of an offer: where the body is
    uint32_t handle_length                       # of an offer: bytes of the transport's handle that follow
    uint32_t reserved

cdef struct Piece:
    uint8_t kind
    uint8_t status                               # of FETCHED: 0, or an error class
    uint16_t reserved
    uint32_t source_node
    uint64_t number
    uint64_t offset                              # of a fragment in the body


cdef inline bint second_half_is_zero(const Header *header) noexcept nogil:
    cdef const uint64_t *words = <const uint64_t *> header
    return words[5] | words[6] | words[7] | words[8] | words[9] | words[10] == 0


cdef inline size_t header_size(const Header *header) noexcept nogil:
    """Bytes of it on the wire."""
    return <size_t> PLAIN_SIZE if header.flags & PLAIN else sizeof(Header)
