# TCP with several links to a peer, or with one that is made again when it is lost: `bundle.pxd` has the guarantee.
#
#     link lost --> what it had is taken back --> the others carry on
#                                            \--> called again, by whoever has the lower name first --> carries its share again
#     the last one lost --> failover_timeout, or denied for a second, or the launcher tells of it --> the peer is lost
#
# Link k goes over the ways k, k + links, .. of `card.ways`, which are the same at both ends.  The handshake says which link a
# call is for, and how many there were: a caller who knows of the one that stands says that it does not any more.
#
# A process that has ended answers for none of its ports: its host denies them.  One whose host answers the network's connect is
# alive, if perhaps computing.  A connection that nobody answers is known by what the system has sent again, or
# asked again (`wire.silence`).
from libc.stdint cimport uint64_t

from ompy_btl_tcp.bundle cimport Bundle, Link
from ompy_btl_tcp.connection cimport Connection
from ompy_btl_tcp.endpoint cimport BundleEndpoint
from ompy_btl_tcp.frame cimport Frame
from ompy_btl_tcp.module cimport TcpBtl


cdef class BundledTcpBtl(TcpBtl):
    cdef dict bundles                            # name -> Bundle
    cdef set ripe                                # of these, some whose early frames may be handed over
    cdef int most                                # links
    cdef double patience, next_look              # seconds
    cdef unsigned int longest_silence            # milliseconds
    cdef bint is_closing                         # what comes is for nobody
    cdef uint64_t links_lost, sent_again

    cdef int open_bundle(self, BundleEndpoint endpoint) except -1
    cdef int update_links(self, Bundle bundle) except -1
    cdef bint take(self, Link link, const Frame *frame) except -1
    cdef int take_arrived(self, Link link) except -1
    cdef int hand_over_early(self, Bundle bundle) except -1
    cdef int hand_over_message(self, Bundle bundle, int tag, const char *data, size_t length) except -1
    cdef int close_link(self, Link link) except -1
    cdef int give_up(self, Bundle bundle, str reason, bint report) except -1
    cdef int look_after(self, Bundle bundle, double now) except -1
    cdef int call_link(self, Bundle bundle, int number) except -1
    cdef int say_goodbye(self, Bundle bundle) except -1
