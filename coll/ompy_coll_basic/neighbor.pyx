# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Neighbourhood collectives (MPI-4.1, 8.6): a message to and from each neighbour of the communicator's topology.

A process may be a neighbour several times over.  In a graph its k-th message is then for its k-th appearance on the other
side.  In a Cartesian grid it is both directions of a dimension of length two (or of length one: itself), and what goes
down arrives as what comes from above:

    neighbours, in and out     d0 below, d0 above, d1 below, d1 above, ...
    sent in that order, so received in the order   d0 above, d0 below, d1 above, ...
"""
from ompy.core.communicator cimport Communicator
from ompy.core.constants cimport PROC_NULL
from ompy.core.schedule cimport Schedule
from ompy.mca.coll cimport CollectiveCall
from ompy.mca.coll_layout cimport Layout, copy_block, receiving, recv_block, regular, send_block, sending
from ompy_coll_basic.builder cimport builder

from ompy.core.errors import ERR_TOPOLOGY, MPIError


cdef int exchange(Schedule schedule, CollectiveCall call, Communicator comm, bint same) except -1:
    """Block i of the send side to out-neighbour i (the same one to all, in a gather), block i from in-neighbour i."""
    cdef Layout source = regular(call.send_address, call.send_count, call.send_type) if same else sending(call)
    cdef Layout target = receiving(call)
    topology = comm.attributes.get("topology")
    if topology is None:
        raise MPIError(ERR_TOPOLOGY, f"{comm!r} has no topology: a neighbourhood collective needs one")
    cdef list sources = list(topology.in_neighbors), destinations = list(topology.out_neighbors)
    cdef list from_self = []
    cdef int swap = 1 if topology.is_cartesian else 0
    cdef int index, peer, slot
    for index in range(len(sources)):
        slot = index ^ swap
        peer = sources[slot]
        if peer == comm.rank:
            from_self.append(slot)
        elif peer != PROC_NULL:
            recv_block(schedule, &target, slot, peer)
    for index in range(len(destinations)):
        peer = destinations[index]
        slot = 0 if same else index
        if peer == comm.rank:
            copy_block(schedule, &source, slot, &target, from_self.pop(0))
        elif peer != PROC_NULL:
            if same and call.recv_counts != NULL and call.send_count * call.send_type.size == 0:
                continue
            send_block(schedule, &source, slot, peer)
    return 0


cdef int gather(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    return exchange(schedule, call, comm, True)


cdef int alltoall(Schedule schedule, CollectiveCall call, Communicator comm) except -1:
    return exchange(schedule, call, comm, False)


BUILDERS = {
    ("neighbor_allgather", "linear"): builder(gather),
    ("neighbor_allgatherv", "linear"): builder(gather),
    ("neighbor_alltoall", "linear"): builder(alltoall),
    ("neighbor_alltoallv", "linear"): builder(alltoall),
    ("neighbor_alltoallw", "linear"): builder(alltoall),
}
