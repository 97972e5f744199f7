# A group and a context, as PMLs and collectives see it (MPI-4.1, 7.2).  The MPI layer's `Comm` is a handle on one.
from libc.stdint cimport uint64_t

from ompy.core.group cimport Group
from ompy.core.proc cimport Proc

# What every member knows of where they are.
cdef enum Placement:
    ANYWHERE                                     # nothing
    TOGETHER                                     # all share a host
    APART                                        # each has a host of its own


cdef class Communicator:
    cdef readonly uint64_t context               # the same number in every member, unique in the universe while it lives
    cdef readonly int rank                       # of this process in the local group
    cdef readonly int size                       # of the local group
    cdef readonly int remote_size                # of the remote group; of the only group within an intra-communicator
    cdef readonly bint is_inter
    cdef readonly bint spans_jobs                # some member came from another job
    cdef readonly Group group
    cdef readonly Group remote_group             # is `group` in an intra-communicator
    cdef public object pml                       # the PML's state for this communicator
    cdef public object coll                      # CollTable: which module serves each function
    cdef public object local_communicator        # an inter-communicator's intra-communicator over its local group
    cdef public dict attributes                  # what the MPI layer keeps: name, keyvals, topology, error handler, info
    # Of a part of another communicator, made to carry that one's collectives out: this one's fail with a process of that one.
    cdef public Communicator whole
    cdef public int placement                    # a `Placement`
    cdef public str name
    cdef public int purpose                      # an `Operation` (board.pxd) that the library uses it for just now, or 0
    cdef readonly bint freed                     # the program can begin nothing here any more
    # What may yet send or receive here: requests from begin to finish, receives that wait without one, and holds.  PML and
    # collectives serve a communicator that was freed until there is nothing (MPI-4.1, 7.4.3).
    cdef readonly int under_way
    cdef int next_collective_tag, next_persistent_tag
    # Contexts for communicators that will be made from this one, the same in every member: the first, and how many.
    cdef uint64_t next_context
    cdef uint64_t contexts_left

    cdef inline Proc peer(self, int rank):
        return self.remote_group.proc(rank)

    # Why collectives can't go on: the failure of one of its processes, or None.
    cdef object failure(self)

    # A tag of the library's own for the next collective call; calls come in the same order on every rank.
    cdef int collective_tag(self)
    # Another one for a persistent collective, which may still be used when those of calls come round.
    cdef int persistent_tag(self)


cdef Communicator new_communicator(uint64_t context, Group group, Group remote_group, str name)


# What has not begun and may yet: a persistent request, a matched message.  It counts as under way as long as it exists.
cdef class Hold:
    cdef Communicator communicator
