# The links to one peer, taken as one: several connections, or a single one that is made again when it is lost.
#
#     kept       5  6  7  8  9  10        all that the peer has not acknowledged, by sequence: payloads of messages as
#     waiting             8  9  10        copies, those of puts where they lie
#                                \______  of these, what no link has yet
#     link 0     5     7
#     link 1        6                     each takes the first that waits whenever it has room: the quicker one takes more
#
#     from it    expected 3, early {5, 7} 3 is handed over when it comes, then 4, and 5 at once behind it
#
# GUARANTEE.  A frame leaves `kept` when the peer has acknowledged it, and only then is a put over and its memory the caller's.
# When a link is lost, what it had taken and is not acknowledged waits again, before what is younger, for any link: the others
# at once, or the one that comes next.  What comes twice is known by its sequence and dropped; a put that comes by two links at
# a time is written by both, and by none any more once all of it has come by one.  So each frame is taken once, and messages are
# handed over in the order of the calls.
#
# ACKNOWLEDGEMENTS.  Every frame tells the first one of the other direction that has not come.  By itself that is told where
# the sender asks: with the last piece of a put, with a goodbye, and with each quarter of the window; and when a link is lost.
#
# A put that is worth it is cut into pieces, which go over several links.  Before the first link nothing is taken; while there
# is none later, everything waits.
from libc.stdint cimport uint32_t, uint64_t

from ompy.mca.btl cimport Descriptor
from ompy_btl_tcp.connection cimport Connection
from ompy_btl_tcp.frame cimport PutFrame
from ompy_btl_tcp.wire cimport Part

cdef enum:
    FARTHEST = 1 << 16                           # frames not acknowledged, at most but for the pieces of one put
    FIRST = 0xffffff00                           # sequence, so that every job that lasts sees it begin anew at 0


cdef class Transfer:
    """A put."""
    cdef Descriptor descriptor
    cdef size_t left                             # pieces that are not acknowledged


cdef class Parcel:
    """A frame that is kept."""
    cdef PutFrame head
    cdef size_t head_size
    cdef char *copied                            # the payload, NULL for a put's
    cdef const char *payload
    cdef size_t size                             # of all of it, with head and padding
    cdef size_t sent                             # of that, with the system
    cdef Link link                               # that has taken it last; None: it waits
    cdef bint is_over                            # acknowledged, while it waited to go again
    cdef Transfer transfer                       # of a put; None: a message

    # Those of what is still to be sent; how many.
    cdef int parts(self, Part *parts) noexcept


cdef class Link(Connection):
    cdef Bundle bundle
    cdef readonly int number
    cdef Parcel current                          # which it is in the middle of
    cdef bint awaits_room                        # it is watched for that
    cdef bint is_putting                         # a put is arriving
    cdef uint32_t arriving                       # ... whose sequence is this


cdef class Bundle:
    cdef readonly bytes name, me
    cdef object endpoint                         # BundleEndpoint; None until the PML knows the peer
    cdef readonly dict links                     # number -> Link
    cdef readonly dict turns                     # number -> how many links there have been
    cdef object done                             # where descriptors go that are over
    cdef size_t window, queue_limit, piece
    # -- to the peer
    cdef object kept, waiting                    # deques of Parcel
    cdef uint32_t following, acknowledged        # the next sequence, and the first that is not acknowledged
    cdef uint32_t asked                          # the frame behind the last that asked
    cdef size_t copied, unasked                  # bytes of copies kept, and of those since it was asked last
    cdef size_t unsent                           # bytes that wait
    cdef size_t puts                             # that are not over
    cdef bint held_back                          # somebody was refused
    cdef readonly uint64_t sent_again
    # -- from the peer
    cdef uint32_t expected, told                 # the first frame that has not come, and which one was told last
    cdef uint32_t wanted                         # the frame behind the last that asks
    cdef bint must_tell                          # a link was lost, or a frame came again: the peer may not know
    cdef dict early                              # sequence -> (kind, tag, data), None for a put
    cdef size_t early_bytes
    cdef bint departed, is_over                  # the peer, and this process, has said goodbye
    # -- for whoever makes the links
    cdef double missing_since                    # seconds; no link stands; 0: one does
    cdef double denied_since                     # ... and all who answer deny that the peer is there; 0: they do not
    cdef object ways                             # to the peer, as `card.ways` has them; None until the PML knows the peer
    cdef dict next_call                          # number -> when it may be called
    cdef str last_failure                        # of a call, in words

    # OK, or OUT_OF_RESOURCE, unless it `must` be taken; the payload is the caller's again.
    cdef int send(self, int kind, int tag, const char *data, size_t size, const char *payload, size_t payload_size,
                  bint must) except -1
    # OK, or OUT_OF_RESOURCE; the descriptor goes to `done` when all of it is acknowledged.
    cdef int put(self, Descriptor descriptor, uint64_t handle) except -1
    # Have links take what waits, and what is owed.
    cdef int spread(self) except -1
    cdef int pump(self, Link link) except -1
    # The peer has told what it has; whether anything was new.
    cdef bint settle(self, uint32_t acknowledged) except -1
    # A link is no more.
    cdef int take_back(self, Link link) except -1
    # An acknowledgement is owed.
    cdef bint owes(self) noexcept
    # Descriptors of what will never be acknowledged.
    cdef list abandon(self)
    cdef int keep(self, Parcel parcel, bint asks) except -1
    cdef int release(self) except -1
    cdef Parcel next_parcel(self)
    # Whether those who were refused may try again.
    cdef bint has_room_again(self) noexcept
