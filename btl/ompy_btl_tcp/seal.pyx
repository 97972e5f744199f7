# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""The TLS of one connection; see `seal.pxd`."""
from libc.errno cimport EPROTO
from libc.stdlib cimport free, malloc
from libc.string cimport memmove

from ompy_btl_tcp.cipher cimport (
    ALERT, APPLICATION, AROUND, HANDSHAKE, HEADER, MOST_BODY, MOST_CONTENT, Cipher,
)
from ompy_btl_tcp.libcrypto cimport Libcrypto
from ompy_btl_tcp.libsodium cimport Libsodium
from ompy_btl_tcp.wire cimport ENDED, Part, Wire, push

cdef enum:
    PIECE = 16                                   # records sealed at a time
    ROOM = (PIECE + 1) * (MOST_CONTENT + AROUND)

# The message that other keys follow, and that those of the other direction may stay (RFC 8446, 4.6.3).
cdef unsigned char[5] KEY_UPDATE = [24, 0, 0, 1, 0]


cdef class Seal:
    """Of one connection.

    Parameters:
        number: descriptor of the socket.
        channel: over which both ends have proved themselves.
    """

    def __cinit__(self, int number, channel not None):
        self.number = number
        self.outgoing = cipher_of(channel.outgoing_secret, True, channel.sealed)
        self.incoming = cipher_of(channel.incoming_secret, False, channel.opened)
        self.records = <char *> malloc(ROOM)
        if self.records == NULL:
            raise MemoryError("no memory for records")

    def __dealloc__(self):
        free(self.records)

    cdef ssize_t pass_on(self, Part *parts, int count) except? -1:
        cdef size_t total = 0, sealed, taken
        cdef ssize_t sent
        cdef int index
        for index in range(count):
            total += parts[index].iov_len
        # Of what waits from the last call the last byte was not told of.
        sealed = 1 if self.begin < self.end else 0
        while True:
            if self.begin < self.end:
                sent = self.push_records()
                if sent < 0:
                    return sent
                if self.begin < self.end:
                    return sealed - 1
            if sealed == total:
                return sealed
            self.begin = self.end = 0
            if self.outgoing.number >= self.outgoing.most and not self.renew():
                taken = 0
            elif total - sealed > MOST_CONTENT:
                with nogil:
                    taken = self.fill(parts, count, sealed)
            else:
                taken = self.fill(parts, count, sealed)
            if taken == 0:
                return -EPROTO
            sealed += taken

    cdef size_t fill(self, Part *parts, int count, size_t skipped) noexcept nogil:
        """Seal of the parts, behind `skipped` bytes, what there is room for: so many bytes; 0: the library failed."""
        cdef size_t size, made, taken = 0
        cdef int at
        for _ in range(PIECE):
            while count and skipped >= parts.iov_len:
                skipped -= parts.iov_len
                parts += 1
                count -= 1
            size = 0
            for at in range(count):
                size += parts[at].iov_len
                if size >= skipped + MOST_CONTENT:
                    break
            size = min(size - skipped, <size_t> MOST_CONTENT)
            if size == 0:
                break
            made = self.outgoing.seal(parts, skipped, size, APPLICATION, self.records + self.end)
            if made == 0:
                return 0
            self.end += made
            skipped += size
            taken += size
        return taken

    cdef ssize_t push_records(self) noexcept:
        """Have the system take records; below 0, minus an error number."""
        cdef Part part = Part(self.records + self.begin, self.end - self.begin)
        cdef ssize_t sent
        if part.iov_len <= MOST_CONTENT:
            sent = push(self.number, &part, 1)
        else:
            with nogil:
                sent = push(self.number, &part, 1)
        if sent > 0:
            self.begin += sent
        return sent

    cdef bint renew(self) except -1:
        """Tell the peer that what follows is under the next keys; False: the library failed."""
        cdef Part part = Part(&KEY_UPDATE[0], sizeof(KEY_UPDATE))
        self.end = self.outgoing.seal(&part, 0, sizeof(KEY_UPDATE), HANDSHAKE, self.records)
        self.outgoing.renew()
        return self.end > 0

    # -- receiving

    cdef bint open(self, Wire *wire) except -1:
        cdef unsigned char *record
        cdef char *first = wire.buffer
        cdef char *second = wire.buffer
        cdef size_t first_size = 0, body = 0, some, size
        cdef unsigned char kind
        while True:
            record = <unsigned char *> wire.sealed + wire.sealed_begin
            some = wire.sealed_size - wire.sealed_begin
            if some >= HEADER:
                body = <size_t> record[3] << 8 | record[4]
                if not ALERT <= record[0] <= APPLICATION or body < self.incoming.extra or body > MOST_BODY:
                    return give_up(wire, EPROTO)
            if some < HEADER + body or some < HEADER:
                memmove(wire.sealed, record, some)
                wire.sealed_begin, wire.sealed_size = 0, some
                return False
            size = body - self.incoming.extra
            if wire.left and wire.target != NULL:
                first, first_size = wire.target, min(wire.left, size)
            elif wire.left == 0:
                second = wire.buffer + wire.end
                if wire.room - wire.end < size:
                    return give_up(wire, EPROTO)
            kind = self.incoming.open(<char *> record, body, first, first_size, second)
            wire.sealed_begin += HEADER + body
            if kind == APPLICATION:
                if size == 0:
                    continue
                if wire.left:
                    # The buffer is empty, as in `pull`.
                    some = min(wire.left, size)
                    wire.left -= some
                    wire.begin = 0 if first_size else some
                    wire.end = size - first_size
                    if first_size:
                        wire.target += some
                else:
                    wire.end += size
                return True
            if kind == HANDSHAKE and size == sizeof(KEY_UPDATE) and is_key_update(first, first_size, second):
                self.incoming.renew()
            else:
                return give_up(wire, ENDED if kind == ALERT else EPROTO)


cdef Cipher cipher_of(secret, bint seals, number):
    return (Libsodium if secret.is_aegis else Libcrypto)(secret, seals, number)


cdef bint give_up(Wire *wire, int why) noexcept:
    wire.over = why
    wire.sealed_begin = wire.sealed_size = 0
    return False


cdef bint is_key_update(const char *first, size_t first_size, const char *second) noexcept:
    """Whether a message, of which so many bytes lie apart, says that other keys follow, and asks for nothing."""
    cdef size_t index
    for index in range(sizeof(KEY_UPDATE)):
        if KEY_UPDATE[index] != <unsigned char> (first[index] if index < first_size else second[index - first_size]):
            return False
    return True
