# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""The TLS of one connection; see `seal.pxd`."""
from ssl import SSLError, SSLWantReadError

from cpython.buffer cimport PyBUF_READ, PyBUF_WRITE
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.errno cimport EPROTO
from libc.string cimport memcpy

from ompy_btl_tcp.wire cimport ENDED, Part, Wire, end_of_sending, push

cdef enum:
    RECORD = 16 << 10                            # bytes of the longest record (RFC 8446, 5.1)
    PIECE = 64 << 10                             # sealed at a time


cdef class Seal:
    """Of one connection.

    Parameters:
        number: descriptor of the socket.
        channel: over which both ends have proved themselves.
    """

    def __init__(self, int number, channel not None):
        self.number = number
        # What `ssl.SSLObject` wraps has the same two methods, without a frame of Python's for each.
        session = getattr(channel.session, "_sslobj", channel.session)
        self.write, self.read, self.incoming = session.write, session.read, channel.incoming
        self.take_records, self.put_records = channel.outgoing.read, channel.incoming.write
        self.unread = True

    cdef ssize_t pass_on(self, Part *parts, int count) except? -1:
        cdef ssize_t sent
        cdef size_t sealed = 0                   # bytes of the parts
        cdef size_t offset = 0, some, length
        cdef int at = 0
        cdef char *place
        cdef bytes gathered
        if self.waiting is not None:
            sealed = offset = 1
        while True:
            if self.waiting is not None:
                sent = self.push_waiting()
                if sent < 0:
                    return sent
                if self.waiting is not None:
                    return sealed - 1
            while at < count and offset == parts[at].iov_len:
                at += 1
                offset = 0
            if at == count:
                return sealed
            length = parts[at].iov_len - offset
            try:
                if length >= RECORD:
                    some = min(length - length % RECORD, <size_t> PIECE)
                    some = self.write(PyMemoryView_FromMemory(<char *> parts[at].iov_base + offset, some, PyBUF_READ))
                    offset += some
                    sealed += some
                else:
                    some = min(length_of(parts, at, count) - offset, <size_t> RECORD)
                    gathered = PyBytes_FromStringAndSize(NULL, some)
                    place = PyBytes_AS_STRING(gathered)
                    sealed += some
                    while some:
                        length = min(some, parts[at].iov_len - offset)
                        memcpy(place, <char *> parts[at].iov_base + offset, length)
                        place += length
                        offset += length
                        some -= length
                        if offset == parts[at].iov_len:
                            at += 1
                            offset = 0
                    self.write(gathered)
                self.waiting = self.take_records()
                self.at = 0
            except (SSLError, MemoryError):
                end_of_sending(self.number)      # nobody could go on behind half a frame: the peer is to end it, too
                return -EPROTO

    cdef ssize_t push_waiting(self) except? -1:
        """Have the system take records; below 0, minus an error number."""
        cdef Part part = Part(PyBytes_AS_STRING(self.waiting) + self.at, len(self.waiting) - self.at)
        cdef ssize_t sent
        if part.iov_len <= RECORD:
            sent = push(self.number, &part, 1)
        else:
            with nogil:
                sent = push(self.number, &part, 1)
        if sent >= 0:
            self.at += sent
            if <size_t> sent == part.iov_len:
                self.waiting = None
        return sent

    cdef bint open(self, Wire *wire) except -1:
        cdef char *place = wire.buffer + wire.end
        cdef size_t room = wire.room - wire.end
        cdef size_t got = 0
        if wire.left:
            # The buffer is empty, as in `pull`.
            place = wire.buffer if wire.target == NULL else wire.target
            room = min(wire.left, wire.room) if wire.target == NULL else wire.left
        room = min(room, <size_t> RECORD)
        if room == 0:
            return False
        try:
            while got == 0:
                if self.unread:
                    try:
                        got = self.read(room, PyMemoryView_FromMemory(place, room, PyBUF_WRITE))
                        if got == 0:
                            break
                        # Of a record that had less than was asked for nothing is left.
                        self.unread = got == room or self.incoming.pending
                        continue
                    except SSLWantReadError:
                        self.unread = False
                if wire.sealed_size == 0:
                    return False
                self.put_records(PyMemoryView_FromMemory(wire.sealed, wire.sealed_size, PyBUF_READ))
                wire.sealed_size = 0
                self.unread = True
        except SSLError:
            wire.over = EPROTO
        if got == 0:
            wire.over = wire.over if wire.over > 0 else ENDED
            wire.sealed_size = 0
            self.unread = False
            return False
        if wire.left:
            if wire.target != NULL:
                wire.target += got
            wire.left -= got
        else:
            wire.end += got
        return True


cdef size_t length_of(Part *parts, int at, int count) noexcept:
    """Bytes of the parts from one of them on."""
    cdef size_t length = 0
    for at in range(at, count):
        length += parts[at].iov_len
    return length
