# What ob1 writes on the wire.  Every header begins with its kind; numbers are in the host's byte order, since a job's
# hosts are alike.
#
#   MATCH   envelope, payload                                   the whole of a short message
#   RNDV    envelope, length, sender's request, first payload   a long one announces itself; also a short synchronous one
#   RGET    RNDV, address, handle                               the same when the receiver may read the sender's memory
#   ACK     receiver's request, how much to send and how        the receiver has matched
#   FRAG    receiver's request, offset, payload
#   PUT     where the sender is to write, one piece of the pipeline; the first one may stand for the ACK, too
#   FIN     the other side's request, bytes done, error class
from libc.stdint cimport int32_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef enum:
    KIND_MATCH = 1
    KIND_RNDV = 2
    KIND_RGET = 3
    KIND_ACK = 4
    KIND_FRAG = 5
    KIND_PUT = 6
    KIND_FIN = 7

# Envelope.flags: the sender's memory is contiguous and one of its BTLs can put.
cdef enum:
    FLAG_CAN_PUT = 1

cdef enum:
    ROUTE_NAME = 16                 # bytes for a BTL's name in a PUT header
    HANDLE_LIMIT = 256              # bytes of a registration handle
    PACKET_SIZE = 384               # any header with its handle

cdef struct Envelope:
    uint8_t kind
    uint8_t flags
    uint16_t spare
    int32_t source                  # rank of the sender in its group of the communicator
    int32_t tag
    uint32_t sequence               # counts a sender's messages to one peer in one communicator
    uint64_t context

cdef struct RendezvousHeader:
    Envelope envelope
    uint64_t length                 # bytes of data in the message
    uint64_t sender                 # the sender's request

# Bytes of data in the message that a MATCH, RNDV or RGET of `length` bytes announces.
cdef inline uint64_t message_length(const char *header, size_t length) noexcept nogil:
    if (<const Envelope *> header).kind == KIND_MATCH:
        return length - sizeof(Envelope)
    return (<const RendezvousHeader *> header).length

cdef struct GetHeader:
    RendezvousHeader rendezvous
    uint64_t address
    uint32_t checksum               # of the data, where checksums are asked for
    uint64_t handle_length          # the registration handle follows the header

cdef struct AckHeader:
    uint8_t kind
    uint64_t sender
    uint64_t receiver
    uint64_t limit                  # send fragments up to this offset ...
    uint64_t total                  # ... and be done when this much has gone, by fragments and puts

cdef struct FragmentHeader:
    uint8_t kind
    uint64_t receiver
    uint64_t offset

cdef struct PutHeader:
    uint8_t kind
    uint64_t sender
    uint64_t receiver
    uint64_t offset                 # in the message
    uint64_t size
    uint64_t address                # in the receiver
    uint64_t piece                  # the receiver's number for this piece
    uint64_t total                  # as an ACK's, which says to send no fragments; 0: an ACK has gone before
    char route[ROUTE_NAME]
    uint64_t handle_length          # the registration handle follows the header

cdef struct FinHeader:
    uint8_t kind
    int32_t error                   # 0, or an error class: the transfer is over
    uint64_t request                # of the process that FIN is sent to
    uint64_t size                   # bytes done
    uint64_t piece                  # of a put
    uint32_t checksum               # of that piece, where checksums are asked for
