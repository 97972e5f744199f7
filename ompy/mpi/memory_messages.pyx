# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-O3
"""Messages from and to memory, whichever call begins them (MPI-4.1, 3.2, 3.7 and 3.9)."""

from libc.string cimport memcpy

from ompy.core.basic cimport BASIC_BYTE
from ompy.core.communicator cimport Communicator
from ompy.core.constants cimport MODE_BUFFERED, MODE_STANDARD, PROC_NULL
from ompy.core.convertor cimport pack_all
from ompy.core.request cimport CompletedRequest
from ompy.core.request cimport Request as CoreRequest
from ompy.core.typemap cimport Typemap, predefined
from ompy.mca.pml cimport pml
from ompy.mpi.buffered cimport buffered_init, send_buffered
from ompy.mpi.buffers cimport Spec, keep, parse_recv, parse_send, release
from ompy.mpi.combined cimport combine
from ompy.mpi.completion cimport end_call
from ompy.mpi.envelope cimport check_dest, check_source, is_dest, wrong_dest
from ompy.mpi.memory cimport allocate_buffer, buffer
from ompy.mpi.message cimport nothing_received
from ompy.mpi.request cimport Prequest, Request, new_prequest, new_request

from ompy.core.errors import MPIError
from ompy.mpi.raising import hand_over

byte_typemap = predefined(BASIC_BYTE)


cdef int send(Communicator comm, object buf, int dest, int tag, int mode) except -1:
    try:
        if not is_dest(comm, dest, tag):
            raise wrong_dest(comm, dest, tag)
        send_memory(comm, buf, dest, tag, mode)
    except MPIError as error:
        hand_over(error, comm)
    return 0


cdef int send_memory(Communicator comm, object buf, int dest, int tag, int mode) except -1:
    cdef Spec spec
    if dest == PROC_NULL:
        return 0
    parse_send(buf, &spec)
    try:
        if mode == MODE_BUFFERED:
            send_buffered(spec.address, spec.count, <Typemap> spec.typemap, dest, tag, comm)
        else:
            end_call(pml.send(spec.address, spec.count, <Typemap> spec.typemap, dest, tag, mode, comm), &spec, None, NULL)
    finally:
        release(&spec)
    return 0


cdef CoreRequest send_and_begin_receive(Communicator comm, object sendbuf, int dest, int sendtag, object recvbuf, int source,
                                        int recvtag):
    cdef CoreRequest receive
    cdef Spec spec
    if dest == PROC_NULL:
        return begin_receive(comm, recvbuf, source, recvtag)
    parse_send(sendbuf, &spec)
    try:
        receive = begin_receive(comm, recvbuf, source, recvtag)
        try:
            end_call(pml.send(spec.address, spec.count, <Typemap> spec.typemap, dest, sendtag, MODE_STANDARD, comm),
                     &spec, None, NULL)
        except BaseException:
            give_up(receive)
            raise
    finally:
        release(&spec)
    return receive


cdef CoreRequest begin_both(Communicator comm, object sendbuf, int dest, int sendtag, object recvbuf, int source, int recvtag):
    cdef CoreRequest receive, sending
    cdef Spec spec
    if dest == PROC_NULL:
        return begin_receive(comm, recvbuf, source, recvtag)
    parse_send(sendbuf, &spec)
    try:
        receive = begin_receive(comm, recvbuf, source, recvtag)
        try:
            sending = begin_parsed_send(comm, &spec, dest, sendtag, MODE_STANDARD)
        except BaseException:
            give_up(receive)
            raise
    finally:
        release(&spec)
    return combine([sending, receive], receive, True)


cdef Request isend(Communicator comm, object buf, int dest, int tag, int mode):
    try:
        check_dest(comm, dest, tag)
        return new_request(begin_send(comm, buf, dest, tag, mode), None)
    except MPIError as error:
        hand_over(error, comm)


cdef CoreRequest begin_send(Communicator comm, object buf, int dest, int tag, int mode):
    cdef Spec spec
    if dest == PROC_NULL:
        return CompletedRequest.__new__(CompletedRequest)
    parse_send(buf, &spec)
    try:
        return begin_parsed_send(comm, &spec, dest, tag, mode)
    finally:
        release(&spec)


cdef CoreRequest begin_parsed_send(Communicator comm, Spec *spec, int dest, int tag, int mode):
    cdef CoreRequest request
    if mode == MODE_BUFFERED:
        send_buffered(spec.address, spec.count, <Typemap> spec.typemap, dest, tag, comm)
        return CompletedRequest.__new__(CompletedRequest)
    pml.deferrable = True
    request = pml.isend(spec.address, spec.count, <Typemap> spec.typemap, dest, tag, mode, comm)
    if not request.complete:
        request.buffer = keep(spec)
    return request


cdef CoreRequest begin_receive(Communicator comm, object buf, int source, int tag):
    cdef Spec spec
    cdef CoreRequest request
    check_source(comm, source, tag)
    if source == PROC_NULL:
        return nothing_received()
    parse_recv(buf, &spec)
    try:
        request = pml.irecv(spec.address, spec.count, <Typemap> spec.typemap, source, tag, comm)
        if not request.complete:
            request.buffer = keep(&spec)
    finally:
        release(&spec)
    return request


cdef int give_up(CoreRequest receive) except -1:
    return receive.abandon(receive)


cdef object copy_of(object buf, int dest, Py_ssize_t *nbytes):
    cdef Spec spec
    cdef Typemap typemap
    cdef buffer copied
    if dest == PROC_NULL:
        return None
    parse_recv(buf, &spec)
    try:
        typemap = <Typemap> spec.typemap
        nbytes[0] = spec.count * typemap.size
        copied = allocate_buffer(nbytes[0], False)
        if typemap.contiguous:
            memcpy(copied.view.buf, <void *> spec.address, <size_t> nbytes[0])
        else:
            pack_all(<char *> spec.address, spec.count, typemap, <char *> copied.view.buf)
    finally:
        release(&spec)
    return copied


cdef class NothingToDo(CoreRequest):
    """A persistent operation with PROC_NULL."""

    cdef bint receives

    cpdef int start(self) except -1:
        self.begin()
        if self.receives:
            self.status.source = PROC_NULL
        return self.finish()


cdef CoreRequest nothing_to_do(bint receives):
    cdef NothingToDo request = NothingToDo.__new__(NothingToDo)
    request.persistent = True
    request.receives = receives
    return request


cdef Prequest send_init(Communicator comm, object buf, int dest, int tag, int mode):
    cdef Spec spec
    cdef CoreRequest request
    try:
        check_dest(comm, dest, tag)
        if dest == PROC_NULL:
            return new_prequest(nothing_to_do(False), None)
        parse_send(buf, &spec)
        try:
            if mode == MODE_BUFFERED:
                request = buffered_init(spec.address, spec.count, <Typemap> spec.typemap, dest, tag, comm)
            else:
                request = pml.isend_init(spec.address, spec.count, <Typemap> spec.typemap, dest, tag, mode, comm)
            return new_prequest(request, keep(&spec))
        finally:
            release(&spec)
    except MPIError as error:
        hand_over(error, comm)


cdef Prequest recv_init(Communicator comm, object buf, int source, int tag):
    cdef Spec spec
    cdef CoreRequest request
    try:
        check_source(comm, source, tag)
        if source == PROC_NULL:
            return new_prequest(nothing_to_do(True), None)
        parse_recv(buf, &spec)
        try:
            request = pml.irecv_init(spec.address, spec.count, <Typemap> spec.typemap, source, tag, comm)
            return new_prequest(request, keep(&spec))
        finally:
            release(&spec)
    except MPIError as error:
        hand_over(error, comm)
