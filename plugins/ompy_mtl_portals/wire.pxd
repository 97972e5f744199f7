# What mtl/portals writes: portals, match bits, and the header fields that the kernel leaves to it.
#
#     63            32 31        16 15         3 2 1 0
#     |      tag      |  source    |  context   | type |        MPI on portals, p. 2
#                                                 | | `- READY   a receive must have been posted
#                                                 | `--- REPLY   data that the receiver asked for
#                                                 `----- LONG    saved by its header alone where no receive was posted
#
#     source    rank in the communicator (in the sender's own group of an inter-communicator)
#     context   the *receiver's* number for the communicator, see `context.pxd`
#
# Negative tags have bit 63 set, and ANY_TAG asks that it be clear: it never takes a message of the library's own.
from libc.stdint cimport uint16_t, uint32_t, uint64_t

# Entries of the portal table.
cdef enum:
    PORTAL_RECEIVE = 0              # posted receives, then the two catch-alls
    PORTAL_ACKNOWLEDGE = 1          # an entry for each send that waits for word of its message
    PORTAL_READ = 2                 # an entry for each long send: its memory, to be read
    PORTAL_CONTROL = 3              # contexts and credit
    PORTALS = 4

cdef enum:
    TYPE_READY = 1
    TYPE_REPLY = 2
    TYPE_LONG = 4
    TYPE_ALL = 7

cdef enum:
    CONTEXT_BITS = 13
    CONTEXTS = 1 << CONTEXT_BITS
    LARGEST_GROUP = 1 << 16

# Header.user_data[0] of a message for PORTAL_RECEIVE.  A short synchronous one has its return match bits behind it.
cdef enum:
    PROTOCOL_PLAIN = 0
    PROTOCOL_SYNCHRONOUS = 1

# Header.user_data[0] of what we (not the kernel) send to PORTAL_ACKNOWLEDGE.
cdef enum:
    WORD_MATCHED = 1                # of a synchronous send
    WORD_DISCARDED = 2              # of a ready one for which no receive was posted
    WORD_THROWN_AWAY = 3            # of a long one whose receive was abandoned: stands for the kernel's acknowledgement

# Header.user_data[0] of a message for PORTAL_CONTROL; `match_bits` is its argument.
cdef enum:
    CONTROL_ASK = 1                 # argument: a communicator's 64-bit context.  What is your number for it?
    CONTROL_TELL = 2                # the same; user_data[2..3]: the number
    CONTROL_CREDIT = 3              # argument: bytes of heap that were given back since the start; user_data[1]: the lane


cdef inline uint64_t match_bits(int tag, int source, int context, int kind) noexcept nogil:
    return (<uint64_t> <uint32_t> tag) << 32 | (<uint64_t> <uint16_t> source) << 16 | <uint64_t> (context << 3 | kind)


cdef inline int tag_of(uint64_t bits) noexcept nogil:
    return <int> <uint32_t> (bits >> 32)


cdef inline int source_of(uint64_t bits) noexcept nogil:
    return <int> (bits >> 16 & 0xFFFF)


cdef inline int context_of(uint64_t bits) noexcept nogil:
    return <int> (bits >> 3 & (CONTEXTS - 1))
