# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Python objects on their way in a collective.

An object travels as a parcel of `ompy.mpi.pickling`.  Where each pair of ranks has its own object, parcels go point to
point, in memory that the receiver makes once it sees how long they are; where all ranks get the same bytes, the
communicator's collectives carry them.
"""

from libc.string cimport memcpy

from ompy.core.basic cimport BASIC_BYTE, BASIC_COUNT
from ompy.core.communicator cimport Communicator
from ompy.core.constants cimport MODE_STANDARD, PROC_NULL
from ompy.core.progress cimport wait
from ompy.core.request cimport Request as CoreRequest
from ompy.core.typemap cimport Typemap, predefined
from ompy.mca.coll cimport ALLGATHER, ALLGATHERV, BCAST, CollectiveCall, CollTable
from ompy.mca.pml cimport pml
from ompy.mpi.buffers cimport parse_counts
from ompy.mpi.collective_calls cimport check_root
from ompy.mpi.pickling cimport Parcel, block_address, flatten, unwrap, wrap
from ompy.mpi.request cimport wait_core

from ompy.mpi.pickling import new_block

# Objects of these types can't be changed, so that an alias is as good as a copy.
cdef frozenset IMMUTABLE = frozenset((int, float, complex, bool, str, bytes, type(None)))

# A broadcast begins with one message of this many bytes: the length of the parcel, then the parcel itself if it fits.
cdef enum:
    FIRST_BYTES = 512
    ROOM = FIRST_BYTES - 8


cdef list checked_items(object items, int count):
    """`items` as a list of `count` objects; None stands for so many times None."""
    cdef list result = [None] * count if items is None else list(items)
    if len(result) != count:
        raise ValueError(f"expecting {count} items, got {len(result)}")
    return result


cdef object copy_of(object obj):
    if type(obj) in IMMUTABLE:
        return obj
    return unwrap(flatten(wrap(obj)))


# --- one object between two ranks

cdef int send_object(object obj, int dest, int tag, Communicator comm) except -1:
    cdef Parcel parcel = wrap(obj)
    return pml.send(parcel.address, parcel.count, parcel.typemap, dest, tag, MODE_STANDARD, comm)


cdef object finished(CoreRequest request):
    # The block leaves the request before that goes back to its pool.
    wait(request)
    cdef object block = request.buffer
    wait_core(request, NULL)
    return unwrap(block)


cdef object recv_object(int source, int tag, Communicator comm):
    return finished(pml.irecv_object(new_block, source, tag, comm))


cdef object swap_objects(object obj, int peer, int tag, Communicator comm):
    """Send an object to the peer, which does the same."""
    cdef CoreRequest arriving = pml.irecv_object(new_block, peer, tag, comm)
    send_object(obj, peer, tag, comm)
    return finished(arriving)


# --- parcels point to point

cdef object gathered(object obj, int root, Communicator comm):
    cdef int tag, source
    cdef list arriving
    cdef bint is_root = check_root(comm, root)
    tag = comm.collective_tag()
    if not is_root:
        if root != PROC_NULL:
            send_object(obj, root, tag, comm)
        return None
    arriving = [
        None if source == comm.rank and not comm.is_inter else pml.irecv_object(new_block, source, tag, comm)
        for source in range(comm.remote_size)
    ]
    return [copy_of(obj) if request is None else finished(request) for request in arriving]


cdef object scattered(object objects, int root, Communicator comm):
    cdef int tag, dest
    cdef list items, leaving = []
    cdef Parcel parcel
    cdef object own = None
    cdef bint is_root = check_root(comm, root)
    tag = comm.collective_tag()
    if not is_root:
        return None if root == PROC_NULL else recv_object(root, tag, comm)
    items = checked_items(objects, comm.remote_size)
    for dest in range(comm.remote_size):
        if dest == comm.rank and not comm.is_inter:
            own = copy_of(items[dest])
        else:
            parcel = wrap(items[dest])
            leaving.append((pml.isend(parcel.address, parcel.count, parcel.typemap, dest, tag, MODE_STANDARD, comm), parcel))
    for request, _ in leaving:
        wait_core(request, NULL)
    return own


cdef list exchange(list objects, list targets, list sources, bint crossed, Communicator comm):
    # In a ring of two processes the neighbours on both sides are one process, and what it sends down first must arrive
    # from above: in a grid the two receives of a dimension are posted in the other order.
    cdef int tag = comm.collective_tag(), peer, slot, swap = 1 if crossed else 0
    cdef list arriving = [None] * len(sources), leaving = [], received
    cdef Parcel parcel
    for slot in range(len(sources)):
        peer = sources[slot ^ swap]
        if peer != PROC_NULL:
            arriving[slot ^ swap] = pml.irecv_object(new_block, peer, tag, comm)
    for obj, peer in zip(objects, targets):
        if peer != PROC_NULL:
            parcel = wrap(obj)
            leaving.append((pml.isend(parcel.address, parcel.count, parcel.typemap, peer, tag, MODE_STANDARD, comm), parcel))
    received = [None if request is None else finished(request) for request in arriving]
    for request, _ in leaving:
        wait_core(request, NULL)
    return received


# --- the same bytes for all ranks

cdef int broadcast_bytes(size_t address, Py_ssize_t count, Typemap typemap, int root, Communicator comm) except -1:
    cdef CollectiveCall call = CollectiveCall.__new__(CollectiveCall)
    call.send_address, call.send_count, call.send_type, call.root = address, count, typemap, root
    return (<CollTable> comm.coll).of(BCAST).run(BCAST, call, comm)


cdef object broadcast(object obj, int root, Communicator comm):
    # | length: 8 bytes | the parcel, if it fits |      then, if not,      | the parcel |
    #
    # Between groups the second message always follows: the bystanders (MPI_PROC_NULL) don't learn the length, and must
    # take part in as many collectives as everybody else.
    cdef char first[FIRST_BYTES]
    cdef bint is_root = check_root(comm, root), fits
    cdef Typemap byte = predefined(BASIC_BYTE)
    cdef Py_ssize_t nbytes = 0
    cdef Parcel parcel = None
    cdef object block = None
    if is_root:
        parcel = wrap(obj)
        nbytes = parcel.nbytes
        memcpy(first, &nbytes, 8)
        fits = nbytes <= ROOM and not comm.is_inter
        if fits:
            block = flatten(parcel)
            memcpy(first + 8, <void *> block_address(block), nbytes)
    broadcast_bytes(<size_t> first, FIRST_BYTES, byte, root, comm)
    if is_root:
        if not fits:
            broadcast_bytes(parcel.address, parcel.count, parcel.typemap, root, comm)
        if comm.is_inter:
            return None
        return obj if type(obj) in IMMUTABLE else unwrap(flatten(parcel) if block is None else block)
    if root == PROC_NULL:
        broadcast_bytes(0, 0, byte, root, comm)
        return None
    memcpy(&nbytes, first, 8)
    block = new_block(nbytes)
    if nbytes <= ROOM and not comm.is_inter:
        memcpy(<void *> block_address(block), first + 8, nbytes)
    else:
        broadcast_bytes(block_address(block), nbytes, byte, root, comm)
    return unwrap(block)


cdef list gathered_everywhere(object obj, Communicator comm):
    cdef object block = flatten(wrap(obj))
    cdef Py_ssize_t nbytes = memoryview(block).nbytes, total = 0
    cdef int rank, size = comm.remote_size
    cdef object received
    cdef CollectiveCall lengths = CollectiveCall.__new__(CollectiveCall)
    cdef CollectiveCall call = CollectiveCall.__new__(CollectiveCall)
    call.recv_counts = parse_counts((0,) * size, size, "lengths")
    call.recv_displacements = parse_counts((0,) * size, size, "offsets")
    lengths.send_address, lengths.recv_address = <size_t> &nbytes, <size_t> call.recv_counts
    lengths.send_count = lengths.recv_count = 1
    lengths.send_type = lengths.recv_type = predefined(BASIC_COUNT)
    (<CollTable> comm.coll).of(ALLGATHER).run(ALLGATHER, lengths, comm)
    for rank in range(size):
        # Each parcel starts on a cache line, where its buffers expect to be.
        call.recv_displacements[rank] = total
        total += (call.recv_counts[rank] + 63) & ~<Py_ssize_t> 63
    received = new_block(total)
    call.send_address, call.send_count, call.send_type = block_address(block), nbytes, predefined(BASIC_BYTE)
    call.recv_address, call.recv_type = block_address(received), predefined(BASIC_BYTE)
    (<CollTable> comm.coll).of(ALLGATHERV).run(ALLGATHERV, call, comm)
    view = memoryview(received)
    return [
        unwrap(view[call.recv_displacements[rank]:call.recv_displacements[rank] + call.recv_counts[rank]])
        for rank in range(size)
    ]
