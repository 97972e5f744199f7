# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Reliable packets over any BTL; `channel.pxd` pictures what is kept of them.

    send        number, checksum, keep a copy, send; back-pressure once the window is full
    arrival     damaged: drop.  Settle what the frame acknowledges.  New: hand on, and owe an acknowledgement.

What time brings is in `channels.pyx`.  Everything goes as messages: of what is put into a peer's memory or got from there
nobody could say that it arrived.

The end needs no last acknowledgement, which could be lost as well: ranks go on answering while they wait for one another in
the run-time's last fence, which is reliable.  A peer that has left it already, or that the transport can't reach, is lost
to whoever waits for it, which is no error of whoever makes progress.
"""
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from ompy.core.checksum cimport crc32c
from ompy.core.constants cimport OK, OUT_OF_RESOURCE
from ompy.core.errors import MPIError
from ompy.core.proc cimport Proc
from ompy.core.clock cimport clock_now
from ompy.mca.btl cimport FLAG_RENEWAL, FLAG_SEND, FLAG_SENDI, Btl, Endpoint, Receiver
from ompy.mca.btl_wrapper cimport WrapperEndpoint
from ompy.mca.framed_btl cimport KIND_DATA, Frame, FramedBtl

from ompy_pml_dr.channel cimport WINDOW, Channel, Packet
from ompy_pml_dr.channels cimport Channels
from ompy_pml_dr.path cimport Path

# So many packets are acknowledged without waiting for a message to ride on.
cdef int LARGEST_DEBT = 16


cdef class ReliableBtl(FramedBtl):
    """A BTL that loses nothing, over one that may.

    Parameters:
        inner: the other one.
        job, rank, size: this process's place in its job.
        channels: shared by all of this process's.
        packet_size, window, window_bytes: as the component's parameters say.
    """

    def __init__(self, Btl inner not None, str job, int rank, int size, Channels channels not None, *,
                 size_t packet_size=65536, uint32_t window=WINDOW, size_t window_bytes=4 << 20):
        FramedBtl.__init__(self, inner, job, rank, size)
        self.flags = FLAG_SEND | FLAG_SENDI
        self.max_send_size = min(self.max_send_size, packet_size)
        self.eager_limit = min(self.eager_limit, self.max_send_size)
        self.rndv_eager_limit = min(self.rndv_eager_limit, self.eager_limit)
        self.me = (job, rank)
        self.window = min(window, <uint32_t> WINDOW)
        self.window_bytes = window_bytes
        self.channels = channels
        channels.join(self)

    cpdef WrapperEndpoint endpoint_of(self, Proc proc, Endpoint inner):
        cdef Channel channel = self.channels.of(proc)
        cdef Path path
        for path in channel.paths:
            if path.btl is self:
                return path
        return Path(self, proc, inner, channel, self.me > (proc.job, proc.rank))

    cpdef int register(self, int tag, Receiver receiver) except -1:
        self.channels.tag = tag
        return FramedBtl.register(self, tag, receiver)

    cpdef dict own_statistics(self):
        own = {
            "packets_sent": self.sent,
            "repeated_packets_dropped": self.repeated,
            "damaged_packets_dropped": self.damaged,
            "window_full": self.held_back,
        }
        return own | self.channels.statistics() if self is self.channels.btls[0] else own

    cdef int sendi(self, Endpoint endpoint, const char *header, size_t header_size,
                   const char *payload, size_t payload_size, int tag) except -1:
        cdef Path path = <Path?> endpoint
        cdef Channel channel = path.channel
        cdef size_t length = sizeof(Frame) + header_size + payload_size
        cdef Packet *packet
        cdef Frame *frame
        cdef int64_t now
        cdef int taken = OUT_OF_RESOURCE
        if channel.lost:
            return OK                                # the PML knows, and nobody waits for it any more
        if channel.next_sequence - channel.oldest >= self.window or (
                channel.bytes_under_way and channel.bytes_under_way + length > self.window_bytes):
            self.held_back += 1
            return OUT_OF_RESOURCE
        packet = channel.claim(length)
        memcpy(packet.bytes + sizeof(Frame), header, header_size)
        if payload_size:
            memcpy(packet.bytes + sizeof(Frame) + header_size, payload, payload_size)
        frame = <Frame *> packet.bytes
        memset(frame, 0, sizeof(Frame))
        frame.kind = KIND_DATA
        frame.sequence = channel.next_sequence
        frame.data_checksum = crc32c(0, packet.bytes + sizeof(Frame), header_size + payload_size)
        packet.tag = tag
        packet.tries = 1
        packet.waiting = True
        now = clock_now()
        # All is in place before the inner BTL has it, which may bring the answer before it returns.
        channel.next_sequence += 1
        channel.bytes_under_way += length
        if channel.deadline == 0:
            channel.deadline = now + channel.timeout
        try:
            taken = self.channels.dispatch(channel, packet, path, now)
        finally:
            if taken != OK:
                channel.next_sequence -= 1
                channel.release(packet)
                if channel.bytes_under_way == 0:
                    channel.deadline = 0
        if taken != OK:
            return OUT_OF_RESOURCE
        if channel.lost:
            if isinstance(channel.error, MPIError):
                raise channel.error
            return OK
        self.sent += 1
        return self.channels.watch(channel, channel.deadline)

    cdef int refuse(self, WrapperEndpoint endpoint, size_t length) except -1:
        self.damaged += 1
        return 0

    cdef int accept(self, int tag, WrapperEndpoint endpoint, const Frame *frame, const char *data,
                    size_t length) except -1:
        cdef Path path = <Path> endpoint
        cdef Channel channel = path.channel
        cdef int64_t now
        cdef bint is_new
        if channel.lost:
            return 0
        now = clock_now()
        channel.settle(frame.acknowledged, frame.received, now, &self.channels.patience)
        if channel.oldest != channel.next_sequence:
            self.channels.fill_gaps(channel, now)
        if frame.kind != KIND_DATA:
            return self.channels.heard(path, frame.asks, frame.answers, now)
        is_new = channel.note_arrival(frame.sequence)
        channel.debt += 1
        channel.debt_path = path.number
        if not is_new or channel.received or channel.debt >= LARGEST_DEBT:
            channel.debt_due = now                   # the sender lacks an acknowledgement, or this side a packet
        elif channel.debt_due == 0:
            channel.debt_due = now + self.channels.patience.ack_delay
        self.channels.watch(channel, channel.debt_due)
        if is_new:
            return self.deliver(tag, path, data, length)
        self.repeated += 1
        return 0

    # -- trouble and the end

    def inner_lost(self, Btl btl, Proc proc, object error):
        """The inner BTL has lost a peer: packets go over others, or there is nobody to send to again."""
        cdef WrapperEndpoint endpoint
        for endpoint in list(self.endpoints.values()):
            if endpoint.proc is proc:
                self.channels.lose(<Path> endpoint, error)
                return
        if not self.inner.flags & FLAG_RENEWAL:
            self.report_error(proc, error)

    cpdef int del_procs(self, list endpoints) except -1:
        cdef Path path, other
        for path in endpoints:
            self.channels.forget(path.channel)
            for other in path.channel.paths:
                FramedBtl.del_procs(<FramedBtl> other.btl, [other])
        return 0

    cpdef int finalize(self) except -1:
        self.channels.close()
        return FramedBtl.finalize(self)
