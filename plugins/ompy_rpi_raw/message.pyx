# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Messages that were received before somebody asked for them."""
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy


cdef class Stored(Detached):
    """A message in memory of the component's."""

    cdef int append(self, const uint32_t *words, uint64_t length) except -1:
        raise NotImplementedError

    cdef int copy_to(self, Incoming request) except -1:
        raise NotImplementedError

    cdef int release(self) except -1:
        return 0


cdef class PacketPool:
    """Packet buffers, made once and used again and again."""

    def __dealloc__(self):
        cdef PacketBuffer *buffer = self.free_buffers
        while buffer != NULL:
            self.free_buffers = buffer.next
            free(buffer)
            buffer = self.free_buffers

    cdef PacketBuffer *take(self) except NULL:
        cdef PacketBuffer *buffer = self.free_buffers
        if buffer == NULL:
            buffer = <PacketBuffer *> malloc(sizeof(PacketBuffer))
            if buffer == NULL:
                raise MemoryError("no memory for a packet buffer")
            self.made += 1
        else:
            self.free_buffers = buffer.next
        buffer.next = NULL
        self.used += 1
        return buffer

    cdef void give_back(self, PacketBuffer *buffer) noexcept:
        buffer.next = self.free_buffers
        self.free_buffers = buffer
        self.used -= 1


cdef class PooledMessage(Stored):
    """A message in packet buffers."""

    def __cinit__(self, PacketPool pool not None):
        self.pool = pool

    def __dealloc__(self):
        self.release()

    cdef int append(self, const uint32_t *words, uint64_t length) except -1:
        cdef PacketBuffer *buffer
        cdef uint64_t part
        while length:
            part = min(length, <uint64_t> (4 * BUFFER_WORDS))
            buffer = self.pool.take()
            buffer.bytes = <uint32_t> part
            memcpy(buffer.words, words, part)
            if self.last == NULL:
                self.first = buffer
            else:
                self.last.next = buffer
            self.last = buffer
            self.received += part
            words += BUFFER_WORDS
            length -= part
        return 0

    cdef int copy_to(self, Incoming request) except -1:
        cdef PacketBuffer *buffer = self.first
        while buffer != NULL:
            request.take(<const char *> buffer.words, buffer.bytes)
            buffer = buffer.next
        return 0

    cdef int release(self) except -1:
        cdef PacketBuffer *buffer = self.first
        while buffer != NULL:
            self.first = buffer.next
            self.pool.give_back(buffer)
            buffer = self.first
        self.last = NULL
        return 0


cdef class BufferedMessage(Stored):
    """A message in one run of memory."""

    def __dealloc__(self):
        free(self.buffer)

    cdef int append(self, const uint32_t *words, uint64_t length) except -1:
        if self.buffer == NULL and length:
            self.buffer = <char *> malloc(self.envelope.length)
            if self.buffer == NULL:
                raise MemoryError(f"no memory for an unexpected message of {self.envelope.length} bytes")
        memcpy(self.buffer + self.received, words, length)
        self.received += length
        return 0

    cdef int copy_to(self, Incoming request) except -1:
        return request.take(self.buffer, self.received) if self.received else 0

    cdef int release(self) except -1:
        free(self.buffer)
        self.buffer = NULL
        return 0
