# Memory descriptors: where and how a message's bytes go (Cplant; MPI on portals, p. 2).
#
#     SINGLE       [start ............ length]           one run of bytes; offset managed by senders or by the receiver
#     INDEPENDENT  [buffer][buffer][buffer] ...          one message a buffer, in a line or in a circle
#     COMBINED     [buffer|buffer|buffer] ...            a message flows over buffers; what is read is gathered from them
#     DYNAMIC      [heap: letters, free blocks]          the kernel allocates for each message (see `heap`)
#
#                  write  read  sender's offset  save header  save body  both  acknowledge
#     SINGLE         x     x          x               x           x       x        x
#     INDEPENDENT    x     x                          x           x       x        x
#     COMBINED       x     x          x                           x                x
#     DYNAMIC        x                                x                   x        x
#
# A single block with sender's offset may also be one whose words are changed (CHANGE).
#
# A header is saved in front of the body in a single block, in `Buffer.header` of an independent one, in the letter of a
# dynamic one.  A descriptor that saves headers only never finds a message too long.
#
# `overlay` names another descriptor of the same kind whose memory and position this one uses, with options and counters of
# its own: two match entries on one heap, the second saving headers only.
#
# Descriptors and buffers live in the owner's memory; the kernel checks every field before it uses it.
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t

from ompy_puma.header cimport Header

cpdef enum DescriptorKind:
    DESCRIPTOR_INVALID = 0
    SINGLE = 1
    INDEPENDENT = 2
    COMBINED = 3
    DYNAMIC = 4

# MemoryDescriptor.operation
cpdef enum:
    WRITE = 0
    READ = 1
    # Not in the papers, whose kernels have no atomics: a message, a `Change`, alters a word of a single block in place, and an
    # acknowledgement brings back what it was.
    CHANGE = 2

# MemoryDescriptor.save, and `saved` of events and acknowledgements
cpdef enum:
    SAVE_HEADER = 1
    SAVE_BODY = 2
    SAVE_BOTH = 3

# MemoryDescriptor.options
cpdef enum:
    SENDER_OFFSET = 0x01        # else the receiver's: each message goes behind the one before
    CIRCULAR = 0x02             # buffers of an independent block are used again, once their owner has freed them
    ACKNOWLEDGE = 0x04          # tell senders that gave a return portal what was saved
    # Not in the papers: what does not fit is cut off, where the too-long link would be followed.  `header.length` still
    # says how long the message was.
    TRUNCATE = 0x08
    # Nor this: letters may be moved together in a dynamic block when only the sum of its free blocks is large enough.  The
    # owner then keeps no pointer to a letter while messages may arrive.
    COMPACT = 0x10

# Buffer.state: whose turn it is
cpdef enum:
    BUFFER_FREE = 0             # the kernel's: to be written, or read
    BUFFER_BUSY = 1             # the kernel's: bytes are on their way
    BUFFER_USED = 2             # the owner's: written, or read; it sets it free again

cpdef enum:
    NO_OVERLAY = -1

cdef struct Buffer:
    char *address
    uint64_t length
    uint64_t used                                # bytes of body in it
    int32_t state
    int32_t reserved
    Header header                                # of the message in it, where headers are saved

cdef struct MemoryDescriptor:
    uint8_t kind
    uint8_t operation
    uint8_t save
    uint8_t options
    int32_t overlay                              # index of the descriptor whose memory this uses, or NO_OVERLAY
    char *start                                  # SINGLE, DYNAMIC
    uint64_t length
    uint64_t offset                              # SINGLE, COMBINED with receiver's offset: where the next message goes
    Buffer *buffers                              # INDEPENDENT, COMBINED
    uint32_t buffer_count
    uint32_t current                             # INDEPENDENT: buffer for the next message
    # Counted up by the kernel and never set back: a watcher compares with what it has seen.
    uint64_t messages                            # written or read whole
    uint64_t bytes
    uint64_t dropped                             # that ended here
    int32_t last_drop                            # DropReason
    int32_t reserved


# Fields of a descriptor in one go; all else zero.  Counters stay as they are.
cdef void make_single(MemoryDescriptor *descriptor, char *start, uint64_t length, int operation, int save,
                      int options) noexcept nogil
cdef void make_independent(MemoryDescriptor *descriptor, Buffer *buffers, uint32_t count, int operation, int save,
                           int options) noexcept nogil
cdef void make_combined(MemoryDescriptor *descriptor, Buffer *buffers, uint32_t count, int operation,
                        int options) noexcept nogil
# `start` was made a heap by `heap.format_heap`.
cdef void make_dynamic(MemoryDescriptor *descriptor, char *start, uint64_t length, int save, int options) noexcept nogil
cdef void make_overlay(MemoryDescriptor *descriptor, const MemoryDescriptor *below, int32_t index, int save,
                       int options) noexcept nogil
