# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Collectives that move data, by the two levels."""
from libc.string cimport memcpy

from ompy.core.basic cimport BASIC_BYTE
from ompy.core.communicator cimport Communicator
from ompy.core.convertor cimport copy_typed
from ompy.core.typemap cimport Typemap, predefined
from ompy.mca.coll cimport ALLGATHERV, ALLTOALLV, BARRIER, BCAST, GATHER, GATHERV, SCATTER, SCATTERV
from ompy.mca.coll_layout cimport Layout, address_of, receiving, sending

from ompy_coll_han.levels cimport Levels
from ompy_coll_han.steps cimport Pipeline, carry_out

cdef Typemap byte = predefined(BASIC_BYTE)
# Pieces of a message that a leader has on their way at once.
cdef int MOST_PIECES = 4


cdef int copy_packed(size_t packed, Py_ssize_t nbytes, size_t address, Py_ssize_t count, Typemap typemap) except -1:
    return copy_typed(<char *> packed, nbytes, byte, <char *> address, count, typemap)


cdef int pack(size_t address, Py_ssize_t count, Typemap typemap, size_t packed, Py_ssize_t nbytes) except -1:
    return copy_typed(<char *> address, count, typemap, <char *> packed, nbytes, byte)


cdef int unpack_places(Levels levels, size_t everything, Py_ssize_t nbytes, Layout *target, int left_out) except -1:
    """Blocks in the order of places to those of ranks, but for one rank's."""
    cdef int place, rank
    for place in range(levels.first[levels.hosts]):
        rank = levels.rank_at[place]
        if rank != left_out:
            copy_packed(everything + place * nbytes, nbytes, address_of(target, rank), target.count, <Typemap> target.typemap)
    return 0


cdef int barrier(Steps steps) except -1:
    """A leader hears from those of its host, leaders meet, and each tells its host."""
    cdef Communicator low = steps.levels.low, up = steps.levels.up
    cdef size_t words = steps.memory(low.size + 1)
    if low.size > 1:
        carry_out(low, GATHER, steps.blocks(words, 1, byte, words + 1, 1, byte, 0))
    if up is not None:
        carry_out(up, BARRIER, steps.call(0))
    return steps.bcast(low, words, 1, byte, 0)


cdef int bcast(Steps steps, CollectiveCall call, Py_ssize_t segment) except -1:
    """The root's host has it first where the root is no leader; the leaders of others hand it on.

        two pieces, a leader of another host      up 1     up 2
                                                           low 1    low 2
    """
    cdef Levels levels = steps.levels
    cdef Communicator low = levels.low
    cdef Pipeline pipeline
    cdef int home = levels.host_of[call.root]
    cdef bint at_home = levels.host == home, is_leader = levels.up is not None
    # The root's own host first, from the root; elsewhere, and where that is the leader, from the leader.
    cdef bint from_root = at_home and levels.leader_of(home) != call.root
    cdef int low_root = levels.low_rank(call.root) if from_root else 0
    cdef Py_ssize_t total = call.send_count * call.send_type.size, begin = 0, length, following
    cdef size_t data = call.send_address
    cdef bint copied
    if segment <= 0 or segment >= total:
        if from_root:
            steps.bcast(low, data, call.send_count, call.send_type, low_root)
        if is_leader:
            steps.bcast(levels.up, data, call.send_count, call.send_type, home)
        return 0 if from_root else steps.bcast(low, data, call.send_count, call.send_type, 0)
    copied = not call.send_type.contiguous
    if copied:
        data = steps.memory(total)
        if steps.comm.rank == call.root:
            pack(call.send_address, call.send_count, call.send_type, data, total)
    pipeline = Pipeline.__new__(Pipeline)
    pipeline.level = levels.up
    while begin < total:
        length = min(segment, total - begin)
        if is_leader and not from_root:
            if at_home or begin == 0:
                pipeline.begin(BCAST, steps.message(data + begin, length, byte, home))
            if not at_home:
                if begin + length < total:
                    following = min(segment, total - begin - length)
                    pipeline.begin(BCAST, steps.message(data + begin + length, following, byte, home))
                pipeline.finish_first()
        steps.bcast(low, data + begin, length, byte, low_root)
        if is_leader and from_root:
            pipeline.begin(BCAST, steps.message(data + begin, length, byte, home))
        if at_home:
            pipeline.keep(MOST_PIECES)
        begin += length
    pipeline.keep(0)
    if copied and steps.comm.rank != call.root:
        copy_packed(data, total, call.send_address, call.send_count, call.send_type)
    return 0


cdef int gather(Steps steps, CollectiveCall call) except -1:
    """Within each host to its leader, from leaders to that of the root's host, and from that to the root."""
    cdef Levels levels = steps.levels
    cdef Communicator low = levels.low
    cdef int root = call.root, home = levels.host_of[root], leader = levels.leader_of(home)
    cdef bint is_root = steps.comm.rank == root, at_home = levels.host == home, is_leader = levels.up is not None
    cdef bint straight = is_root and levels.in_order and call.recv_type.contiguous
    cdef bint in_place = straight and call.send_in_place
    cdef Layout target
    cdef size_t own = call.send_address, everything = 0, mine = 0
    cdef Py_ssize_t count = call.send_count, nbytes, total
    cdef Typemap typemap = call.send_type
    cdef CollectiveCall step
    if is_root:
        target = receiving(call)
        if call.send_in_place:
            own, count, typemap = address_of(&target, root), call.recv_count, call.recv_type
    nbytes = count * typemap.size
    total = steps.comm.size * nbytes
    if is_root or (is_leader and at_home):
        everything = call.recv_address if straight else steps.memory(total)
    if is_leader:
        mine = everything + levels.first[home] * nbytes if at_home else steps.memory(low.size * nbytes)
    if low.size > 1:
        step = steps.blocks(own, count, typemap, mine, nbytes, byte, 0)
        step.send_in_place = in_place and is_leader
        carry_out(low, GATHER, step)
    elif not in_place:
        pack(own, count, typemap, mine, nbytes)
    if is_leader:
        step = steps.blocks(mine, low.size * nbytes, byte, everything, 0, byte, home)
        if at_home:
            step.send_in_place = True
            steps.share_out(step, nbytes, False)
        carry_out(levels.up, GATHERV, step)
    steps.hand_over(everything, total, byte, leader, root)
    if is_root and not straight:
        unpack_places(levels, everything, nbytes, &target, root if call.send_in_place else -1)
    return 0


cdef int scatter(Steps steps, CollectiveCall call) except -1:
    """The reverse of a gather."""
    cdef Levels levels = steps.levels
    cdef Communicator low = levels.low
    cdef int root = call.root, home = levels.host_of[root], leader = levels.leader_of(home), place
    cdef bint is_root = steps.comm.rank == root, at_home = levels.host == home, is_leader = levels.up is not None
    cdef bint straight = is_root and levels.in_order and call.send_type.contiguous
    cdef Layout source
    cdef size_t everything = 0, mine = 0, target = call.recv_address
    cdef Py_ssize_t count = call.recv_count, nbytes, total
    cdef Typemap typemap = call.recv_type
    cdef CollectiveCall step
    nbytes = call.send_count * call.send_type.size if is_root else count * typemap.size
    total = steps.comm.size * nbytes
    if is_root or (is_leader and at_home):
        everything = call.send_address if straight else steps.memory(total)
    if is_root and not straight:
        source = sending(call)
        for place in range(steps.comm.size):
            pack(address_of(&source, levels.rank_at[place]), call.send_count, call.send_type, everything + place * nbytes,
                 nbytes)
    steps.hand_over(everything, total, byte, root, leader)
    if is_leader:
        mine = everything + levels.first[home] * nbytes if at_home else steps.memory(low.size * nbytes)
        step = steps.blocks(everything, 0, byte, mine, low.size * nbytes, byte, home)
        if at_home:
            step.recv_in_place = True
            steps.share_out(step, nbytes, True)
        carry_out(levels.up, SCATTERV, step)
    if call.recv_in_place and not is_leader:
        # Only whom the blocks come from can do without a place for its own.
        target, count, typemap = steps.memory(nbytes), nbytes, byte
    if low.size > 1:
        step = steps.blocks(mine, nbytes, byte, target, count, typemap, 0)
        step.recv_in_place = call.recv_in_place and is_leader
        return carry_out(low, SCATTER, step)
    return 0 if call.recv_in_place else copy_packed(mine, nbytes, target, count, typemap)


cdef int allgather(Steps steps, CollectiveCall call) except -1:
    """Within each host to its leader, among leaders, and everything to all of each host."""
    cdef Levels levels = steps.levels
    cdef Communicator low = levels.low
    cdef bint straight = levels.in_order and call.recv_type.contiguous
    cdef bint in_place = straight and call.send_in_place, is_leader = levels.up is not None
    cdef Layout target = receiving(call)
    cdef Py_ssize_t nbytes = call.recv_count * call.recv_type.size, total = steps.comm.size * nbytes
    cdef size_t everything = call.recv_address if straight else steps.memory(total)
    cdef size_t mine = everything + levels.first[levels.host] * nbytes
    cdef size_t own = call.send_address
    cdef Py_ssize_t count = call.send_count
    cdef Typemap typemap = call.send_type
    cdef CollectiveCall step
    if call.send_in_place:
        own, count, typemap = address_of(&target, steps.comm.rank), call.recv_count, call.recv_type
    if low.size > 1:
        step = steps.blocks(own, count, typemap, mine, nbytes, byte, 0)
        step.send_in_place = in_place and is_leader
        carry_out(low, GATHER, step)
    elif not in_place:
        pack(own, count, typemap, mine, nbytes)
    if is_leader:
        step = steps.blocks(0, 0, byte, everything, 0, byte, 0)
        step.send_in_place = True
        steps.share_out(step, nbytes, False)
        carry_out(levels.up, ALLGATHERV, step)
    steps.bcast(low, everything, total, byte, 0)
    return 0 if straight else unpack_places(levels, everything, nbytes, &target, -1)


cdef int alltoall(Steps steps, CollectiveCall call) except -1:
    """A leader collects what its host's ranks send, swaps with each other leader the blocks from host to host, and shares out
    what has come.

        low gather      [source][destination]              sources of this host, destinations in the order of ranks
        up alltoallv    [host][source][destination]        of each other host
        low scatter     [destination][source]              sources in the order of ranks
    """
    cdef Levels levels = steps.levels
    cdef Communicator low = levels.low
    cdef int size = steps.comm.size
    cdef Py_ssize_t nbytes = call.recv_count * call.recv_type.size, row = size * nbytes
    cdef size_t own = call.recv_address if call.send_in_place else call.send_address
    cdef Py_ssize_t count = size * (call.recv_count if call.send_in_place else call.send_count)
    cdef Typemap typemap = call.recv_type if call.send_in_place else call.send_type
    cdef size_t rows = 0, parts = 0, at
    cdef int host, source, place
    cdef CollectiveCall step
    if levels.up is None:
        carry_out(low, GATHER, steps.blocks(own, count, typemap, 0, row, byte, 0))
        return carry_out(low, SCATTER, steps.blocks(0, row, byte, call.recv_address, size * call.recv_count, call.recv_type, 0))
    rows = steps.memory(low.size * row)
    parts = steps.memory(low.size * row)
    if low.size > 1:
        carry_out(low, GATHER, steps.blocks(own, count, typemap, rows, row, byte, 0))
    else:
        pack(own, count, typemap, rows, row)
    at = parts
    for host in range(levels.hosts):
        for source in range(low.size):
            for place in range(levels.first[host], levels.first[host + 1]):
                memcpy(<void *> at, <void *> (rows + source * row + levels.rank_at[place] * nbytes), nbytes)
                at += nbytes
    step = steps.blocks(parts, 0, byte, rows, 0, byte, 0)
    steps.share_out(step, low.size * nbytes, True)
    steps.share_out(step, low.size * nbytes, False)
    carry_out(levels.up, ALLTOALLV, step)
    for host in range(levels.hosts):
        at = rows + levels.first[host] * low.size * nbytes
        for place in range(levels.first[host], levels.first[host + 1]):
            for source in range(low.size):
                memcpy(<void *> (parts + source * row + levels.rank_at[place] * nbytes), <void *> at, nbytes)
                at += nbytes
    if low.size > 1:
        return carry_out(low, SCATTER, steps.blocks(parts, row, byte, call.recv_address, size * call.recv_count, call.recv_type,
                                                    0))
    return copy_packed(parts, row, call.recv_address, size * call.recv_count, call.recv_type)
