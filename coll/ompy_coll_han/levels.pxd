# The two levels of a communicator: on each host a communicator of its ranks, *low*, and one of the hosts' first ranks, *up*.
#
#     host a: ranks 0 2 5    host b: ranks 1 4    host c: rank 3
#
#     low     0 2 5          1 4                  3
#     up      0              1                    3               the leader of each host, in the order of ranks
#     places  0 2 5          1 4                  3               ranks in the order of hosts: place 3 is rank 1
#
# Where places are ranks (each host has a run of ranks), blocks need no sorting, and reductions keep the order of ranks.
from ompy.core.communicator cimport Communicator


cdef class Levels:
    cdef readonly Communicator low               # of this host; of this rank alone where the host has no other
    cdef readonly Communicator up                # None where this rank is no leader
    cdef readonly int hosts                      # how many
    cdef readonly int host                       # this rank's: its leader's rank in `up`
    cdef readonly bint in_order                  # places are ranks
    cdef int *host_of                            # rank -> host
    cdef int *place_of                           # rank -> place
    cdef int *rank_at                            # place -> rank
    cdef int *first                              # host -> its first place; one more: the number of ranks

    cdef inline int size_of(self, int host) noexcept:
        """Ranks of a host."""
        return self.first[host + 1] - self.first[host]

    cdef inline int leader_of(self, int host) noexcept:
        return self.rank_at[self.first[host]]

    cdef inline int low_rank(self, int rank) noexcept:
        """A rank's own in the `low` of its host."""
        return self.place_of[rank] - self.first[self.host_of[rank]]

    cdef int let_go(self) except -1


# The levels of a communicator whose ranks are on these hosts, collective; None where every rank is on one, or on its own.
cdef Levels make_levels(Communicator comm, list hosts)
