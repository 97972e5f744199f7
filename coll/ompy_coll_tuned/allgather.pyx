# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""Allgather and allgatherv (MPI-4.1, 6.7)."""
from ompy.core.basic cimport BASIC_BYTE
from ompy.core.communicator cimport Communicator
from ompy.core.schedule cimport Schedule
from ompy.core.typemap cimport Typemap, predefined
from ompy.mca.coll cimport CollectiveCall
from ompy.mca.coll_layout cimport Layout, address_of, allgather_straight, copy_own, receiving, recv_block, send_block
from ompy_coll_tuned.algorithm cimport Tuning, builder
from ompy_coll_tuned.bcast cimport send_down
from ompy_coll_tuned.gather cimport gather_up
from ompy_coll_tuned.tree cimport KNOMIAL, Tree, make_tree

cdef Typemap byte = predefined(BASIC_BYTE)


cdef int linear(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    return allgather_straight(schedule, call, comm)


cdef int ring(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    """Each block goes round: in each round a rank hands on to the right what it got from the left.

        rank 0 of 3     has 0   sends 0, gets 2     sends 2, gets 1
    """
    cdef Layout target = receiving(call)
    cdef int step, size = comm.size
    cdef int right = (comm.rank + 1) % size
    cdef int left = (comm.rank - 1 + size) % size
    copy_own(schedule, call, &target, comm)
    for step in range(size - 1):
        recv_block(schedule, &target, (left - step + size) % size, left)
        send_block(schedule, &target, (comm.rank - step + size) % size, right)
        schedule.next_round()
    return 0


cdef int neighbor_exchange(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    """An even number of ranks swap with the neighbour on one side and on the other in turn, after the first round what
    came last, two blocks (Chen, Zhang, Wei & Yuan, HPC Asia 2005).

        rank 0 of 6     1 from 1      4 5 from 5      2 3 from 1
        rank 1          0 from 0      2 3 from 2      4 5 from 0
    """
    cdef Layout target = receiving(call)
    cdef int size = comm.size, rank = comm.rank, step, peer, side, arriving
    cdef int pair = rank & ~1, leaving = pair
    # Even ranks begin with the right side, odd ones with the left: so the first swap is within a pair.
    cdef int forward = -1 if rank & 1 else 1
    copy_own(schedule, call, &target, comm)
    recv_block(schedule, &target, rank + forward, rank + forward)
    send_block(schedule, &target, rank, rank + forward)
    for step in range(1, size // 2):
        # Each side brings the pair of blocks that lies two places further on that side than its last.
        side = -forward if step & 1 else forward
        peer = (rank + side + size) % size
        arriving = (pair + side * 2 * ((step + 1) // 2) + size) % size
        schedule.next_round()
        recv_block(schedule, &target, arriving, peer)
        recv_block(schedule, &target, arriving + 1, peer)
        send_block(schedule, &target, leaving, peer)
        send_block(schedule, &target, leaving + 1, peer)
        leaving = arriving
    return 0


cdef int recursive_doubling(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    """A power of two of ranks: partners 1, 2, 4, ... ranks away swap all blocks that they have."""
    cdef Layout target = receiving(call)
    cdef int bit = 1, mine
    copy_own(schedule, call, &target, comm)
    while bit < comm.size:
        mine = comm.rank & ~(bit - 1)
        schedule.recv(address_of(&target, mine ^ bit), bit * call.recv_count, call.recv_type, comm.rank ^ bit)
        schedule.send(address_of(&target, mine), bit * call.recv_count, call.recv_type, comm.rank ^ bit)
        schedule.next_round()
        bit <<= 1
    return 0


cdef int bruck(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    """Each rank gathers the blocks from its own on, and turns them into place at the end (Bruck et al., TPDS 8(11), 1997).

        rank r of 5      r     r r+1     r r+1 r+2 r+3     all
                         from r+1        from r+2          one block from r+4
    """
    cdef Layout target = receiving(call)
    cdef int size = comm.size, rank = comm.rank, have = 1, more
    cdef Py_ssize_t block = call.recv_count * call.recv_type.size
    cdef size_t blocks = schedule.scratch(size * block, byte)
    if call.send_in_place:
        schedule.copy(address_of(&target, rank), call.recv_count, call.recv_type, blocks, block, byte)
    else:
        schedule.copy(call.send_address, call.send_count, call.send_type, blocks, block, byte)
    while have < size:
        more = min(have, size - have)
        schedule.recv(blocks + have * block, more * block, byte, (rank + have) % size)
        schedule.send(blocks, more * block, byte, (rank - have + size) % size)
        schedule.next_round()
        have += more
    schedule.copy(blocks, (size - rank) * block, byte, address_of(&target, rank), (size - rank) * call.recv_count,
                  call.recv_type)
    return schedule.copy(blocks + (size - rank) * block, rank * block, byte, target.address, rank * call.recv_count,
                         call.recv_type)


cdef int nonoverlapping(Schedule schedule, CollectiveCall call, Communicator comm, Tuning tuning) except -1:
    """All blocks to rank 0 up a binomial tree, and all of them down it."""
    cdef Layout target = receiving(call)
    cdef Tree tree = make_tree(KNOMIAL, 2, 0, comm)
    if call.send_in_place:
        gather_up(schedule, address_of(&target, comm.rank), call.recv_count, call.recv_type, True, &target, tree, comm)
    else:
        gather_up(schedule, call.send_address, call.send_count, call.send_type, False, &target, tree, comm)
    schedule.next_round()
    return send_down(schedule, call.recv_address, call.recv_count * comm.size, call.recv_type, tree, 0)


BUILDERS = {
    ("allgather", "nonoverlapping"): builder(nonoverlapping),
    ("allgather", "linear"): builder(linear),
    ("allgather", "ring"): builder(ring),
    ("allgather", "neighbor_exchange"): builder(neighbor_exchange),
    ("allgather", "recursive_doubling"): builder(recursive_doubling),
    ("allgather", "bruck"): builder(bruck),
    ("allgatherv", "linear"): builder(linear),
    ("allgatherv", "ring"): builder(ring),
    ("allgatherv", "neighbor_exchange"): builder(neighbor_exchange),
}
