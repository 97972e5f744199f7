# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-O3
"""Messages that are Python objects, whichever call begins them."""

from ompy.core.communicator cimport Communicator
from ompy.core.constants cimport MODE_BUFFERED, PROC_NULL
from ompy.core.request cimport CompletedRequest
from ompy.core.request cimport Request as CoreRequest
from ompy.mca.pml cimport pml
from ompy.mpi.buffered cimport send_buffered
from ompy.mpi.completion cimport end_call, end_object_call
from ompy.mpi.envelope cimport check_dest, check_source
from ompy.mpi.memory cimport buffer
from ompy.mpi.memory_messages cimport byte_typemap
from ompy.mpi.message cimport load_received, nothing_received
from ompy.mpi.pickling cimport Parcel, unwrap, wrap, wrap_pickle, wrap_snapshot, write_plain
from ompy.mpi.plain cimport PLAIN_ROOM
from ompy.mpi.request cimport Request, new_object_request, new_request
from ompy.mpi.status cimport Status, record_of

from ompy.core.errors import MPIError
from ompy.mpi.pickling import new_block
from ompy.mpi.raising import hand_over


cdef int send_object(Communicator comm, object obj, int dest, int tag, int mode) except -1:
    try:
        check_dest(comm, dest, tag)
        send_parcel(comm, obj, dest, tag, mode)
    except MPIError as error:
        hand_over(error, comm)
    return 0


cdef int send_parcel(Communicator comm, object obj, int dest, int tag, int mode) except -1:
    cdef Parcel parcel
    cdef char room[PLAIN_ROOM]
    cdef Py_ssize_t length
    if dest == PROC_NULL:
        return 0
    if mode == MODE_BUFFERED:
        parcel = wrap(obj)
        send_buffered(parcel.address, parcel.count, parcel.typemap, dest, tag, comm)
        return 0
    length = write_plain(obj, room)
    if length:
        end_call(pml.send(<size_t> &room[0], length, byte_typemap, dest, tag, mode, comm), NULL, None, NULL)
    else:
        parcel = wrap_pickle(obj)
        end_call(pml.send(parcel.address, parcel.count, parcel.typemap, dest, tag, mode, comm), NULL, parcel, NULL)
    return 0


cdef Request isend_object(Communicator comm, object obj, int dest, int tag, int mode):
    cdef Parcel parcel
    cdef CoreRequest request
    try:
        check_dest(comm, dest, tag)
        if dest == PROC_NULL:
            return new_request(CompletedRequest.__new__(CompletedRequest), None)
        if mode == MODE_BUFFERED:
            parcel = wrap(obj)
            send_buffered(parcel.address, parcel.count, parcel.typemap, dest, tag, comm)
            return new_request(CompletedRequest.__new__(CompletedRequest), None)
        parcel = wrap_snapshot(obj)
        pml.deferrable = True
        request = pml.isend(parcel.address, parcel.count, parcel.typemap, dest, tag, mode, comm)
        return new_request(request, parcel)
    except MPIError as error:
        hand_over(error, comm)


cdef object receive_object(Communicator comm, object buf, int source, int tag, Status status):
    cdef object block = None
    if buf is not None or source == PROC_NULL:
        return receive_object_by_request(comm, buf, source, tag, status)
    try:
        check_source(comm, source, tag)
        block = pml.recv_object(new_block, source, tag, comm, record_of(status))
    except MPIError as error:
        hand_over(error, comm)
    return unwrap(block)


cdef object receive_object_by_request(Communicator comm, object buf, int source, int tag, Status status):
    cdef Request request
    try:
        request = begin_receive_object(comm, buf, source, tag)
    except MPIError as error:
        hand_over(error, comm)
    return end_object_call(request, record_of(status))


cdef Request begin_receive_object(Communicator comm, object buf, int source, int tag):
    cdef CoreRequest request
    cdef buffer memory
    check_source(comm, source, tag)
    if source == PROC_NULL:
        return new_request(nothing_received(), None)
    # A number was the size of the memory to make: there is no need to know it any more.
    if buf is None or isinstance(buf, int):
        request = pml.irecv_object(new_block, source, tag, comm)
        return new_object_request(request, None, load_received)
    memory = buffer.frombuffer(buf)
    request = pml.irecv(<size_t> memory.view.buf, memory.view.len, byte_typemap, source, tag, comm)
    request.buffer = memory
    return new_object_request(request, memory, load_from_memory)


cdef object load_from_memory(CoreRequest core, object kept):
    return unwrap((<buffer> kept)[:core.status.nbytes])
