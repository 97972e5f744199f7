# cython: language_level=3, binding=False
# distutils: extra_compile_args=-Os
"""Messages of the library's own between the members of a communicator, by which they agree on what is made next."""

import marshal

from cpython.array cimport array
from libc.stdint cimport int64_t

from ompy.core.basic cimport BASIC_BYTE
from ompy.core.communicator cimport Communicator
from ompy.core.constants cimport MODE_STANDARD, TAG_AGREEMENT, TAG_CONTEXT
from ompy.core.progress cimport wait
from ompy.core.request cimport Request
from ompy.core.typemap cimport predefined
from ompy.mca.agreement cimport gather
from ompy.mca.coll cimport BCAST, CollectiveCall, CollTable
from ompy.mca.pml cimport pml


cdef list allgather(Communicator comm, list numbers):
    """Each rank's numbers, in rank order."""
    cdef array sent = array("q", numbers)
    cdef array received = array("q", bytes(8 * len(numbers) * comm.size))
    gather(comm, <int64_t *> sent.data.as_longlongs, <int64_t *> received.data.as_longlongs, <int> len(numbers))
    width = len(numbers)
    return [list(received[rank * width:(rank + 1) * width]) for rank in range(comm.size)]


cdef int bcast_buffer(Communicator comm, object buffer, int root) except -1:
    """`buffer` is an array.array."""
    cdef CollectiveCall call = CollectiveCall.__new__(CollectiveCall)
    call.send_address, length = buffer.buffer_info()
    call.send_count = length * buffer.itemsize
    call.send_type = predefined(BASIC_BYTE)
    call.root = root
    return (<CollTable> comm.coll).of(BCAST).run(BCAST, call, comm)


cdef object bcast(Communicator comm, object value, int root):
    """A value that `marshal` knows, from the root to all."""
    data = array("b", marshal.dumps(value)) if comm.rank == root else None
    length = array("q", [len(data) if comm.rank == root else 0])
    bcast_buffer(comm, length, root)
    if comm.rank != root:
        data = array("b", bytes(length[0]))
    bcast_buffer(comm, data, root)
    return value if comm.rank == root else marshal.loads(data.tobytes())


def share_value(Communicator comm not None, value, int root):
    """A value that `marshal` knows, from the root to all."""
    return value if comm.size == 1 else bcast(comm, value, root)


def gather_values(Communicator comm not None, value, int root) -> list:
    """Each rank's value, which `marshal` knows, in rank order, on the root; elsewhere an empty list."""
    if comm.rank != root:
        data = array("b", marshal.dumps(value))
        complete(send(comm, data, root, TAG_CONTEXT), data)
        return []
    return [value if rank == root else recv(comm, rank, TAG_CONTEXT) for rank in range(comm.size)]


cdef int complete(Request request, object owner=None) except -1:
    """Until it is; an exception takes it back.  `owner` is of its memory."""
    try:
        wait(request)
    except BaseException:
        request.abandon(owner)
        raise
    if request.error is not None:
        raise request.error
    return 0


cdef int conclude(Request request) except -1:
    """The end of a blocking call of the PML, whose memory is the caller's."""
    if request is None:
        return 0
    try:
        wait(request)
    except BaseException:
        request.abandon(None)
        raise
    error = request.conclude(NULL)
    if error is not None:
        raise error
    return 0


cdef Request send(Communicator comm, object data, int dest, int tag):
    """`data` is an array.array, and must live until the request is complete."""
    address, length = data.buffer_info()
    return pml.isend(address, length * data.itemsize, predefined(BASIC_BYTE), dest, tag, MODE_STANDARD, comm)


cdef Request receive(Communicator comm, object data, int source, int tag):
    """`data` is an array.array, and must live until the request is complete."""
    address, length = data.buffer_info()
    return pml.irecv(address, length * data.itemsize, predefined(BASIC_BYTE), source, tag, comm)


cdef object recv(Communicator comm, int source, int tag):
    cdef Request request = pml.irecv_object(bytearray, source, tag, comm)
    complete(request)
    return marshal.loads(bytes(request.buffer))


cdef object swap(Communicator comm, object value, int peer, int tag):
    data = array("b", marshal.dumps(value))
    cdef Request leaving = send(comm, data, peer, tag)
    try:
        theirs = recv(comm, peer, tag)
    except BaseException:
        leaving.abandon(data)
        raise
    complete(leaving, data)
    return theirs


cdef int agreement_tag(int tag):
    """A tag of the program's as one that neither a program nor a collective uses."""
    return TAG_AGREEMENT - tag
