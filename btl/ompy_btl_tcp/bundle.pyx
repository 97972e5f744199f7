# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""The links to one peer; see `bundle.pxd`."""
from _collections import deque

cimport cython
from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from ompy.core.constants cimport OK, OUT_OF_RESOURCE
from ompy.mca.btl cimport Descriptor
from ompy_btl_tcp.connection cimport Connection
from ompy_btl_tcp.frame cimport FRAME_ACKNOWLEDGE, FRAME_PUT, Frame, PutFrame, padding
from ompy_btl_tcp.wire cimport Part

cdef char[8] zeros
memset(&zeros[0], 0, sizeof(zeros))


cdef class Transfer:
    pass


@cython.freelist(64)
cdef class Parcel:
    def __dealloc__(self):
        free(self.copied)

    cdef int parts(self, Part *parts) noexcept:
        cdef size_t gone = self.sent
        cdef size_t length = self.head.frame.length
        cdef int count = 0
        if gone < self.head_size:
            parts[0] = Part(<char *> &self.head + gone, self.head_size - gone)
            count = 1
            gone = 0
        else:
            gone -= self.head_size
        if gone < length:
            parts[count] = Part(<void *> (self.payload + gone), length - gone)
            count += 1
            gone = 0
        else:
            gone -= length
        if gone < padding(length):
            parts[count] = Part(&zeros[0], padding(length) - gone)
            count += 1
        return count


cdef class Link(Connection):
    """One connection of several.

    Parameters:
        number, name, where, largest, done: as a connection's.
        bundle: of which it is one.
        place: its number there.
    """

    def __init__(self, int number, Bundle bundle not None, int place, str where, size_t largest, done):
        Connection.__init__(self, number, bundle.name, where, largest, 0, done)
        self.bundle = bundle
        self.number = place
        self.is_link = True
        self.last_kind = FRAME_ACKNOWLEDGE


cdef class Bundle:
    """One peer's links.

    Parameters:
        name, me: the peer, and this process, as the handshake has them.
        window: bytes of copies kept.
        queue_limit: bytes of puts that may wait for a link.
        piece: bytes from which on a put is cut.
        done: where descriptors go that are over, with their status.
        now: seconds of `time.monotonic`.
    """

    def __init__(self, bytes name, bytes me, size_t window, size_t queue_limit, size_t piece, done, double now):
        self.name = name
        self.me = me
        self.window = window
        self.queue_limit = queue_limit
        self.piece = piece
        self.done = done
        self.links, self.turns, self.early, self.next_call = {}, {}, {}, {}
        self.kept, self.waiting = deque(), deque()
        self.following = self.acknowledged = self.asked = FIRST
        self.expected = self.told = self.wanted = FIRST
        self.missing_since = now
        self.last_failure = ""

    # -- sending

    cdef int send(self, int kind, int tag, const char *data, size_t size, const char *payload, size_t payload_size,
                  bint must) except -1:
        cdef Parcel parcel
        cdef size_t total = size + payload_size
        cdef bint asks = must
        # Where nothing was asked about, nothing will be acknowledged that would make room: this one is taken, and asks.
        if not self.turns or (not must and <int32_t> (self.asked - self.acknowledged) > 0
                              and (self.copied + total > self.window or self.following - self.acknowledged >= FARTHEST)):
            self.held_back = True
            return OUT_OF_RESOURCE
        parcel = Parcel.__new__(Parcel)
        memset(&parcel.head, 0, sizeof(Frame))
        parcel.head.frame.length = total
        parcel.head.frame.kind = kind
        parcel.head.frame.tag = tag
        parcel.head_size = sizeof(Frame)
        if total:
            parcel.copied = <char *> malloc(total)
            if parcel.copied == NULL:
                raise MemoryError(f"no memory to keep {total} bytes until they are acknowledged")
            parcel.payload = parcel.copied
            memcpy(parcel.copied, data, size)
            memcpy(parcel.copied + size, payload, payload_size)
        self.copied += total
        self.unasked += total
        if self.unasked >= self.window // 4 or self.following - self.asked >= FARTHEST // 4:
            asks = True
        self.keep(parcel, asks)
        self.spread()
        return OK

    cdef int put(self, Descriptor descriptor, uint64_t handle) except -1:
        cdef Transfer transfer
        cdef Parcel parcel
        cdef size_t offset = 0
        cdef size_t some = descriptor.size
        if not self.turns or (self.unsent + descriptor.size > self.queue_limit and self.unsent) \
                or self.following - self.acknowledged >= FARTHEST:
            self.held_back = True
            return OUT_OF_RESOURCE
        if len(self.links) > 1 and descriptor.size >= 2 * self.piece:
            some = self.piece
        transfer = Transfer.__new__(Transfer)
        transfer.descriptor = descriptor
        self.puts += 1
        while offset < descriptor.size or offset == 0:
            parcel = Parcel.__new__(Parcel)
            some = min(some, descriptor.size - offset)
            memset(&parcel.head, 0, sizeof(PutFrame))
            parcel.head.frame.length = some
            parcel.head.frame.kind = FRAME_PUT
            parcel.head.handle = handle
            parcel.head.address = descriptor.remote_address + offset
            parcel.head_size = sizeof(PutFrame)
            parcel.payload = <const char *> (descriptor.local_address + offset)
            parcel.transfer = transfer
            transfer.left += 1
            offset += some
            self.keep(parcel, offset == descriptor.size)
            if descriptor.size == 0:
                break
        self.spread()
        return OK

    cdef int keep(self, Parcel parcel, bint asks) except -1:
        """The next frame."""
        parcel.head.frame.sequence = self.following
        parcel.size = parcel.head_size + parcel.head.frame.length + padding(parcel.head.frame.length)
        self.following += 1
        if asks:
            parcel.head.frame.asks = 1
            self.asked = self.following
            self.unasked = 0
        self.kept.append(parcel)
        self.waiting.append(parcel)
        self.unsent += parcel.size
        return 0

    cdef int spread(self) except -1:
        cdef Link link
        for link in self.links.values():
            if not self.waiting and not self.owes():
                break
            if link.current is None:
                self.pump(link)
        return 0

    cdef int pump(self, Link link) except -1:
        """Have one link take what waits, until it takes no more; what it can't take all of stays its own."""
        cdef Part parts[3]
        cdef Parcel parcel
        cdef ssize_t sent
        cdef int count
        while not link.is_broken:
            parcel = link.current
            if parcel is None:
                parcel = self.next_parcel()
                if parcel is None:
                    break
                parcel.head.frame.acknowledged = self.told = self.expected
                self.must_tell = False
                parcel.link = link
                parcel.sent = 0
                link.current = parcel
            count = parcel.parts(parts)
            sent = link.pass_on(parts, count, parcel.size - parcel.sent)
            if sent < 0:
                link.is_broken = True            # what has come is still to be looked at; the end will be seen behind it
                break
            parcel.sent += sent
            if parcel.sent < parcel.size:
                break
            link.current = None
        return self.release()

    cdef Parcel next_parcel(self):
        """What a link is to take now: a frame that waits, an acknowledgement if one is owed, or None."""
        cdef Parcel parcel
        while self.waiting:
            parcel = self.waiting.popleft()
            if not parcel.is_over:
                self.unsent -= parcel.size
                return parcel
        if not self.owes():
            return None
        parcel = Parcel.__new__(Parcel)
        memset(&parcel.head, 0, sizeof(Frame))
        parcel.head.frame.kind = FRAME_ACKNOWLEDGE
        parcel.head_size = parcel.size = sizeof(Frame)
        return parcel

    cdef bint owes(self) noexcept:
        return self.must_tell or (<int32_t> (self.wanted - self.told) > 0 and self.expected != self.told)

    # -- what the peer has told

    cdef bint settle(self, uint32_t acknowledged) except -1:
        cdef uint32_t some = acknowledged - self.acknowledged
        # What comes late by a slow link was true once; beyond what was sent nobody can have anything.
        if some == 0 or some > self.following - self.acknowledged:
            return False
        self.acknowledged = acknowledged
        self.release()
        return True

    cdef int release(self) except -1:
        """Let go of what is acknowledged."""
        cdef Parcel parcel
        while self.kept:
            parcel = self.kept[0]
            if <int32_t> (parcel.head.frame.sequence - self.acknowledged) >= 0:
                break
            if parcel.link is None:
                parcel.is_over = True
                self.unsent -= parcel.size
            elif parcel.link.current is parcel:
                break                            # it goes again, and the link is in the middle of it
            self.kept.popleft()
            if parcel.transfer is None:
                self.copied -= parcel.head.frame.length
                continue
            parcel.transfer.left -= 1
            if parcel.transfer.left == 0:
                self.puts -= 1
                self.done.append((parcel.transfer.descriptor, OK))
        return 0

    cdef bint has_room_again(self) noexcept:
        if self.held_back and self.copied <= self.window // 2 and self.unsent <= self.queue_limit // 2:
            self.held_back = False
            return True
        return False

    # -- trouble

    cdef int take_back(self, Link link) except -1:
        cdef Parcel parcel
        link.current = None
        self.waiting.clear()
        self.unsent = 0
        for parcel in self.kept:
            if parcel.link is link:
                parcel.link = None
                parcel.sent = 0
                self.sent_again += 1
            if parcel.link is None:
                self.waiting.append(parcel)
                self.unsent += parcel.size
        self.must_tell = True
        return 0

    cdef list abandon(self):
        cdef Parcel parcel
        cdef list found = []
        for parcel in self.kept:
            if parcel.transfer is not None and parcel.transfer.descriptor is not None:
                found.append(parcel.transfer.descriptor)
                parcel.transfer.descriptor = None
        self.kept.clear()
        self.waiting.clear()
        self.early.clear()
        self.copied = self.unsent = self.puts = 0
        return found
