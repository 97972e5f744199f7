# The connection to one peer: its socket, what waits to be sent, and the frames that come.
#
# What is sent goes to the system at once, gathered from wherever it lies.  What the system does not take waits in a queue:
#
#     sendi            the rest is copied: the caller's memory is its own again
#     send, put        it stays where it is until the system has taken it, and the callback is run by a later progress
#
# A queue that is full refuses (OUT_OF_RESOURCE).  Nothing here calls back.
#
# Short messages whose sender has still to wait for them may leave together, since to send a packet costs ten times what it
# costs to add to one:
#
#     Isend  Isend  Isend  Isend    Waitall            the first of a turn of `progress` leaves at once; MSG_MORE: Linux keeps
#       |      '------'------'---------'--> one packet  the others until it is told (`send_gathered`), a message that is not
#       '--> a packet                                  deferred follows, or, if the program never calls again, for 0.2 s at most
from libc.stdint cimport uint32_t, uint64_t

from ompy.mca.btl cimport Descriptor, Endpoint
from ompy_btl_tcp.frame cimport Frame, PutFrame
from ompy_btl_tcp.seal cimport Seal
from ompy_btl_tcp.wire cimport Part, Wire


cdef class Outgoing:
    """A frame that is not, or not all, with the system yet."""
    cdef Descriptor descriptor                   # None for a copy
    cdef char *copied
    cdef PutFrame head                           # or, of another kind, its beginning
    cdef Part parts[4]
    cdef int at, count                           # parts from `at` on are still to go
    cdef size_t left                             # bytes of these


cdef class Connection:
    cdef Wire wire
    cdef Seal seal                               # None: in clear
    cdef readonly bytes name                     # of the peer, as the handshake has it
    cdef readonly str where                      # its address, for people
    cdef Endpoint endpoint                       # None until the PML knows the peer
    cdef object queue                            # of Outgoing
    cdef size_t queued                           # bytes in it
    cdef size_t limit                            # of those
    cdef size_t largest                          # payload of a frame of data
    cdef object done                             # where descriptors go of which all is with the system
    cdef uint32_t frames_out, frames_in
    cdef unsigned int turn                       # of the transport's `progress`, in which something was sent last
    cdef size_t gathered                         # bytes that leave together, so far
    cdef bint gathers                            # the system has what is to leave with what follows
    cdef bint is_link                            # of a bundle, which looks at sequences itself
    cdef int last_kind                           # of the frames that may come
    cdef bint is_hot                             # among those that are looked at each time
    cdef unsigned int steady                     # times that something came since it became hot, or anybody was about to sleep
    cdef bint is_broken                          # the system takes nothing any more
    cdef bint held_back                          # somebody was refused, and waits for room
    cdef bint departed                           # the peer has said goodbye
    cdef bint is_over                            # this process has, and says no more
    cdef uint64_t aim                            # the registration that a put is arriving in
    cdef size_t skipped                          # bytes of padding before the next frame
    cdef uint64_t unasked, asks, answers         # puts since the last ASK; ASKs, and their ANSWERs

    # OK, or OUT_OF_RESOURCE, unless it `must` be taken.  The frame's sequence is filled in.  It may leave `later`, with others.
    cdef int send(self, PutFrame *head, size_t head_size, const char *data, size_t size, const char *payload,
                  size_t payload_size, Descriptor descriptor, bint must, bint later) except -1
    # Have the system take of the parts, `size` bytes, what it will: as `wire.push`.
    cdef ssize_t pass_on(self, Part *parts, int count, size_t size) except? -1
    cdef int break_off(self) except -1
    cdef int keep(self, Part *parts, int count, size_t sent, size_t total, Descriptor descriptor) except -1
    # Send what waits; the number of descriptors done.
    cdef int flush(self) except -1
    # From here on all is sealed: `channel` is the one that both ends have proved themselves by.
    cdef int protect(self, channel) except -1
    # The next frame that is here, with its payload unless it is a put; NULL: none.
    cdef const Frame *next_frame(self) except? NULL
    cdef const Frame *look(self) except? NULL
    # Whether nothing that has come is left to look at; then there is all the room again.
    cdef bint is_drained(self) noexcept
    # Where the payload of the put that `next_frame` gave goes; NULL: nowhere.
    cdef int receive_put(self, char *target, uint64_t handle, size_t size) except -1
    # Room behind what has come.
    cdef int tidy(self, size_t needed) except -1
