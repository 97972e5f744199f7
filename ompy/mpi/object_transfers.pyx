# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# cython: auto_pickle=False
"""Python objects on their way in a collective.

An object travels as a parcel of `ompy.mpi.pickling`.  Where each pair of ranks has its own object, parcels go point to
point, in memory that the receiver makes once it sees how long they are; where all ranks get the same bytes, the
communicator's collectives carry them.

An object that can't be pickled, received, unpickled or combined does not keep its rank from taking part, as the others would
then wait for ever, or take the next collective's objects for this one's: a `Failure` travels in its place, and whoever gets it
raises.
"""

from libc.string cimport memcpy

from ompy.core.basic cimport BASIC_BYTE, BASIC_COUNT
from ompy.core.board cimport GATHER, SCATTER
from ompy.core.communicator cimport Communicator
from ompy.core.constants cimport MODE_STANDARD, PROC_NULL
from ompy.core.progress cimport wait
from ompy.core.request cimport Request as CoreRequest
from ompy.core.typemap cimport Typemap, predefined
from ompy.mca.agreement cimport agree
from ompy.mca.coll cimport ALLGATHER, ALLGATHERV, BCAST, CollectiveCall, CollTable
from ompy.mca.pml cimport pml
from ompy.mpi.collective_buffers cimport parse_counts
from ompy.mpi.collective_calls cimport check_root
from ompy.mpi.pickling cimport Parcel, block_address, flatten, unwrap, wrap, wrap_standard
from ompy.mpi.completion cimport end_call, wait_core

from ompy.core.errors import ERR_OTHER, MPIError, code_of
from ompy.mpi.pickling import new_block

# Objects of these types can't be changed, so that an alias is as good as a copy.
cdef frozenset IMMUTABLE = frozenset((int, float, complex, bool, str, bytes, type(None)))

# A broadcast begins with one message of this many bytes: the length of the parcel, then the parcel itself if it fits.
cdef enum:
    FIRST_BYTES = 512
    ROOM = FIRST_BYTES - 8


# From so many bytes on the ranks tell one another whether they have memory for a parcel: next to its way that takes no time.
cdef Py_ssize_t LONG = 16 << 20


class Failure:
    """What stands for an object that there is none of.

    Attributes:
        words: which rank could not do what.
        error: what was raised there; None on the ranks that it travelled to.
        code: its class.
    """

    __slots__ = ("code", "error", "words")

    def __init__(self, words, error=None, code=ERR_OTHER):
        self.words = words
        self.error = error
        self.code = code

    def __reduce__(self):
        return Failure, (self.words, None, self.code)


cdef object failure(str what, object error, Communicator comm):
    try:
        says = str(error)
    except Exception:
        says = "(whose text can't be had)"
    return Failure(f"rank {comm.rank} could not {what}: {type(error).__name__}: {says}", error, code_of(error))


cdef object opened(object obj):
    if type(obj) is Failure:
        raise obj.error or MPIError(obj.code, obj.words)
    return obj


cdef list all_opened(list objects):
    for obj in objects:
        opened(obj)
    return objects


cdef list items_of(object items, int count, Communicator comm):
    cdef list result
    try:
        result = [None] * count if items is None else list(items)
        if len(result) != count:
            raise ValueError(f"expecting {count} items, got {len(result)}")
    except Exception as error:
        return [failure("send an object to each rank", error, comm)] * max(count, 1)
    return result


cdef bint is_failure(object obj) noexcept:
    return type(obj) is Failure


cdef bint is_own_failure(object obj) noexcept:
    return type(obj) is Failure and obj.error is not None


cdef object copy_of(object obj, Communicator comm):
    cdef Parcel parcel
    if type(obj) in IMMUTABLE or is_failure(obj):
        return obj
    parcel = parcel_of(obj, comm)
    if parcel.failure is not None:
        return parcel.failure
    try:
        return unwrap(flatten(parcel))
    except Exception as error:
        return failure("unpickle an object", error, comm)


cdef object combine(object op, object left, object right, Communicator comm):
    if is_failure(left) or is_failure(right):
        return left if is_failure(left) else right
    try:
        return op(left, right)
    except Exception as error:
        return failure("combine two objects", error, comm)


cdef Parcel parcel_of(object obj, Communicator comm):
    cdef Parcel parcel
    if not is_failure(obj):
        try:
            return wrap(obj)
        except Exception as error:
            obj = failure("pickle its object", error, comm)
    parcel = wrap_standard(obj)
    parcel.failure = obj
    return parcel


cdef object unpickled(object block, Communicator comm):
    try:
        return unwrap(block)
    except Exception as error:
        return failure("unpickle an object", error, comm)


# --- one object between two ranks

cdef int await_part(CoreRequest request, int operation) except -1:
    """Wait for one message of a collective: to whoever asks, and where a process of the communicator has failed, it is that."""
    if not request.complete:
        request.operation = operation
        wait(request)
    return 0


cdef object send_object(object obj, int dest, int tag, Communicator comm, int operation):
    cdef Parcel parcel = parcel_of(obj, comm)
    cdef CoreRequest request = pml.send(parcel.address, parcel.count, parcel.typemap, dest, tag, MODE_STANDARD, comm)
    if request is not None and not request.complete:
        request.operation = operation
    end_call(request, NULL, parcel, NULL)
    return obj if parcel.failure is None else parcel.failure


cdef CoreRequest begin_send(Parcel parcel, int dest, int tag, Communicator comm):
    cdef CoreRequest request = pml.isend(parcel.address, parcel.count, parcel.typemap, dest, tag, MODE_STANDARD, comm)
    if not request.complete:
        request.buffer = parcel
    return request


cdef object finished(CoreRequest request, Communicator comm, int operation):
    # The block leaves the request before that goes back to its pool.
    await_part(request, operation)
    cdef object block = request.buffer
    try:
        wait_core(request, NULL)
    except MemoryError as error:
        return failure("receive an object", error, comm)
    return unpickled(block, comm)


cdef object recv_object(int source, int tag, Communicator comm, int operation):
    return finished(pml.irecv_object(new_block, source, tag, comm), comm, operation)


cdef object swap_objects(object obj, int peer, int tag, Communicator comm, int operation):
    cdef CoreRequest arriving = pml.irecv_object(new_block, peer, tag, comm)
    cdef object sent = send_object(obj, peer, tag, comm, operation), received = finished(arriving, comm, operation)
    return sent if is_failure(sent) else received


# --- parcels point to point

cdef int finish_sending(list leaving, int operation) except -1:
    """Wait for all of (request, parcel), then raise what one of the parcels is for."""
    cdef Parcel parcel
    for request, _ in leaving:
        await_part(request, operation)
        wait_core(request, NULL)
    for _, parcel in leaving:
        opened(parcel.failure)
    return 0


cdef object gathered(object obj, int root, Communicator comm, int operation=GATHER):
    cdef int tag, source
    cdef list arriving
    cdef bint is_root = check_root(comm, root)
    tag = comm.collective_tag()
    if not is_root:
        if root != PROC_NULL:
            opened(send_object(obj, root, tag, comm, operation))
        return None
    arriving = [
        None if source == comm.rank and not comm.is_inter else pml.irecv_object(new_block, source, tag, comm)
        for source in range(comm.remote_size)
    ]
    return all_opened([
        copy_of(obj, comm) if request is None else finished(request, comm, operation) for request in arriving
    ])


cdef object scattered(object objects, int root, Communicator comm, int operation=SCATTER):
    cdef int tag, dest
    cdef list items, leaving = []
    cdef Parcel parcel
    cdef object own = None
    cdef bint is_root = check_root(comm, root)
    tag = comm.collective_tag()
    if not is_root:
        return None if root == PROC_NULL else opened(recv_object(root, tag, comm, operation))
    items = items_of(objects, comm.remote_size, comm)
    for dest in range(comm.remote_size):
        if dest == comm.rank and not comm.is_inter:
            own = copy_of(items[dest], comm)
        else:
            parcel = parcel_of(items[dest], comm)
            leaving.append((begin_send(parcel, dest, tag, comm), parcel))
    finish_sending(leaving, operation)
    return opened(own)


cdef list exchange(list objects, list targets, list sources, bint crossed, Communicator comm, int operation):
    # In a ring of two processes the neighbours on both sides are one process, and what it sends down first must arrive
    # from above: in a grid the two receives of a dimension are posted in the other order.
    cdef int tag = comm.collective_tag(), peer, slot, swap = 1 if crossed else 0
    cdef list arriving = [None] * len(sources), leaving = [], received
    cdef object failed = None
    cdef Parcel parcel
    for slot in range(len(sources)):
        peer = sources[slot ^ swap]
        if peer != PROC_NULL:
            arriving[slot ^ swap] = pml.irecv_object(new_block, peer, tag, comm)
    for slot in range(len(objects)):
        peer = targets[slot] if slot < len(targets) else PROC_NULL
        parcel = parcel_of(objects[slot], comm)
        if peer != PROC_NULL:
            leaving.append((begin_send(parcel, peer, tag, comm), parcel))
        elif failed is None:
            failed = parcel.failure
    received = [None if request is None else finished(request, comm, operation) for request in arriving]
    finish_sending(leaving, operation)
    opened(failed)
    return all_opened(received)


# --- the same bytes for all ranks

cdef object agreed_block(Py_ssize_t nbytes, Communicator comm):
    """Memory for a parcel that all get; where a rank has none for a long one all raise, since the others would wait for it."""
    cdef object block = None, problem = None
    try:
        block = new_block(nbytes)
    except MemoryError as error:
        problem = error
    agree_on_room(nbytes, problem, comm)
    if problem is not None:
        raise problem
    return block


cdef int agree_on_room(Py_ssize_t nbytes, object problem, Communicator comm) except -1:
    if nbytes >= LONG and not comm.is_inter:
        agree(comm, problem, f"an object of {nbytes} bytes pickled: can't be received")
    return 0


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
        parcel = parcel_of(obj, comm)
        nbytes = parcel.nbytes
        memcpy(first, &nbytes, 8)
        fits = nbytes <= ROOM and not comm.is_inter
        if fits:
            block = flatten(parcel)
            memcpy(first + 8, <void *> block_address(block), nbytes)
    broadcast_bytes(<size_t> first, FIRST_BYTES, byte, root, comm)
    if is_root:
        if not fits:
            agree_on_room(nbytes, None, comm)
            broadcast_bytes(parcel.address, parcel.count, parcel.typemap, root, comm)
        opened(parcel.failure)
        if comm.is_inter:
            return None
        return obj if type(obj) in IMMUTABLE else unwrap(flatten(parcel) if block is None else block)
    if root == PROC_NULL:
        broadcast_bytes(0, 0, byte, root, comm)
        return None
    memcpy(&nbytes, first, 8)
    block = agreed_block(nbytes, comm)
    if nbytes <= ROOM and not comm.is_inter:
        memcpy(<void *> block_address(block), first + 8, nbytes)
    else:
        broadcast_bytes(block_address(block), nbytes, byte, root, comm)
    # Of `obj` only a failure is looked at here: this rank's own part in what the root combined.
    opened(obj)
    return opened(unwrap(block))


cdef list gathered_everywhere(object obj, Communicator comm):
    cdef Parcel parcel = parcel_of(obj, comm)
    cdef object block
    cdef Py_ssize_t nbytes, total = 0
    cdef int rank, size = comm.remote_size
    cdef object received
    cdef CollectiveCall lengths = CollectiveCall.__new__(CollectiveCall)
    cdef CollectiveCall call = CollectiveCall.__new__(CollectiveCall)
    try:
        block = flatten(parcel)
    except MemoryError as error:
        parcel = parcel_of(failure("pickle its object", error, comm), comm)
        block = flatten(parcel)
    nbytes = memoryview(block).nbytes
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
    received = agreed_block(total, comm)
    call.send_address, call.send_count, call.send_type = block_address(block), nbytes, predefined(BASIC_BYTE)
    call.recv_address, call.recv_type = block_address(received), predefined(BASIC_BYTE)
    (<CollTable> comm.coll).of(ALLGATHERV).run(ALLGATHERV, call, comm)
    opened(parcel.failure)
    view = memoryview(received)
    return [
        opened(unwrap(view[call.recv_displacements[rank]:call.recv_displacements[rank] + call.recv_counts[rank]]))
        for rank in range(size)
    ]
