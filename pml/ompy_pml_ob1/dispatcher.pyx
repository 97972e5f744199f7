# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-O3
"""Where ob1's messages arrive: matched at once, kept, or handed to the transfer that they belong to."""
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport uint64_t

from ompy.core.board cimport RECV
from ompy.core.communicator cimport Communicator
from ompy.core.errors import ERR_INTERN, MPIError
from ompy.core.copying cimport copy_bytes
from ompy.core.memory cimport address_of
from ompy.core.status cimport StatusRecord
from ompy.core.trace cimport EVENT_KEPT, is_tracing, record
from ompy.core.typemap cimport Typemap
from ompy.mca.btl cimport Btl, Endpoint

from ompy_pml_ob1.engine cimport Transfer
from ompy_pml_ob1.header cimport (
    KIND_ACK, KIND_FIN, KIND_FRAG, KIND_MATCH, KIND_PUT, KIND_RGET, AckHeader, Envelope, FinHeader, FragmentHeader,
    PutHeader, message_length,
)
from ompy_pml_ob1.matching cimport Direct, Peer, Posted, wants
from ompy_pml_ob1.recv_request cimport RecvRequest, unused_recv
from ompy_pml_ob1.send_request cimport SendRequest


cdef inline size_t slot_of(uint64_t context) noexcept nogil:
    return <size_t> (context * 0x9E3779B97F4A7C15u >> 32) & (CLOSED - 1)


cdef class Dispatcher(Receiver):
    def __init__(self, Engine engine not None):
        self.engine = engine
        self.matchings = {}
        self.early = {}

    cdef int arrive(self, Btl btl, Endpoint endpoint, const char *data, size_t length) except -1:
        cdef const Envelope *envelope = <const Envelope *> data
        cdef Matching matching
        cdef void *recent
        if envelope.kind > KIND_RGET:
            return self.arrive_for_transfer(btl, data, length)
        recent = self.recent[envelope.context & (RECENT - 1)]
        if recent == NULL or (<Matching> recent).communicator.context != envelope.context:
            matching = self.matchings.get(envelope.context)
            if matching is None:
                if self.closed[slot_of(envelope.context)] == envelope.context:
                    return 0                     # nobody will receive it
                # A faster peer already uses a communicator that is still being made here.
                self.early.setdefault(envelope.context, []).append(data[:length])
                return 0
            recent = self.recent[envelope.context & (RECENT - 1)] = <void *> matching
        return self.arrive_envelope(<Matching> recent, data, length)

    cdef int arrive_for_transfer(self, Btl btl, const char *data, size_t length) except -1:
        """What belongs to a message that is matched already."""
        cdef Transfer transfer
        cdef unsigned char kind = <unsigned char> data[0]
        if kind == KIND_FRAG:
            transfer = self.engine.enrolled((<const FragmentHeader *> data).receiver)
            if isinstance(transfer, RecvRequest):
                (<RecvRequest> transfer).take_fragment((<const FragmentHeader *> data).offset,
                                                       data + sizeof(FragmentHeader), length - sizeof(FragmentHeader))
        elif kind == KIND_ACK:
            transfer = self.engine.enrolled((<const AckHeader *> data).sender)
            if isinstance(transfer, SendRequest):
                (<SendRequest> transfer).acknowledged(<const AckHeader *> data)
        elif kind == KIND_PUT:
            transfer = self.engine.enrolled((<const PutHeader *> data).sender)
            if isinstance(transfer, SendRequest):
                (<SendRequest> transfer).put_asked(<const PutHeader *> data)
        elif kind == KIND_FIN:
            transfer = self.engine.enrolled((<const FinHeader *> data).request)
            if isinstance(transfer, SendRequest):
                (<SendRequest> transfer).fetched(<const FinHeader *> data)
            elif isinstance(transfer, RecvRequest):
                (<RecvRequest> transfer).piece_done(<const FinHeader *> data)
        else:
            raise MPIError(ERR_INTERN, f"btl {btl.name} brought a message of kind {kind}, which ob1 does not know")
        return 0

    cdef int arrive_envelope(self, Matching matching, const char *data, size_t length) except -1:
        cdef const Envelope *envelope = <const Envelope *> data
        cdef Peer *peer
        if envelope.source < 0 or envelope.source >= matching.communicator.remote_size:
            raise MPIError(ERR_INTERN, f"a message for {matching.communicator!r} claims to come from rank "
                                       f"{envelope.source}")
        peer = &matching.peers[envelope.source]
        if envelope.sequence != peer.expected_sequence:
            # It overtook another one, on another route.
            matching.early = matching.early or {}
            matching.early[(envelope.source, envelope.sequence)] = data[:length]
            return 0
        peer.expected_sequence += 1
        self.match(matching, data, length)
        if matching.early is not None:
            self.match_early(matching, envelope.source)
        return 0

    cdef int match_early(self, Matching matching, int source) except -1:
        cdef bytes data
        while True:
            data = matching.early.pop((source, matching.peers[source].expected_sequence), None)
            if data is None:
                break
            matching.peers[source].expected_sequence += 1
            self.match(matching, data, len(data))
        if not matching.early:
            matching.early = None
        return 0

    cdef int match(self, Matching matching, const char *data, size_t length) except -1:
        cdef const Envelope *envelope = <const Envelope *> data
        cdef Posted *posted = matching.find_posted(envelope.source, envelope.tag)
        cdef Direct *direct = matching.direct
        cdef RecvRequest request
        if (direct != NULL and wants(direct, envelope.source, envelope.tag)
                and (posted == NULL or direct.serial < posted.serial)):
            self.matched += 1
            if envelope.kind == KIND_MATCH and self.hand_over(direct, data + sizeof(Envelope), length - sizeof(Envelope)):
                direct.status = StatusRecord(envelope.source, envelope.tag, 0, False, length - sizeof(Envelope))
                direct.over = True
                matching.direct = NULL
                return 0
            return self.request_in_place(matching).take_message(data, length)
        if posted == NULL:
            if is_tracing():
                record(EVENT_KEPT, 0, NULL, envelope.context, envelope.source, matching.communicator.rank, envelope.tag,
                       envelope.sequence, message_length(data, length), 0)
            self.kept += 1
            return matching.store(data, length)
        self.matched += 1
        request = <RecvRequest> posted.request
        matching.unpost(posted)
        Py_DECREF(request)
        return request.take_message(data, length)

    cdef bint hand_over(self, Direct *direct, const char *data, size_t length) except -1:
        """A short message to whoever waits for it; False: it does not fit, or there is no memory."""
        if direct.allocate == NULL:
            if length > direct.capacity:
                return False
            copy_bytes(<char *> direct.address, data, length)
            return True
        try:
            block = (<object> direct.allocate)(length)
            copy_bytes(<char *> address_of(block), data, length)
        except Exception:
            return False                         # the request will meet the same, and keep it for the wait
        Py_INCREF(block)
        direct.block = <PyObject *> block
        return True

    cdef RecvRequest request_in_place(self, Matching matching):
        """The request that takes the place of the receive that waits directly."""
        cdef Direct *direct = matching.direct
        cdef RecvRequest request = unused_recv(self.engine, matching)
        if direct.allocate == NULL:
            request.aim(direct.address, direct.count, <Typemap> direct.typemap, None, direct.source, direct.tag)
        else:
            request.aim(0, 0, None, <object> direct.allocate, direct.source, direct.tag)
        request.operation = RECV
        request.begin()
        Py_INCREF(request)
        direct.request = <PyObject *> request
        direct.over = True
        matching.direct = NULL
        return request

    cdef int add(self, Matching matching) except -1:
        cdef bytes data
        cdef uint64_t context = matching.communicator.context
        if context in self.matchings:
            raise MPIError(ERR_INTERN, f"context {context:#x} is in use twice")
        self.matchings[context] = matching
        if self.early:
            for data in self.early.pop(context, ()):
                self.arrive_envelope(matching, data, len(data))
        return 0

    cdef int drop(self, Communicator comm) except -1:
        cdef Matching matching = self.matchings.pop(comm.context, None)
        self.recent[comm.context & (RECENT - 1)] = NULL
        self.closed[slot_of(comm.context)] = comm.context
        if matching is not None:
            matching.close()
        return 0
