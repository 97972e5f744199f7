# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""One BTL towards one peer; see `path.pxd`."""
from libc.string cimport memset

from ompy.core.constants cimport OK
from ompy.core.proc cimport Proc
from ompy.mca.btl cimport FLAG_RENEWAL, Endpoint
from ompy.mca.btl_wrapper cimport WrapperEndpoint
from ompy.mca.framed_btl cimport KIND_CONTROL, Frame, FramedBtl

from ompy_pml_dr.channel cimport Channel, Packet, PathRecord


cdef class Path(PathRecord):
    """A path of a channel.

    Parameters:
        btl, proc, inner: as a wrapper's endpoint has them.
        channel: the peer's.
        hesitates: whether the peer is to be the first to make contact anew.
    """

    def __init__(self, FramedBtl btl not None, Proc proc not None, Endpoint inner, Channel channel not None, bint hesitates):
        WrapperEndpoint.__init__(self, btl, proc, inner)
        self.channel = channel
        self.hesitates = hesitates
        self.number = len(channel.paths)
        channel.paths.append(self)

    cdef bint can_renew(self) noexcept:
        return ((<FramedBtl> self.btl).inner.flags & FLAG_RENEWAL) != 0

    cdef bint has_room_for(self, size_t length) noexcept:
        return length <= (<FramedBtl> self.btl).inner.max_send_size

    cdef int carry(self, Packet *packet, int64_t now) except -1:
        cdef Frame *frame = <Frame *> packet.bytes
        cdef Channel channel = self.channel
        cdef int debt = channel.debt
        cdef int64_t debt_due = channel.debt_due
        cdef int64_t sent = packet.sent
        frame.acknowledged = channel.expected
        frame.received = channel.received
        (<FramedBtl> self.btl).seal(frame)
        # All is in place before the inner BTL has it, which may bring the answer before it returns.
        packet.sent = now
        packet.path = self.number
        channel.debt = 0
        channel.debt_due = 0
        taken = -1
        try:
            taken = (<FramedBtl> self.btl).inner.sendi(self.inner, packet.bytes, packet.length, NULL, 0, packet.tag)
        finally:
            if taken != OK:
                packet.sent = sent
                channel.debt = debt
                channel.debt_due = debt_due
        return taken

    cdef int control(self, bint asks, bint answers, int tag) except -1:
        """A frame without data, which acknowledges."""
        cdef Frame frame
        cdef int taken
        memset(&frame, 0, sizeof(Frame))
        frame.kind = KIND_CONTROL
        frame.asks = asks
        frame.answers = answers
        frame.acknowledged = self.channel.expected
        frame.received = self.channel.received
        (<FramedBtl> self.btl).seal(&frame)
        taken = (<FramedBtl> self.btl).inner.sendi(self.inner, <char *> &frame, sizeof(Frame), NULL, 0, tag)
        if taken == OK:
            self.channel.debt = 0
            self.channel.debt_due = 0
        return taken
