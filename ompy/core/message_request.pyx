# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-falign-jumps -falign-labels
"""Requests for one message between the program's memory and a peer; see `message_request.pxd`."""
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize

from ompy.core.basic cimport BASIC_BYTE
from ompy.core.convertor cimport pack_all
from ompy.core.errors import ERR_OTHER, ERR_TRUNCATE, MPIError
from ompy.core.copying cimport copy_bytes
from ompy.core.memory cimport address_of
from ompy.core.typemap cimport predefined

cdef Typemap byte_typemap = predefined(BASIC_BYTE)


cdef class MessageRequest(Request):
    """Base of every PML's sends and receives."""

    cdef object set_aside(self):
        cdef Py_ssize_t nbytes = self.count * self.typemap.size
        cdef object copy = PyByteArray_FromStringAndSize(NULL, nbytes)
        pack_all(<char *> self.address, self.count, self.typemap, PyByteArray_AS_STRING(copy))
        self.address = <size_t> PyByteArray_AS_STRING(copy)
        self.count = nbytes
        self.typemap = byte_typemap
        self.convertor = None
        return copy

    cdef int aim(self, size_t address, Py_ssize_t count, Typemap typemap, object allocate, int source, int tag) except -1:
        """What a receive asks for."""
        self.address = address
        self.count = count
        self.typemap = typemap
        self.allocate = allocate
        self.wanted_source = source
        self.wanted_tag = tag
        self.peer = source
        self.tag = tag
        if typemap is None:
            self.nbytes = 0
            self.plain = False
        else:
            self.nbytes = count * typemap.size
            self.plain = typemap.contiguous and allocate is None
        return 0

    cdef int open(self, int source, int tag, uint64_t length) except -1:
        cdef uint64_t capacity
        self.peer = source
        self.tag = tag
        self.status.source = source
        self.status.tag = tag
        self.received = 0
        if self.allocate is not None:
            self.make_memory(length)
        capacity = <uint64_t> (self.count * self.typemap.size) if self.typemap is not None else <uint64_t> self.nbytes
        self.wanted = length
        if length > capacity:
            self.wanted = capacity
            if self.error is None:
                self.status.error = ERR_TRUNCATE
                # The tags of the library's own messages tell the program nothing.
                with_tag = f" with tag {tag}" if tag >= 0 else ""
                self.error = MPIError(ERR_TRUNCATE, f"message of {length} bytes from rank {source}{with_tag}, but the "
                                                    f"receive buffer holds {capacity} bytes")
        self.status.nbytes = self.wanted
        self.convertor = None
        if self.typemap is not None and not self.typemap.contiguous and self.wanted and not self.abandoned:
            self.convertor = Convertor.__new__(Convertor)
            self.convertor.prepare(<char *> self.address, self.count, self.typemap)
        return 0

    cdef int take_whole(self, int source, int tag, const char *data, size_t length) except -1:
        if not self.plain or length > <size_t> self.nbytes or self.abandoned:
            self.open(source, tag, length)
            return self.place(0, data, length)
        self.peer = source
        self.tag = tag
        self.status.source = source
        self.status.tag = tag
        self.status.nbytes = length
        copy_bytes(<char *> self.address, data, length)
        return 0

    cdef int make_memory(self, uint64_t length) except -1:
        try:
            self.buffer = self.allocate(length)
            self.address = address_of(self.buffer) if length else 0
            self.nbytes = length
        except Exception as error:
            self.error = error
            self.status.error = ERR_OTHER
            self.nbytes = 0
        self.typemap = None
        return 0

    cdef int place(self, uint64_t offset, const char *data, size_t length) except -1:
        if offset >= self.wanted:
            return 0
        if length > self.wanted - offset:
            length = self.wanted - offset
        self.received += length
        if self.abandoned or length == 0:
            return 0
        if self.convertor is None:
            copy_bytes(<char *> (self.address + offset), data, length)
            return 0
        self.convertor.seek(offset)
        self.convertor.unpack(data, length)
        return 0
