# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""The connection to one peer; see `connection.pxd`."""
from _collections import deque
from errno import EBADMSG

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memmove, memset

from ompy.core.constants cimport OK, OUT_OF_RESOURCE
from ompy.core.copying cimport copy_bytes
from ompy.mca.btl cimport Descriptor
from ompy_btl_tcp.frame cimport FRAME_DATA, FRAME_GOODBYE, FRAME_PUT, Frame, PutFrame, padding
from ompy_btl_tcp.seal cimport Seal
from ompy_btl_tcp.wire cimport SEALED_ROOM, Part, Wire, end_of_sending, gather, push

# What comes at once of short messages.
cdef size_t SPARE_ROOM = 64 << 10
# From so many bytes on a system call takes long enough to let other threads run.
cdef size_t LONG = 64 << 10
cdef enum:
    GATHERED = 32                                # parts of one system call
cdef char[8] zeros
memset(&zeros[0], 0, sizeof(zeros))


@cython.freelist(32)
cdef class Outgoing:
    def __dealloc__(self):
        free(self.copied)


cdef class Connection:
    """One peer's.

    Parameters:
        number: descriptor of the connected socket, which becomes this object's.
        name, where: the peer's.
        largest: bytes of a message.
        limit: bytes that may wait.
        done: where descriptors go of which all is with the system.
    """

    def __cinit__(self):
        self.wire.number = -1

    def __init__(self, int number, bytes name, str where, size_t largest, size_t limit, done):
        self.name = name
        self.where = where
        self.queue = deque()
        self.largest = largest
        self.limit = limit
        self.done = done
        self.last_kind = FRAME_GOODBYE
        self.wire.room = largest + sizeof(PutFrame) + SPARE_ROOM
        self.wire.buffer = <char *> malloc(self.wire.room)
        if self.wire.buffer == NULL:
            raise MemoryError(f"no memory for what comes from {where}")
        self.wire.number = number

    def __dealloc__(self):
        free(self.wire.buffer)
        free(self.wire.sealed)

    cdef int protect(self, channel) except -1:
        cdef bytes opened, sealed
        self.wire.sealed = <char *> malloc(SEALED_ROOM)
        if self.wire.sealed == NULL:
            raise MemoryError(f"no memory for what comes from {self.where}")
        self.seal = Seal(self.wire.number, channel)
        # The peer's first frames may have come with its last words.
        opened, sealed = channel.rest()
        memcpy(self.wire.buffer, PyBytes_AS_STRING(opened), len(opened))
        memcpy(self.wire.sealed, PyBytes_AS_STRING(sealed), len(sealed))
        self.wire.end, self.wire.sealed_size = len(opened), len(sealed)
        self.wire.fresh = True
        return 0

    # -- sending

    cdef int send(self, PutFrame *head, size_t head_size, const char *data, size_t size, const char *payload,
                  size_t payload_size, Descriptor descriptor, bint must, bint later) except -1:
        cdef Part parts[4]
        cdef int count = 1
        cdef size_t total = size + payload_size
        cdef size_t pad = padding(total)
        cdef ssize_t sent = 0
        if self.is_broken:
            self.held_back = True
            return OUT_OF_RESOURCE               # what has come is still to be looked at; the end will be seen behind it
        head.frame.sequence = self.frames_out
        parts[0] = Part(head, head_size)
        if size:
            parts[count] = Part(<void *> data, size)
            count += 1
        if payload_size:
            parts[count] = Part(<void *> payload, payload_size)
            count += 1
        if pad:
            parts[count] = Part(&zeros[0], pad)
            count += 1
        total += head_size + pad
        if self.queued:
            if self.queued + total > self.limit and not must:
                self.held_back = True
                return OUT_OF_RESOURCE
        elif later:
            sent = gather(self.wire.number, parts, count)
        else:
            sent = self.pass_on(parts, count, total)
        if sent < 0:
            self.held_back = True
            self.break_off()
            return OUT_OF_RESOURCE
        if <size_t> sent < total:
            self.keep(parts, count, sent, total, descriptor)
        elif descriptor is not None:
            self.done.append((descriptor, OK))
        self.frames_out += 1
        return OK

    cdef ssize_t pass_on(self, Part *parts, int count, size_t size) except? -1:
        cdef ssize_t sent
        if self.seal is not None:
            return self.seal.pass_on(parts, count)
        if size < LONG:
            return push(self.wire.number, parts, count)
        with nogil:
            sent = push(self.wire.number, parts, count)
        return sent

    cdef int break_off(self) except -1:
        """The system takes nothing any more; nor will it, whatever the reason, so that the peer is to end it, too."""
        self.is_broken = True
        end_of_sending(self.wire.number)
        return 0

    cdef int keep(self, Part *parts, int count, size_t sent, size_t total, Descriptor descriptor) except -1:
        """What is left of a frame of which the system has taken `sent` bytes."""
        cdef Outgoing rest = Outgoing.__new__(Outgoing)
        cdef char *place
        cdef int index
        if descriptor is None:
            rest.left = total - sent
            # Of a frame that was begun the rest must follow, so that this can't be refused.
            rest.copied = place = <char *> malloc(rest.left)
            if place == NULL:
                if sent:
                    self.is_broken = True
                raise MemoryError(f"no memory for {rest.left} bytes that {self.where} can't take yet")
            rest.parts[0] = Part(place, rest.left)
            rest.count = 1
            for index in range(count):
                if sent >= parts[index].iov_len:
                    sent -= parts[index].iov_len
                    continue
                memcpy(place, <char *> parts[index].iov_base + sent, parts[index].iov_len - sent)
                place += parts[index].iov_len - sent
                sent = 0
        else:
            memcpy(&rest.head, parts[0].iov_base, parts[0].iov_len)
            rest.parts[0] = Part(&rest.head, parts[0].iov_len)
            for index in range(1, count):
                rest.parts[index] = parts[index]
            rest.count = count
            rest.left = total
            rest.descriptor = descriptor
            advance(rest, sent)
        self.queue.append(rest)
        self.queued += rest.left
        return 0

    cdef int flush(self) except -1:
        cdef Part parts[GATHERED]
        cdef Outgoing item
        cdef int count, index, finished = 0
        cdef size_t total
        cdef ssize_t sent
        while self.queued and not self.is_broken:
            count = 0
            total = 0
            for item in self.queue:
                if count + item.count - item.at > GATHERED:
                    break
                for index in range(item.at, item.count):
                    parts[count] = item.parts[index]
                    count += 1
                total += item.left
            sent = self.pass_on(parts, count, total)
            if sent < 0:
                self.break_off()
            if sent <= 0:
                break
            self.queued -= sent
            while sent:
                item = self.queue[0]
                total = min(item.left, <size_t> sent)
                advance(item, total)
                sent -= total
                if item.left == 0:
                    self.queue.popleft()
                    if item.descriptor is not None:
                        self.done.append((item.descriptor, OK))
                        finished += 1
        return finished

    # -- receiving

    cdef const Frame *next_frame(self) except? NULL:
        cdef const Frame *frame = self.look()
        while frame == NULL and self.seal is not None and self.wire.over != EBADMSG and self.seal.open(&self.wire):
            frame = self.look()
        return frame

    cdef const Frame *look(self) except? NULL:
        """The next frame of what is here in clear."""
        cdef Wire *wire = &self.wire
        cdef const Frame *frame
        cdef size_t needed, some
        if wire.left and wire.end > wire.begin:
            some = min(wire.left, wire.end - wire.begin)
            if wire.target != NULL:
                copy_bytes(wire.target, wire.buffer + wire.begin, some)
                wire.target += some
            wire.left -= some
            wire.begin += some
        if wire.left:
            wire.begin = wire.end = 0
            return NULL
        if self.skipped:
            some = min(self.skipped, wire.end - wire.begin)
            wire.begin += some
            self.skipped -= some
        if wire.end - wire.begin < sizeof(Frame):
            self.tidy(sizeof(PutFrame))
            return NULL
        frame = <const Frame *> (wire.buffer + wire.begin)
        needed = sizeof(Frame)
        if frame.kind == FRAME_DATA:
            needed += frame.length + padding(frame.length)
        elif frame.kind == FRAME_PUT:
            needed = sizeof(PutFrame)
        if not FRAME_DATA <= frame.kind <= self.last_kind or (frame.sequence != self.frames_in and not self.is_link) \
                or (frame.kind == FRAME_DATA and frame.length > self.largest) \
                or (frame.kind > FRAME_PUT and frame.length):
            wire.over = EBADMSG
            wire.begin = wire.end
            return NULL
        if wire.end - wire.begin < needed:
            self.tidy(needed)
            return NULL
        wire.begin += needed
        self.frames_in += 1
        return frame

    cdef bint is_drained(self) noexcept:
        cdef Wire *wire = &self.wire
        if wire.begin != wire.end or wire.sealed_begin != wire.sealed_size or self.skipped:
            return False
        wire.begin = wire.end = 0
        return True

    cdef int receive_put(self, char *target, uint64_t handle, size_t size) except -1:
        self.wire.target = target
        self.wire.left = size
        self.aim = handle
        self.skipped = padding(size)
        return 0

    cdef int tidy(self, size_t needed) except -1:
        cdef Wire *wire = &self.wire
        if wire.begin == wire.end:
            wire.begin = wire.end = 0
        elif wire.room - wire.begin < needed + SPARE_ROOM // 2:
            memmove(wire.buffer, wire.buffer + wire.begin, wire.end - wire.begin)
            wire.end -= wire.begin
            wire.begin = 0
        return 0


cdef void advance(Outgoing item, size_t sent) noexcept:
    """So many bytes more of it are with the system."""
    item.left -= sent
    while sent:
        if sent < item.parts[item.at].iov_len:
            item.parts[item.at].iov_base = <char *> item.parts[item.at].iov_base + sent
            item.parts[item.at].iov_len -= sent
            return
        sent -= item.parts[item.at].iov_len
        item.at += 1
