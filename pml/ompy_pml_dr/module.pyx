# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Reliable packets over any BTL; `channel.pxd` pictures what is kept of them.

    send        number, checksum, keep a copy, send; back-pressure once the window is full
    arrival     damaged: drop.  Settle what the frame acknowledges.  New: hand on, and owe an acknowledgement.
    progress    pay debts that are due; send again what was not acknowledged in time, each time waiting twice as long

Everything goes as messages: of what is put into a peer's memory or got from there nobody could say that it arrived.

The end needs no last acknowledgement, which could be lost as well: ranks go on answering while they wait for one another in
the run-time's last fence, which is reliable.  A peer that has left it already, or that the transport can't reach, is lost
to whoever waits for it, which is no error of whoever makes progress.
"""
from libc.string cimport memcpy, memset
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

from ompy.core.checksum cimport crc32c
from ompy.core.constants cimport OK, OUT_OF_RESOURCE
from ompy.core.errors import ERR_PROC_FAILED, MPIError
from ompy.core.proc cimport Proc
from ompy.core.progress cimport exclude_watchers, register_source, unregister_source
from ompy.mca.btl cimport FLAG_SEND, FLAG_SENDI, Btl, Endpoint, Receiver
from ompy.mca.btl_wrapper cimport WrapperEndpoint
from ompy.mca.framed_btl cimport KIND_CONTROL, KIND_DATA, Frame, FramedBtl

from ompy_pml_dr.channel cimport WINDOW, Channel, Packet

# So many packets are acknowledged without waiting for a message to ride on.
cdef int LARGEST_DEBT = 16
# So many later packets have arrived before one that has not counts as lost, rather than as late.
cdef int LATE = 3
cdef int64_t NEVER = 0x7FFFFFFFFFFFFFFF


cdef int64_t clock_now() noexcept nogil:
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return now.tv_sec * <int64_t> 1000000000 + now.tv_nsec


cdef bint is_due(void *context) noexcept nogil:
    return clock_now() >= (<int64_t *> context)[0]


cdef bint is_overtaken(Channel channel, const Packet *packet) noexcept:
    """Whether enough have arrived of what was sent later.

    By the order of sending, not by sequence numbers: what was sent again has lost nothing by packets from before that.

        sent 1 2 3 4      1 is lost, 2 3 4 arrive: 1 is overtaken, and sent again; what is heard of 2 3 4 later changes nothing
    """
    cdef uint32_t sequence = channel.oldest
    cdef int later = 0
    cdef const Packet *other
    while sequence != channel.next_sequence:
        other = &channel.packets[sequence % WINDOW]
        later += not other.waiting and other.sent > packet.sent
        sequence += 1
    return later >= LATE


cdef class ReliableBtl(FramedBtl):
    """A BTL that loses nothing, over one that may.

    Parameters:
        inner: the other one.
        job, rank, size: this process's place in its job.
        helper: a `Helper` to be stopped at the end, or None.
        packet_size, window, ...: as the component's parameters say, times in milliseconds.
    """

    def __init__(self, Btl inner not None, str job, int rank, int size, helper=None, *, size_t packet_size=65536,
                 uint32_t window=WINDOW, size_t window_bytes=4 << 20, double ack_delay=1.0, double timeout=50.0,
                 double timeout_min=10.0, double timeout_max=1000.0, int retry_limit=300):
        FramedBtl.__init__(self, inner, job, rank, size)
        self.flags = FLAG_SEND | FLAG_SENDI
        self.max_send_size = min(self.max_send_size, packet_size)
        self.eager_limit = min(self.eager_limit, self.max_send_size)
        self.rndv_eager_limit = min(self.rndv_eager_limit, self.eager_limit)
        self.helper = helper
        self.window = min(window, <uint32_t> WINDOW)
        self.window_bytes = window_bytes
        self.patience.first = <int64_t> (1e6 * timeout)
        self.patience.shortest = <int64_t> (1e6 * timeout_min)
        self.patience.longest = <int64_t> (1e6 * timeout_max)
        self.patience.ack_delay = <int64_t> (1e6 * ack_delay)
        self.patience.retry_limit = retry_limit
        self.channels = []
        self.due = NEVER
        self.ready = is_due
        self.ready_context = &self.due

    cpdef WrapperEndpoint endpoint_of(self, Proc proc, Endpoint inner):
        cdef Channel channel = Channel(self, proc, inner)
        channel.timeout = self.patience.first
        return channel

    cpdef int register(self, int tag, Receiver receiver) except -1:
        self.tag = tag
        return FramedBtl.register(self, tag, receiver)

    cpdef dict own_statistics(self):
        return {
            "packets_sent": self.sent,
            "packets_sent_again": self.sent_again,
            "repeated_packets_dropped": self.repeated,
            "damaged_packets_dropped": self.damaged,
            "acknowledgements_sent": self.acknowledgements,
            "window_full": self.held_back,
            "peers_lost": self.peers_lost,
        }

    # -- sending

    cdef int sendi(self, Endpoint endpoint, const char *header, size_t header_size,
                   const char *payload, size_t payload_size, int tag) except -1:
        cdef Channel channel = <Channel?> endpoint
        cdef size_t length = sizeof(Frame) + header_size + payload_size
        cdef Packet *packet
        cdef Frame *frame
        cdef int64_t now
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
        if self.transmit(channel, packet, now) != OK:
            channel.next_sequence -= 1
            channel.release(packet)
            if channel.bytes_under_way == 0:
                channel.deadline = 0
            return OUT_OF_RESOURCE
        self.sent += 1
        return self.watch(channel, channel.deadline)

    cdef int transmit(self, Channel channel, Packet *packet, int64_t now) except -1:
        """A packet, with what is to be acknowledged now."""
        cdef Frame *frame = <Frame *> packet.bytes
        cdef int debt = channel.debt
        cdef int64_t debt_due = channel.debt_due
        frame.acknowledged = channel.expected
        frame.received = channel.received
        self.seal(frame)
        packet.sent = now
        channel.debt = 0
        channel.debt_due = 0
        if self.inner.sendi(channel.inner, packet.bytes, packet.length, NULL, 0, packet.tag) == OK:
            return OK
        channel.debt = debt
        channel.debt_due = debt_due
        return OUT_OF_RESOURCE

    cdef int repeat(self, Channel channel, Packet *packet, int64_t now) except -1:
        packet.tries += 1
        try:
            if self.transmit(channel, packet, now) != OK:
                packet.tries -= 1
                return OUT_OF_RESOURCE
        except MPIError as error:
            return self.give_up(channel, error)
        self.sent_again += 1
        return OK

    cdef int acknowledge(self, Channel channel) except -1:
        """A frame without data."""
        cdef Frame frame
        memset(&frame, 0, sizeof(Frame))
        frame.kind = KIND_CONTROL
        frame.acknowledged = channel.expected
        frame.received = channel.received
        self.seal(&frame)
        try:
            if self.inner.sendi(channel.inner, <char *> &frame, sizeof(Frame), NULL, 0, self.tag) == OK:
                channel.debt = 0
                channel.debt_due = 0
                self.acknowledgements += 1
        except MPIError as error:
            self.give_up(channel, error)
        return 0

    # -- arrival

    cdef int refuse(self, WrapperEndpoint endpoint, size_t length) except -1:
        self.damaged += 1
        return 0

    cdef int accept(self, int tag, WrapperEndpoint endpoint, const Frame *frame, const char *data,
                    size_t length) except -1:
        cdef Channel channel = <Channel> endpoint
        cdef int64_t now
        cdef bint is_new
        if channel.lost:
            return 0
        now = clock_now()
        channel.settle(frame.acknowledged, frame.received, now, &self.patience)
        if channel.oldest != channel.next_sequence:
            self.fill_gaps(channel, now)
        if frame.kind != KIND_DATA:
            return 0
        is_new = channel.note_arrival(frame.sequence)
        channel.debt += 1
        if not is_new or channel.received or channel.debt >= LARGEST_DEBT:
            channel.debt_due = now                   # the sender lacks an acknowledgement, or this side a packet
        elif channel.debt_due == 0:
            channel.debt_due = now + self.patience.ack_delay
        self.watch(channel, channel.debt_due)
        if is_new:
            return self.deliver(tag, channel, data, length)
        self.repeated += 1
        return 0

    cdef int fill_gaps(self, Channel channel, int64_t now) except -1:
        """Send again what packets have overtaken that were sent after it, and were not after it was sent again."""
        cdef uint32_t sequence = channel.oldest
        cdef Packet *packet
        while sequence != channel.next_sequence:
            packet = &channel.packets[sequence % WINDOW]
            if packet.waiting and now - packet.sent > channel.round_trip + channel.variation and \
                    is_overtaken(channel, packet):
                self.repeat(channel, packet, now)
            sequence += 1
        return 0

    # -- progress

    cdef int watch(self, Channel channel, int64_t due) except -1:
        if not channel.busy:
            channel.busy = True
            if not self.channels:
                register_source(self)
            self.channels.append(channel)
        if due < self.due:
            self.due = due
        return 0

    cpdef int progress(self) except -1:
        cdef int64_t now = clock_now()
        cdef Channel channel
        cdef int events = 0
        if self.working or now < self.due:
            return 0
        self.working = True
        self.due = NEVER
        try:
            for channel in list(self.channels):
                events += self.attend(channel, now)
                if channel.deadline == 0 and channel.debt_due == 0:
                    channel.busy = False
                    self.channels.remove(channel)
                else:
                    self.due = min(self.due, channel.deadline or NEVER, channel.debt_due or NEVER)
        finally:
            self.working = False
        if not self.channels:
            unregister_source(self)
        return events

    cdef int attend(self, Channel channel, int64_t now) except -1:
        cdef Packet *packet
        cdef int events = 0
        if channel.debt_due and now >= channel.debt_due:
            self.acknowledge(channel)
            events += 1
        if channel.deadline == 0 or now < channel.deadline:
            return events
        packet = &channel.packets[channel.oldest % WINDOW]
        if packet.tries > self.patience.retry_limit:
            proc = channel.proc
            self.give_up(channel, MPIError(ERR_PROC_FAILED, (
                f"rank {proc.rank} of {proc.job} (host {proc.host}, pid {proc.pid}) has not acknowledged a packet that was "
                f"sent {packet.tries} times over btl {self.name}; pml_dr_retry_limit {self.patience.retry_limit} allows for "
                f"more or less")))
            return events + 1
        if self.repeat(channel, packet, now) == OK:
            channel.timeout = min(2 * channel.timeout, self.patience.longest)
            events += 1
        if not channel.lost:
            channel.deadline = now + channel.timeout
        return events

    cpdef bint may_sleep(self) except -1:
        """About to sleep: what is owed is paid first, since nothing may come for it to ride on."""
        cdef Channel channel
        for channel in list(self.channels):
            if channel.debt_due:
                self.acknowledge(channel)
        return True

    # -- trouble and the end

    cdef int give_up(self, Channel channel, object error) except -1:
        if channel.lost:
            return 0                                 # the inner BTL has reported it before it refused
        channel.lost = True
        channel.clear()
        self.peers_lost += 1
        return self.report_error(channel.proc, error)

    def inner_lost(self, Btl btl, Proc proc, object error):
        """The inner BTL has lost a peer: there is nobody to send to again."""
        cdef WrapperEndpoint endpoint
        for endpoint in list(self.endpoints.values()):
            if endpoint.proc is proc and not (<Channel> endpoint).lost:
                self.give_up(<Channel> endpoint, error)
                return
        self.report_error(proc, error)

    cpdef int del_procs(self, list endpoints) except -1:
        cdef Channel channel
        for channel in endpoints:
            channel.lost = True
            channel.clear()
            if channel.busy:
                channel.busy = False
                self.channels.remove(channel)
        return FramedBtl.del_procs(self, endpoints)

    cpdef int finalize(self) except -1:
        if self.helper is not None:
            self.helper.stop()
        unregister_source(self)
        exclude_watchers()
        self.channels.clear()
        return FramedBtl.finalize(self)
