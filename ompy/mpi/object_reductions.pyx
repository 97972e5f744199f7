# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
# cython: auto_pickle=False
"""Reductions of Python objects: in rank order, grouped in the same way in every run."""

from ompy.core.board cimport ALLREDUCE, EXSCAN, REDUCE, SCAN
from ompy.core.communicator cimport Communicator
from ompy.core.constants cimport PROC_NULL
from ompy.mpi.collective_calls cimport check_root
from ompy.mpi.object_transfers cimport (
    broadcast, combine, copy_of, failure, gathered, gathered_everywhere, is_own_failure, opened, recv_object, scattered,
    send_object, swap_objects,
)

from ompy.core.errors import MPIError

# mpi4py's `rc.fast_reduce`: combine on a tree; else the root gathers the objects and combines them from left to right.
cdef bint fast_reduce = True


def set_fast_reduce(bint value) -> None:
    """How objects are combined; the value of `rc.fast_reduce`."""
    global fast_reduce
    fast_reduce = value


cdef object reduce_objects(object obj, object op, int root, Communicator comm):
    if not fast_reduce:
        return combined(gathered(obj, root, comm, REDUCE), op)
    if not comm.is_inter:
        return opened(reduced(obj, op, root, comm, REDUCE))
    return opened(reduced_between(obj, op, root, comm))


cdef object allreduce_objects(object obj, object op, Communicator comm):
    if not fast_reduce:
        return combined(gathered_everywhere(obj, comm), op)
    if not comm.is_inter:
        return broadcast(reduced(obj, op, 0, comm, ALLREDUCE), 0, comm)
    return reduced_across(obj, op, comm)


cdef object combined(list objects, object op):
    """All objects combined from left to right."""
    if objects is None:
        return None
    result = objects[0]
    for obj in objects[1:]:
        result = op(result, obj)
    return result


cdef object reduced(object obj, object op, int root, Communicator comm, int operation):
    # A binomial tree over the ranks, lower rank on the left; rank 0 passes the result on to the root.
    #
    #     0   1   2   3   4        mask 1: 0 takes 1, 2 takes 3
    #     01      23      4        mask 2: 0 takes 23
    #     0123            4        mask 4: 0 takes 4
    cdef int mask = 1, tag
    cdef object result
    check_root(comm, root)
    tag = comm.collective_tag()
    result = copy_of(obj, comm)
    while mask < comm.size:
        if comm.rank & mask:
            result = send_object(result, comm.rank & ~mask, tag, comm, operation)
            break
        if comm.rank | mask < comm.size:
            result = combine(op, result, recv_object(comm.rank | mask, tag, comm, operation), comm)
        mask <<= 1
    if root != 0:
        if comm.rank == 0:
            result = send_object(result, root, tag, comm, operation)
        elif comm.rank == root:
            result = recv_object(0, tag, comm, operation)
    return result if comm.rank == root or is_own_failure(result) else None


cdef object reduced_between(object obj, object op, int root, Communicator comm):
    cdef bint is_root = check_root(comm, root)
    cdef int tag = comm.collective_tag()
    cdef object result
    if is_root:
        return recv_object(0, tag, comm, REDUCE)
    if root != PROC_NULL:
        result = reduced(obj, op, 0, comm.local_communicator, REDUCE)
        if comm.rank == 0:
            result = send_object(result, root, tag, comm, REDUCE)
        return result if is_own_failure(result) else None
    return None


cdef object reduced_across(object obj, object op, Communicator comm):
    cdef int tag = comm.collective_tag()
    cdef object result = reduced(obj, op, 0, comm.local_communicator, ALLREDUCE)
    if comm.rank == 0:
        try:
            result = swap_objects(result, 0, tag, comm, ALLREDUCE)
        except MPIError as error:                # the others of this group are to hear of it
            result = failure("swap objects with the other group", error, comm)
    return broadcast(result, 0, comm.local_communicator)


cdef object prefix(object obj, object op, Communicator comm, bint inclusive):
    """Combination of the objects of the ranks up to this one, or before it."""
    # Recursive doubling: before the step with `mask`, `partial` combines the 2^k = mask ranks that share this rank's
    # higher bits, and `result` those of them up to (before) this one.
    cdef int mask = 1, peer, tag = comm.collective_tag(), operation = SCAN if inclusive else EXSCAN
    cdef object own = copy_of(obj, comm), partial = own, theirs
    cdef object result = partial if inclusive else None
    cdef bint empty = not inclusive
    if not fast_reduce:
        return prefix_at_root(obj, op, comm, inclusive, operation)
    while mask < comm.size:
        peer = comm.rank ^ mask
        if peer < comm.size:
            theirs = swap_objects(partial, peer, tag, comm, operation)
            if peer < comm.rank:
                result = theirs if empty else combine(op, theirs, result, comm)
                empty = False
                partial = combine(op, theirs, partial, comm)
            else:
                partial = combine(op, partial, theirs, comm)
        mask <<= 1
    opened(own)
    return opened(result)


cdef object prefix_at_root(object obj, object op, Communicator comm, bint inclusive, int operation):
    cdef list objects = gathered(obj, 0, comm, operation)
    cdef int rank
    if objects is not None:
        for rank in range(1, comm.size):
            objects[rank] = combine(op, objects[rank - 1], objects[rank], comm)
        if not inclusive:
            objects = [None, *objects[:comm.size - 1]]
    return scattered(objects, 0, comm, operation)
