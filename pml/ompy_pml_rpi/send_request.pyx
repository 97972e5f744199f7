# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Sends of the MPI layer."""
from libc.stdint cimport uint32_t
from libc.string cimport memcpy

from ompy.core.convertor cimport Convertor
from ompy.core.constants cimport MODE_SYNCHRONOUS
from ompy.core.errors import ERR_COUNT, MPIError
from ompy.core.owner cimport enter, leave
from ompy.mca.rpi cimport KIND_DATA, KIND_SYNCHRONOUS, Envelope


cdef class SendRequest(Confirmed):
    cdef int prepare(self, Layer layer, Scope scope, size_t address, Py_ssize_t count, Typemap typemap, int dest, int tag,
                     int mode) except -1:
        self.layer = layer
        self.scope = scope
        self.communicator = scope.communicator
        self.address = address
        self.count = count
        self.typemap = typemap
        self.contiguous = typemap.contiguous
        self.peer = dest
        self.dest = scope.world_rank(dest)
        self.tag = tag
        self.synchronous = mode == MODE_SYNCHRONOUS
        self.nbytes = count * typemap.size
        self.envelope = Envelope(layer.rank, tag, scope.number, KIND_DATA, self.nbytes)
        if self.synchronous:
            self.envelope.kind = KIND_SYNCHRONOUS
        if not self.contiguous and self.nbytes:
            self.convertor = Convertor.__new__(Convertor)
        limit = layer.rpi.limits.get("message_bytes", self.nbytes)
        if self.nbytes > limit:
            raise MPIError(ERR_COUNT, f"rpi {layer.rpi.name} carries messages of up to {limit} bytes, not {self.nbytes}")
        return 0

    cdef int announce(self) except -1:
        self.begin()
        self.fetched = 0
        self.gone = self.acknowledged = False
        if self.convertor is not None:
            self.convertor.prepare(<char *> self.address, self.count, self.typemap)
        if self.synchronous:
            self.layer.awaiting.append(self)
        return 0

    cpdef int start(self) except -1:
        """Begin, or begin again: the component takes over."""
        enter()
        try:
            self.announce()
            return self.layer.rpi.start_send(self)
        finally:
            leave()

    cdef int fetch(self, uint32_t *words, size_t length) except -1:
        if length & 3:
            words[length >> 2] = 0
        if self.convertor is None:
            memcpy(words, <char *> (self.address + self.fetched), length)
        else:
            self.convertor.pack(<char *> words, length)
        self.fetched += length
        return 0
