# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: extra_compile_args=-Os
# cython: embedsignature=True, annotation_typing=False, binding=False, auto_pickle=False
"""Packing of typed data into plain bytes (MPI-4.1, 5.2 and 5.3)."""

from cpython.buffer cimport Py_buffer, PyBuffer_Release, PyBUF_SIMPLE, PyBUF_WRITABLE

from ompy.core.convertor cimport pack_all, unpack_all
from ompy.core.typemap cimport Typemap, times
from ompy.mpi.external cimport external_size, pack_external, unpack_external
from ompy.mpi.handle cimport Handle
from ompy.mpi.memory cimport acquire, check_room

from ompy.core.errors import ERR_ARG, ERR_COMM, ERR_COUNT, ERR_TRUNCATE, ERR_TYPE, ERR_UNSUPPORTED_DATAREP, MPIError
from ompy.mpi.exceptions import Exception as MPIException
from ompy.mpi.raising import hand_over


cdef Typemap checked(Packing datatype):
    if datatype is None or datatype.typemap is None:
        raise MPIException(ERR_TYPE, "datatype: a datatype expected, not DATATYPE_NULL")
    return datatype.typemap


cdef Typemap ready(Packing datatype):
    """For memory to be looked at; sizes can be asked before."""
    cdef Typemap typemap = checked(datatype)
    if not typemap.committed:
        raise MPIException(ERR_TYPE, "datatype: it is not committed: call its Commit first")
    return typemap


cdef Py_ssize_t elements(const Py_buffer *memory, Typemap typemap) except -1:
    """How many lie in it."""
    cdef Py_ssize_t count
    if typemap.extent <= 0:
        raise ValueError(f"datatype: its extent of {typemap.extent} bytes does not tell how many elements a buffer holds")
    count = memory.len // typemap.extent
    try:
        check_room(typemap, count, 0, memory.buf, memory.len)
    except MPIError as error:
        hand_over(error, None)
    return count


cdef Py_ssize_t data_bytes(Py_ssize_t count, Py_ssize_t size) except -1:
    """Of so many elements; entries may overlap, so that there is more data than memory."""
    try:
        return times(count, size)
    except MPIError as error:
        hand_over(error, None)


cdef int check_position(Py_ssize_t position, Py_ssize_t needed, Py_ssize_t available) except -1:
    if position < 0:
        raise MPIException(ERR_ARG, f"position: {position} is negative")
    if needed > available - position:
        raise MPIException(ERR_TRUNCATE, f"{needed} bytes from position {position} do not fit in a buffer of {available}")
    return 0


cdef Py_ssize_t check_count(Py_ssize_t count) except -1:
    if count < 0:
        raise MPIException(ERR_COUNT, f"count: {count} is negative")
    return count


cdef int check_comm(comm) except -1:
    if not comm:
        raise MPIException(ERR_COMM, "comm: a communicator expected, not COMM_NULL")
    return 0


cdef int check_external32(str datarep) except -1:
    if datarep != "external32":
        raise MPIException(ERR_UNSUPPORTED_DATAREP, f"datarep: 'external32' expected, not {datarep!r}")
    return 0


cdef class Packing(Handle):
    """The part of `Datatype` that packs and unpacks."""

    def Pack(self, inbuf, outbuf, position: int, comm) -> int:
        """Copy the elements that `inbuf` holds into `outbuf` without gaps (MPI-4.1, 5.2).

        Parameters:
            inbuf: buffer of whole elements, from their first byte on.
            outbuf: writable buffer for the packed bytes.
            position: where in `outbuf` to begin, in bytes.

        Returns:
            the position after what was packed.

        Raises:
            Exception: ERR_TRUNCATE when `outbuf` is too small.
        """
        cdef Typemap typemap = ready(self)
        cdef Py_buffer source, target
        cdef Py_ssize_t count, begin = position
        check_comm(comm)
        acquire(inbuf, &source, PyBUF_SIMPLE)
        try:
            count = elements(&source, typemap)
            acquire(outbuf, &target, PyBUF_WRITABLE)
            try:
                check_position(begin, data_bytes(count, typemap.size), target.len)
                return begin + pack_all(<char *> source.buf, count, typemap, <char *> target.buf + begin)
            finally:
                PyBuffer_Release(&target)
        finally:
            PyBuffer_Release(&source)

    def Unpack(self, inbuf, position: int, outbuf, comm) -> int:
        """Copy packed bytes of `inbuf` to the elements that `outbuf` has room for; as `Pack` (MPI-4.1, 5.2)."""
        cdef Typemap typemap = ready(self)
        cdef const char *packed
        cdef Py_buffer source, target
        cdef Py_ssize_t count, begin = position
        check_comm(comm)
        acquire(outbuf, &target, PyBUF_WRITABLE)
        try:
            count = elements(&target, typemap)
            acquire(inbuf, &source, PyBUF_SIMPLE)
            try:
                check_position(begin, data_bytes(count, typemap.size), source.len)
                packed = <char *> source.buf + begin
                return begin + unpack_all(packed, count * typemap.size, <char *> target.buf, count, typemap)
            finally:
                PyBuffer_Release(&source)
        finally:
            PyBuffer_Release(&target)

    def Pack_size(self, count: int, comm) -> int:
        """Bytes that `Pack` needs for `count` elements (MPI-4.1, 5.2)."""
        check_comm(comm)
        return data_bytes(check_count(count), checked(self).size)

    def Pack_external(self, datarep: str, inbuf, outbuf, position: int) -> int:
        """`Pack` in the portable representation "external32": big-endian, sizes of MPI-4.1, 14.5.2 (MPI-4.1, 5.3).

        Raises:
            Exception: ERR_UNSUPPORTED_DATAREP for another `datarep`, ERR_CONVERSION for an integer that does not fit in
                the portable size (a LONG has four bytes there), ERR_TRUNCATE when `outbuf` is too small.
        """
        cdef Typemap typemap = ready(self)
        cdef Py_buffer source, target
        cdef Py_ssize_t count, needed, begin = position
        check_external32(datarep)
        acquire(inbuf, &source, PyBUF_SIMPLE)
        try:
            count = elements(&source, typemap)
            needed = data_bytes(count, external_size(typemap))
            acquire(outbuf, &target, PyBUF_WRITABLE)
            try:
                check_position(begin, needed, target.len)
                pack_external(<char *> source.buf, count, typemap, <char *> target.buf + begin)
                return begin + needed
            except MPIError as error:
                hand_over(error, None)
            finally:
                PyBuffer_Release(&target)
        finally:
            PyBuffer_Release(&source)

    def Unpack_external(self, datarep: str, inbuf, position: int, outbuf) -> int:
        """`Unpack` from the portable representation "external32"; as `Pack_external` (MPI-4.1, 5.3)."""
        cdef Typemap typemap = ready(self)
        cdef Py_buffer source, target
        cdef Py_ssize_t count, needed, begin = position
        check_external32(datarep)
        acquire(outbuf, &target, PyBUF_WRITABLE)
        try:
            count = elements(&target, typemap)
            needed = data_bytes(count, external_size(typemap))
            acquire(inbuf, &source, PyBUF_SIMPLE)
            try:
                check_position(begin, needed, source.len)
                unpack_external(<char *> source.buf + begin, <char *> target.buf, count, typemap)
                return begin + needed
            except MPIError as error:
                hand_over(error, None)
            finally:
                PyBuffer_Release(&source)
        finally:
            PyBuffer_Release(&target)

    def Pack_external_size(self, datarep: str, count: int) -> int:
        """Bytes that `Pack_external` needs for `count` elements (MPI-4.1, 5.3)."""
        check_external32(datarep)
        return data_bytes(check_count(count), external_size(checked(self)))
