# Every peer's channel, and what is to be done for them as time passes.
#
#     send       a packet over the path that the PML has chosen, or another where that is lost; while there is none it waits
#     loss       packets that went by the path go over others at once; none left: the peer is lost after `failover`
#     progress   acknowledgements that are due; packets that were not acknowledged in time, over the next path; lost paths
#                renewed, and asked whether the peer is there
#
# Where r2 has left a BTL aside for its exclusivity, or the PML uses another for its latency, it stands by: once a path of the
# peer is lost, each BTL that can renew contact is asked for a path.  BTLs that can share what goes to one peer have one
# largest packet, the smallest of theirs.
from libc.stdint cimport int64_t, uint64_t

from ompy.core.proc cimport Proc
from ompy.core.progress_source cimport ProgressSource

from ompy_pml_dr.channel cimport Channel, Packet, Patience
from ompy_pml_dr.path cimport Path


cdef class Channels(ProgressSource):
    cdef Patience patience
    cdef object helper
    cdef readonly list btls         # ReliableBtl
    cdef dict by_peer               # (job, rank) -> Channel
    cdef list busy                  # those with something to watch
    cdef int64_t due                # when the first of them has something to do
    cdef bint working               # inside `progress`
    cdef int tag                    # that the peer has a receiver for
    cdef uint64_t sent_again, acknowledgements, peers_lost, paths_lost, paths_renewed

    cdef Channel of(self, Proc proc)
    cdef int forget(self, Channel channel) except -1
    cdef int watch(self, Channel channel, int64_t due) except -1
    # Have the path take a packet, or another one, or none as yet (OK); OUT_OF_RESOURCE where the one that stands has no room.
    cdef int dispatch(self, Channel channel, Packet *packet, Path path, int64_t now) except -1
    cdef int go_around(self, Channel channel, Packet *packet, Path path, int64_t now) except -1
    cdef Path standing(self, Channel channel, int number, size_t length)
    cdef int repeat(self, Channel channel, Packet *packet, Path path, int64_t now) except -1
    cdef int fill_gaps(self, Channel channel, int64_t now) except -1
    cdef int send_strays(self, Channel channel, int64_t now) except -1
    cdef int acknowledge(self, Channel channel, int64_t now) except -1
    # A control frame came by the path.
    cdef int heard(self, Path path, bint asks, bint answers, int64_t now) except -1
    cdef int lose(self, Path path, object error) except -1
    cdef int stand_by(self, Channel channel) except -1
    cdef int advance_path(self, Path path, int64_t now) except -1
    cdef int attend(self, Channel channel, int64_t now) except -1
    cdef int wait_for_path(self, Channel channel, int64_t now) except -1
    cdef int time_out(self, Channel channel, int64_t now) except -1
    cdef int64_t next_look(self, Channel channel) noexcept
    cdef int give_up(self, Channel channel, object error) except -1
