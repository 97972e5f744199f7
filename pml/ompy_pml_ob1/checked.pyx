# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Messages that are checked; see `checked.pxd`."""
from libc.stdint cimport int32_t
from libc.string cimport memcpy, memset

from ompy.core.checksum cimport crc32c
from ompy.core.constants cimport OK, OUT_OF_RESOURCE
from ompy.core.errors import ERR_OTHER, MPIError
from ompy.core.proc cimport Proc
from ompy.core.progress_source cimport register_source, unregister_source
from ompy.mca.btl cimport FLAG_IN_ORDER, TAG_PML, Btl, Endpoint
from ompy.mca.btl_wrapper cimport WrapperEndpoint
from ompy.mca.framed_btl cimport FRAME_SIZE, KIND_CONTROL, KIND_DATA, Frame, FramedBtl

from ompy_pml_ob1.header cimport PACKET_SIZE


cdef class CheckedEndpoint(WrapperEndpoint):
    """A peer, and how many messages went each way."""


cdef class CheckedBtl(FramedBtl):
    """A BTL whose messages are checked on arrival.

    Checksums find what is damaged.  Where the inner BTL promises order, sequence numbers find what is missing, once a later
    message is there, and what comes twice.
    """

    def __init__(self, Btl inner not None, str job not None, int rank, int size):
        FramedBtl.__init__(self, inner, job, rank, size)
        self.alarms = []

    cpdef WrapperEndpoint endpoint_of(self, Proc proc, Endpoint inner):
        return CheckedEndpoint(self, proc, inner)

    cdef int sendi(self, Endpoint endpoint, const char *header, size_t header_size,
                   const char *payload, size_t payload_size, int tag) except -1:
        cdef CheckedEndpoint peer = <CheckedEndpoint?> endpoint
        cdef char packet[FRAME_SIZE + PACKET_SIZE]
        cdef Frame *frame = <Frame *> packet
        cdef bytes joined
        cdef int taken = OUT_OF_RESOURCE
        if payload_size and header_size > PACKET_SIZE:
            joined = header[:header_size] + payload[:payload_size]
            return self.sendi(endpoint, joined, header_size + payload_size, NULL, 0, tag)
        memset(frame, 0, sizeof(Frame))
        frame.kind = KIND_DATA
        frame.sequence = peer.sent
        frame.data_checksum = crc32c(crc32c(0, header, header_size), payload, payload_size)
        self.seal(frame)
        peer.sent += 1                           # the inner BTL may call back into a send before it returns
        try:
            if payload_size == 0:
                taken = self.inner.sendi(peer.inner, packet, sizeof(Frame), header, header_size, tag)
            else:
                memcpy(packet + sizeof(Frame), header, header_size)
                taken = self.inner.sendi(peer.inner, packet, sizeof(Frame) + header_size, payload, payload_size, tag)
        finally:
            if taken != OK:
                peer.sent -= 1
        return taken

    cdef int accept(self, int tag, WrapperEndpoint endpoint, const Frame *frame, const char *data,
                    size_t length) except -1:
        cdef CheckedEndpoint peer = <CheckedEndpoint> endpoint
        cdef int32_t ahead = <int32_t> (frame.sequence - peer.expected)
        if peer.broken:
            return 0
        if frame.kind == KIND_CONTROL:
            return self.end_contact(peer, "it found messages from here damaged, missing or repeated", False)
        if self.inner.flags & FLAG_IN_ORDER and ahead:
            return self.end_contact(peer, f"{ahead} messages from it are missing" if ahead > 0 else
                                    f"message {frame.sequence} from it came twice", True)
        peer.expected += 1
        return self.deliver(tag, peer, data, length)

    cdef int refuse(self, WrapperEndpoint endpoint, size_t length) except -1:
        cdef WrapperEndpoint peer
        cdef int rank
        if endpoint is not None:
            return self.end_contact(<CheckedEndpoint> endpoint, f"a message of {length} bytes from it came damaged", True)
        for rank in range(self.size):
            peer = self.peer(self.job, rank) if rank != self.rank else None
            if peer is not None:
                self.end_contact(<CheckedEndpoint> peer, f"a message of {length} bytes, from it or from another rank, came "
                                                         f"so damaged that its sender can't be told", True)
        return 0

    cdef int end_contact(self, CheckedEndpoint peer, str reason, bint tell) except -1:
        cdef Proc proc = peer.proc
        if peer.broken:
            return 0
        peer.broken = True
        if tell:
            self.alarms.append(peer)
            register_source(self)
        self.report_error(proc, MPIError(ERR_OTHER, f"btl {self.name} has ended contact with rank {proc.rank} of {proc.job} "
                                                    f"(host {proc.host}, pid {proc.pid}): {reason}"))
        return 0

    cpdef int progress(self) except -1:
        """Tell peers that contact has ended: they may wait for what will not come any more."""
        cdef Frame frame
        cdef CheckedEndpoint peer
        cdef int events = 0
        memset(&frame, 0, sizeof(Frame))
        frame.kind = KIND_CONTROL
        self.seal(&frame)
        for peer in list(self.alarms):
            if self.inner.sendi(peer.inner, <char *> &frame, sizeof(Frame), NULL, 0, TAG_PML) == OK:
                self.alarms.remove(peer)
                events += 1
        if not self.alarms:
            unregister_source(self)
        return events

    cpdef int finalize(self) except -1:
        unregister_source(self)
        return FramedBtl.finalize(self)
