# What travels over a connection: frames, one after the other, each with its payload.
#
#     | Frame | payload, padded to a multiple of 8 |     so that every frame, and every payload, begins at one
#
# Numbers are in the host's byte order, since a job's hosts are alike.  A PUT has a second part before its payload.
from libc.stdint cimport uint8_t, uint32_t, uint64_t

cdef enum:
    FRAME_DATA = 1                  # a message for the receiver of its tag
    FRAME_PUT = 2                   # bytes for memory that was registered there
    FRAME_ASK = 3                   # have all puts so far arrived?
    FRAME_ANSWER = 4                # ... they have: one for each ASK, in their order
    FRAME_GOODBYE = 5               # nothing comes any more, and the end of the connection is no failure
    FRAME_ACKNOWLEDGE = 6           # between bundles (`bundle.pxd`) alone: says no more than `acknowledged`; has no sequence

cdef struct Frame:
    uint32_t length                 # of the payload, without padding
    uint32_t sequence               # counts the frames of one direction, from 0; in a bundle those of all its links together
    uint8_t kind
    uint8_t tag
    uint8_t asks                    # in a bundle, 1: an acknowledgement is wanted soon
    uint8_t spare                   # zero
    uint32_t acknowledged           # in a bundle: the first frame of the other direction that has not come; else 0

cdef struct PutFrame:
    Frame frame
    uint64_t handle                 # of the registration, at the receiver
    uint64_t address                # at the receiver, within it

cdef inline size_t padding(size_t length) noexcept nogil:
    return -length & 7
