# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=--param=max-inline-insns-single=200 --param=max-inline-insns-auto=30
# cython: auto_pickle=False
"""The arguments of collective methods (MPI-4.1, chapters 6 and 8)."""

from cpython.mem cimport PyMem_Free, PyMem_Malloc

from ompy.core.basic cimport BASIC_COUNT
from ompy.core.communicator cimport Communicator
from ompy.core.constants cimport PROC_NULL, ROOT
from ompy.core.operation cimport Replacement
from ompy.core.typemap cimport Typemap, plus, predefined
from ompy.mca.coll cimport (
    ALLGATHER, ALLGATHERV, ALLREDUCE, ALLTOALL, ALLTOALLV, ALLTOALLW, BARRIER, BCAST, EXSCAN, GATHER, GATHERV,
    NEIGHBOR_ALLGATHERV, NEIGHBOR_ALLTOALL, NEIGHBOR_ALLTOALLV, NEIGHBOR_ALLTOALLW, REDUCE,
    REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, SCAN, SCATTER, SCATTERV, CollectiveCall, CollTable,
)
from ompy.mpi.collective_buffers cimport (
    fill_recv, fill_recv_types, fill_recv_vector, fill_send, fill_send_types, fill_send_vector, is_in_place, parse_counts,
)
from ompy.mpi.op cimport Op

from ompy.core.errors import ERR_OP, ERR_ROOT, ERR_TOPOLOGY, MPIError


# What every barrier passes.
cdef CollectiveCall nothing = CollectiveCall()


cdef CollectiveCall make_call(int function, Communicator comm, object send, object recv, object op, object counts,
                              int root):
    cdef CollectiveCall call
    if function == BARRIER:
        return nothing
    call = CollectiveCall.__new__(CollectiveCall)
    if function == BCAST:
        fill_bcast(call, comm, send, root)
    elif function == REDUCE:
        fill_reduce(call, comm, send, recv, op, root)
    elif function == ALLREDUCE or function == SCAN or function == EXSCAN:
        fill_allreduce(call, comm, send, recv, op)
    elif function == GATHER or function == GATHERV:
        fill_gather(call, comm, send, recv, root, function == GATHERV)
    elif function == SCATTER or function == SCATTERV:
        fill_scatter(call, comm, send, recv, root, function == SCATTERV)
    elif function == ALLGATHER or function == ALLGATHERV:
        fill_allgather(call, comm, send, recv, function == ALLGATHERV)
    elif function == ALLTOALL or function == ALLTOALLV:
        fill_alltoall(call, comm, send, recv, function == ALLTOALLV)
    elif function == ALLTOALLW:
        fill_alltoallw(call, comm, send, recv)
    elif function == REDUCE_SCATTER_BLOCK:
        fill_reduce_scatter_block(call, comm, send, recv, op)
    elif function == REDUCE_SCATTER:
        fill_reduce_scatter(call, comm, send, recv, op, counts)
    else:
        fill_neighbor(call, comm, send, recv, function)
    return call


cdef bint check_root(Communicator comm, int root) except -1:
    if comm.is_inter:
        if root == ROOT or root == PROC_NULL or 0 <= root < comm.remote_size:
            return root == ROOT
        raise MPIError(ERR_ROOT, f"root: MPI.ROOT, MPI.PROC_NULL or a rank of the remote group (0 to "
                                 f"{comm.remote_size - 1}) expected, got {root}")
    if not 0 <= root < comm.size:
        raise MPIError(ERR_ROOT, f"root: a rank from 0 to {comm.size - 1} expected, got {root}")
    return root == comm.rank


cdef inline bint takes_in_place(Communicator comm, object message) noexcept:
    return not comm.is_inter and is_in_place(message)


cdef int fill_bcast(CollectiveCall call, Communicator comm, object message, int root) except -1:
    # The buffer stands on the send side on every rank; the others' must be writable, so it is read as a receive first.
    call.root = root
    if check_root(comm, root):
        call.send_owner = fill_send(call, message, 1)
    elif root != PROC_NULL:
        call.send_owner = fill_recv(call, message, 1)
        call.send_address, call.send_count, call.send_type = call.recv_address, call.recv_count, call.recv_type
    return 0


cdef object send_side(CollectiveCall call, object message, Py_ssize_t blocks, bint vector):
    return fill_send_vector(call, message, blocks) if vector else fill_send(call, message, blocks)


cdef object recv_side(CollectiveCall call, object message, Py_ssize_t blocks, bint vector):
    return fill_recv_vector(call, message, blocks) if vector else fill_recv(call, message, blocks)


cdef int fill_gather(CollectiveCall call, Communicator comm, object send, object recv, int root, bint vector) except -1:
    call.root = root
    if check_root(comm, root):
        call.recv_owner = recv_side(call, recv, comm.remote_size, vector)
        if comm.is_inter:
            pass
        elif is_in_place(send):
            call.send_in_place = True
        else:
            call.send_owner = fill_send(call, send, 1)
    elif root != PROC_NULL:
        call.send_owner = fill_send(call, send, 1)
    return 0


cdef int fill_scatter(CollectiveCall call, Communicator comm, object send, object recv, int root, bint vector) except -1:
    call.root = root
    if check_root(comm, root):
        call.send_owner = send_side(call, send, comm.remote_size, vector)
        if comm.is_inter:
            pass
        elif is_in_place(recv):
            call.recv_in_place = True
        else:
            call.recv_owner = fill_recv(call, recv, 1)
    elif root != PROC_NULL:
        call.recv_owner = fill_recv(call, recv, 1)
    return 0


cdef int fill_allgather(CollectiveCall call, Communicator comm, object send, object recv, bint vector) except -1:
    call.recv_owner = recv_side(call, recv, comm.remote_size, vector)
    if takes_in_place(comm, send):
        call.send_in_place = True
    else:
        call.send_owner = fill_send(call, send, 1)
    return 0


cdef int fill_alltoall(CollectiveCall call, Communicator comm, object send, object recv, bint vector) except -1:
    call.recv_owner = recv_side(call, recv, comm.remote_size, vector)
    if takes_in_place(comm, send):
        call.send_in_place = True
    else:
        call.send_owner = send_side(call, send, comm.remote_size, vector)
    return 0


cdef int fill_alltoallw(CollectiveCall call, Communicator comm, object send, object recv) except -1:
    call.recv_owner = fill_recv_types(call, recv, comm.remote_size)
    if takes_in_place(comm, send):
        call.send_in_place = True
    else:
        call.send_owner = fill_send_types(call, send, comm.remote_size)
    return 0


cdef int set_operation(CollectiveCall call, object op, Typemap typemap) except -1:
    if op is None or (<Op?> op).operation is None:
        raise MPIError(ERR_OP, "op: an operation expected, not OP_NULL")
    call.operation = (<Op> op).operation
    if isinstance(call.operation, Replacement):
        raise MPIError(ERR_OP, f"op: {call.operation.name} is for accumulates to windows alone")
    if not call.operation.defined_on(typemap):
        raise MPIError(ERR_OP, f"op: {call.operation.name} is not defined on the datatype of the buffers")
    return 0


cdef int check_sides(CollectiveCall call) except -1:
    """Both sides of a reduction hold the same number of elements of the same type."""
    if call.send_type is not call.recv_type:
        raise ValueError("mismatch in send and receive MPI datatypes")
    if call.send_count != call.recv_count:
        raise ValueError(f"mismatch in send count {call.send_count} and receive count {call.recv_count}")
    return 0


cdef int fill_reduce(CollectiveCall call, Communicator comm, object send, object recv, object op, int root) except -1:
    call.root = root
    if check_root(comm, root):
        call.recv_owner = fill_recv(call, recv, 1)
        if comm.is_inter:
            call.send_count, call.send_type = call.recv_count, call.recv_type
        elif is_in_place(send):
            call.send_in_place = True
        else:
            call.send_owner = fill_send(call, send, 1)
            check_sides(call)
        set_operation(call, op, call.recv_type)
    elif root != PROC_NULL:
        call.send_owner = fill_send(call, send, 1)
        set_operation(call, op, call.send_type)
    return 0


cdef int fill_allreduce(CollectiveCall call, Communicator comm, object send, object recv, object op) except -1:
    call.recv_owner = fill_recv(call, recv, 1)
    if takes_in_place(comm, send):
        call.send_in_place = True
    else:
        call.send_owner = fill_send(call, send, 1)
        check_sides(call)
    set_operation(call, op, call.recv_type)
    return 0


cdef int fill_reduce_scatter_block(CollectiveCall call, Communicator comm, object send, object recv, object op) except -1:
    if takes_in_place(comm, send):
        call.recv_owner = fill_recv(call, recv, comm.size)
        call.send_in_place = True
    else:
        call.recv_owner = fill_recv(call, recv, 1)
        call.send_owner = fill_send(call, send, comm.size)
        check_sides(call)
    set_operation(call, op, call.recv_type)
    return 0


cdef int fill_reduce_scatter(CollectiveCall call, Communicator comm, object send, object recv, object op,
                             object counts) except -1:
    cdef Py_ssize_t total = 0
    cdef int rank
    call.recv_owner = fill_recv(call, recv, 1)
    if takes_in_place(comm, send):
        call.send_in_place = True
    else:
        call.send_owner = fill_send(call, send, 1)
    if counts is None and not call.send_in_place:
        call.recv_counts = everyones_count(comm.local_communicator if comm.is_inter else comm, call.recv_count)
    elif counts is None:
        raise TypeError("recvcounts: needed beside MPI.IN_PLACE, one number a rank")
    else:
        call.recv_counts = parse_counts(counts, comm.size, "recvcounts")
    for rank in range(comm.size):
        if call.recv_counts[rank] < 0:
            raise ValueError(f"recvcounts: negative count {call.recv_counts[rank]} for rank {rank}")
        total = plus(total, call.recv_counts[rank])
    if call.send_in_place:
        if call.recv_count != total:
            raise ValueError(f"mismatch in receive count {call.recv_count} and sum(counts) {total}")
    else:
        if call.send_type is not call.recv_type:
            raise ValueError("mismatch in send and receive MPI datatypes")
        if call.send_count != total:
            raise ValueError(f"mismatch in send count {call.send_count} and sum(counts) {total}")
        if call.recv_count != call.recv_counts[comm.rank]:
            raise ValueError(f"mismatch in receive count {call.recv_count} and counts[{comm.rank}] "
                             f"{call.recv_counts[comm.rank]}")
    set_operation(call, op, call.recv_type)
    return 0


cdef Py_ssize_t *everyones_count(Communicator comm, Py_ssize_t count) except NULL:
    """The `count` that each rank has."""
    cdef CollectiveCall call = CollectiveCall.__new__(CollectiveCall)
    cdef Py_ssize_t *counts = <Py_ssize_t *> PyMem_Malloc(comm.size * sizeof(Py_ssize_t))
    if counts == NULL:
        raise MemoryError()
    call.send_address, call.recv_address = <size_t> &count, <size_t> counts
    call.send_count = call.recv_count = 1
    call.send_type = call.recv_type = predefined(BASIC_COUNT)
    try:
        (<CollTable> comm.coll).of(ALLGATHER).run(ALLGATHER, call, comm)
    except BaseException:
        PyMem_Free(counts)
        raise
    return counts


cdef int fill_neighbor(CollectiveCall call, Communicator comm, object send, object recv, int function) except -1:
    cdef object topology = comm.attributes.get("topology")
    if topology is None:
        raise MPIError(ERR_TOPOLOGY, "a communicator with a topology expected")
    cdef Py_ssize_t sources = len(topology.in_neighbors), targets = len(topology.out_neighbors)
    if function == NEIGHBOR_ALLTOALLW:
        call.send_owner = fill_send_types(call, send, targets)
        call.recv_owner = fill_recv_types(call, recv, sources)
    elif function == NEIGHBOR_ALLTOALL or function == NEIGHBOR_ALLTOALLV:
        call.send_owner = send_side(call, send, targets, function == NEIGHBOR_ALLTOALLV)
        call.recv_owner = recv_side(call, recv, sources, function == NEIGHBOR_ALLTOALLV)
    else:
        call.send_owner = fill_send(call, send, 1)
        call.recv_owner = recv_side(call, recv, sources, function == NEIGHBOR_ALLGATHERV)
    return 0
