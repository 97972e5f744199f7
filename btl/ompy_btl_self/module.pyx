# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""Loopback: what a process sends to itself.  The queue of copies is described in `module.pxd`."""
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from ompy.core.constants cimport OK
from ompy.core.copying cimport copy_bytes
from ompy.core.proc cimport Proc
from ompy.core.progress_source cimport wake
from ompy.mca.btl cimport (
    FLAG_ASYNCHRONOUS, FLAG_GET, FLAG_IN_ORDER, FLAG_PUT, FLAG_SEND, FLAG_SENDI, INTERFACE, Btl, Descriptor, Endpoint,
)

interface = INTERFACE

cdef int SPARE_LETTERS = 64
# Messages handed over by one progress, so that a receiver that answers itself can't keep the engine from other sources.
cdef int BATCH = 64


cdef bint has_letters(void *context) noexcept nogil:
    return (<Letter **> context)[0] != NULL


cdef class SelfBtl(Btl):
    """The loopback BTL."""

    def __cinit__(self):
        self.name = "self"
        self.flags = FLAG_SEND | FLAG_SENDI | FLAG_PUT | FLAG_GET | FLAG_IN_ORDER | FLAG_ASYNCHRONOUS
        self.ready = has_letters
        self.ready_context = &self.first

    def __dealloc__(self):
        cdef Letter *letter
        self.clear()
        while self.spare != NULL:
            letter = self.spare
            self.spare = letter.next
            free(letter)

    cdef int clear(self) except -1:
        cdef Letter *letter
        while self.first != NULL:
            letter = self.first
            self.first = letter.next
            free(letter)
        self.last = NULL
        return 0

    cpdef list add_procs(self, list procs):
        cdef Proc proc
        endpoints = []
        for proc in procs:
            if proc.is_self:
                if self.endpoint is None:
                    self.endpoint = Endpoint(self, proc)
                endpoints.append(self.endpoint)
            else:
                endpoints.append("another process: self reaches this one only")
        return endpoints

    cpdef int del_procs(self, list endpoints) except -1:
        if self.endpoint in endpoints:
            self.endpoint = None
            self.clear()
        return 0

    cpdef int finalize(self) except -1:
        self.endpoint = None
        return self.clear()

    cpdef dict statistics(self):
        return {"messages": self.messages, "bytes": self.bytes}

    # -- messages

    cdef Letter *write(self, size_t length, int tag) except? NULL:
        cdef Letter *letter
        cdef size_t capacity = self.eager_limit
        if length <= capacity and self.spare != NULL:
            letter = self.spare
            self.spare = letter.next
            self.spare_count -= 1
        else:
            if length > capacity:
                capacity = length
            letter = <Letter *> malloc(sizeof(Letter) + capacity)
            if letter == NULL:
                raise MemoryError(f"no memory for a message of {length} bytes to this process itself")
            letter.capacity = capacity
        letter.next = NULL
        letter.length = length
        letter.tag = tag
        return letter

    cdef int post(self, Letter *letter) except -1:
        if self.last == NULL:
            self.first = letter
        else:
            self.last.next = letter
        self.last = letter
        self.messages += 1
        self.bytes += letter.length
        wake()                                   # another thread of this process may wait for it
        return OK

    cdef void discard(self, Letter *letter) noexcept:
        if letter.capacity == self.eager_limit and self.spare_count < SPARE_LETTERS:
            letter.next = self.spare
            self.spare = letter
            self.spare_count += 1
        else:
            free(letter)

    cdef int sendi(self, Endpoint endpoint, const char *header, size_t header_size,
                   const char *payload, size_t payload_size, int tag) except -1:
        cdef Letter *letter = self.write(header_size + payload_size, tag)
        cdef char *text = <char *> (letter + 1)
        memcpy(text, header, header_size)
        if payload_size:
            copy_bytes(text + header_size, payload, payload_size)
        return self.post(letter)

    cpdef int send(self, Endpoint endpoint, Descriptor descriptor, int tag) except -1:
        self.sendi(endpoint, descriptor.data, descriptor.length, descriptor.payload, descriptor.payload_length, tag)
        descriptor.in_flight = True
        descriptor.complete()
        return OK

    cpdef Descriptor prepare_src(self, Endpoint endpoint, size_t address, size_t header_size, size_t size):
        cdef Descriptor descriptor = self.alloc(endpoint, header_size)
        descriptor.payload = <char *> address
        descriptor.payload_length = size
        return descriptor

    cpdef int put(self, Endpoint endpoint, Descriptor descriptor) except -1:
        copy_bytes(<void *> <size_t> descriptor.remote_address, <void *> descriptor.local_address, descriptor.size)
        descriptor.in_flight = True
        descriptor.complete()
        return OK

    cpdef int get(self, Endpoint endpoint, Descriptor descriptor) except -1:
        copy_bytes(<void *> descriptor.local_address, <void *> <size_t> descriptor.remote_address, descriptor.size)
        descriptor.in_flight = True
        descriptor.complete()
        return OK

    cpdef int progress(self) except -1:
        cdef Letter *letter
        cdef int events = 0
        while self.first != NULL and events < BATCH:
            letter = self.first
            self.first = letter.next
            if self.first == NULL:
                self.last = NULL
            events += 1
            try:
                self.deliver(letter.tag, self.endpoint, <char *> (letter + 1), letter.length)
            finally:
                self.discard(letter)
        return events
