# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Receives of the MPI layer."""
from ompy.core.owner cimport enter, leave
from ompy.mca.rpi cimport KIND_SYNCHRONOUS


cdef class RecvRequest(Incoming):
    cdef int prepare(self, Layer layer, Scope scope, size_t address, Py_ssize_t count, Typemap typemap, object allocate,
                     int source, int tag) except -1:
        self.layer = layer
        self.communicator_scope = scope
        self.communicator = scope.communicator
        self.aim(address, count, typemap, allocate, source, tag)
        self.contiguous = typemap is None or typemap.contiguous
        self.world_source = scope.world_rank(source)
        self.scope = scope.number
        return 0

    cdef int expect(self) except -1:
        self.begin()
        self.found = False
        self.placed = 0
        self.peer = self.wanted_source
        self.tag = self.wanted_tag
        return 0

    cpdef int start(self) except -1:
        """Begin, or begin again: take the first message that matches, or wait for one."""
        enter()
        try:
            self.expect()
            return self.layer.rpi.start_receive(self)
        finally:
            leave()

    cpdef int cancel(self) except -1:
        """Takes effect as long as nothing was matched (MPI-4.1, 3.8.4)."""
        enter()
        try:
            if not self.complete and not self.found and self.layer.rpi.cancel_receive(self):
                self.status.cancelled = True
                self.finish()
        finally:
            leave()
        return 0

    cpdef int abandon(self, object memory) except -1:
        """Take it back, or have the message dropped."""
        enter()
        try:
            if self.complete:
                return self.release()
            self.abandoned = True
            self.convertor = None
            return self.cancel()
        finally:
            leave()

    cpdef int fail(self, object error) except -1:
        """Complete with an error; whatever still arrives is thrown away."""
        enter()
        try:
            self.abandoned = True
            self.convertor = None
            if not self.found:
                self.layer.rpi.cancel_receive(self)
            return Incoming.fail(self, error)
        finally:
            leave()

    cdef int matched(self, const Envelope *envelope) except -1:
        self.found = True
        if envelope.kind == KIND_SYNCHRONOUS:
            self.layer.owe(envelope)
        return self.open(self.communicator_scope.rank_of(envelope.source), envelope.tag, envelope.length)

    cdef int take(self, const char *data, size_t length) except -1:
        self.place(self.placed, data, length)
        self.placed += length
        return 0

    cdef int arrived(self) except -1:
        return self.finish()
