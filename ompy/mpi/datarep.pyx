# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=True, annotation_typing=False, binding=False, auto_pickle=False
# distutils: extra_compile_args=-Os
"""Data representations of files: native, internal, external32, and those of the program's (MPI-4.1, 14.5)."""

from cpython.bytearray cimport PyByteArray_AS_STRING

from ompy.core.basic cimport BASIC_BYTE
from ompy.core.convertor cimport pack_all, unpack_all
from ompy.core.typemap cimport Typemap, create_struct, predefined
from ompy.mpi.datatype cimport datatype_of, description_of
from ompy.mpi.external cimport external_size, pack_external, unpack_external
from ompy.mpi.memory cimport buffer_over

from ompy.core.errors import ERR_ARG, ERR_CONVERSION, ERR_DUP_DATAREP, ERR_UNSUPPORTED_DATAREP, MPIError
from ompy.mpi.datatype import ORDER_FORTRAN
from ompy.mpi.description import COMBINER_STRUCT, COMBINERS
from ompy.mpi.raising import hand_over

__all__ = ["MAX_DATAREP_STRING", "Register_datarep"]

# Longest name, bytes.
MAX_DATAREP_STRING = 128

cdef dict known = {}


cdef class Datarep:
    """What the program's data are in a file."""

    cdef Typemap laid_out(self, Typemap typemap):
        cdef Py_ssize_t size
        description = None if typemap.description is None else description_of(typemap)
        if description is None or description.predefined:
            size = self.size_of(typemap)
            return typemap if size == typemap.size == typemap.extent else predefined(BASIC_BYTE).create_contiguous(size)
        types = [self.laid_out(base) for base in description.types]
        arguments = dict(description.parameters)
        if description.combiner == COMBINER_STRUCT:
            blocklengths, displacements = arguments.values()
            return create_struct(blocklengths, displacements, types)
        if "order" in arguments:
            arguments["fortran"] = arguments.pop("order") == ORDER_FORTRAN
        return getattr(types[0], f"create_{COMBINERS[description.combiner].lower()}")(*arguments.values())

    cdef Py_ssize_t size_of(self, Typemap typemap) except -1:
        raise NotImplementedError

    cdef bytearray encode(self, size_t address, Py_ssize_t count, Typemap typemap):
        raise NotImplementedError

    cdef Py_ssize_t decode(self, bytearray data, Py_ssize_t moved, size_t address, Py_ssize_t count, Typemap typemap) except -1:
        raise NotImplementedError


cdef class External32(Datarep):
    """Big-endian, with sizes that no machine chooses (MPI-4.1, 14.5.2)."""

    cdef Py_ssize_t size_of(self, Typemap typemap) except -1:
        return external_size(typemap)

    cdef bytearray encode(self, size_t address, Py_ssize_t count, Typemap typemap):
        cdef bytearray data = bytearray(count * external_size(typemap))
        pack_external(<char *> address, count, typemap, PyByteArray_AS_STRING(data))
        return data

    cdef Py_ssize_t decode(self, bytearray data, Py_ssize_t moved, size_t address, Py_ssize_t count, Typemap typemap) except -1:
        cdef Typemap unit
        cdef bytearray native
        if typemap.size == 0:
            return 0
        if typemap.basic < 0:
            count = moved // external_size(typemap)
            unpack_external(PyByteArray_AS_STRING(data), <char *> address, count, typemap)
            return count * typemap.size
        # All numbers are alike: what came may end anywhere.
        unit = predefined(typemap.basic)
        moved //= external_size(unit)
        native = bytearray(moved * unit.extent)
        unpack_external(PyByteArray_AS_STRING(data), PyByteArray_AS_STRING(native), moved, unit)
        if unit.extent == unit.size:
            return unpack_all(PyByteArray_AS_STRING(native), moved * unit.size, <char *> address, count, typemap)
        unpack_external(PyByteArray_AS_STRING(data), <char *> address, moved * unit.size // typemap.size, typemap)
        return moved * unit.size // typemap.size * typemap.size


cdef class Registered(Datarep):
    """One that the program has registered (MPI-4.1, 14.5.3)."""
    cdef object read_fn, write_fn, extent_fn

    cdef Py_ssize_t size_of(self, Typemap typemap) except -1:
        cdef Py_ssize_t size
        description = None if typemap.description is None else description_of(typemap)
        if description is None or description.predefined:
            size = self.extent_fn(datatype_of(typemap))
            if size < 0:
                raise MPIError(ERR_CONVERSION, f"data representation {self.name}: its extent_fn gave {size}")
            return size
        return self.laid_out(typemap).size

    cdef bytearray encode(self, size_t address, Py_ssize_t count, Typemap typemap):
        cdef bytearray data = bytearray(count * self.size_of(typemap))
        if self.write_fn is None:
            if count * typemap.size > len(data):
                raise MPIError(ERR_CONVERSION, f"data representation {self.name}: it has no write_fn, and its extent_fn gives "
                                               "fewer bytes than there are in memory")
            pack_all(<char *> address, count, typemap, PyByteArray_AS_STRING(data))
        else:
            self.write_fn(buffer_over(address, count * typemap.extent, None, True), datatype_of(typemap), count,
                          memoryview(data), 0)
        return data

    cdef Py_ssize_t decode(self, bytearray data, Py_ssize_t moved, size_t address, Py_ssize_t count, Typemap typemap) except -1:
        if self.read_fn is None:
            return unpack_all(
                PyByteArray_AS_STRING(data), min(moved, count * typemap.size), <char *> address, count, typemap)
        count = moved // max(1, self.size_of(typemap))
        self.read_fn(buffer_over(address, count * typemap.extent, None, False), datatype_of(typemap), count,
                     memoryview(data), 0)
        return count * typemap.size


cdef Datarep datarep_of(str name):
    if name not in known:
        listing = ", ".join(known)
        raise MPIError(ERR_UNSUPPORTED_DATAREP, f"datarep: none is called {name!r}; there are {listing}")
    return known[name]


def Register_datarep(datarep: str, read_fn, write_fn, extent_fn) -> None:
    """Make a data representation known, which `File.Set_view` then takes (MPI-4.1, 14.5.3).

    Parameters:
        datarep: its name, at most MAX_DATAREP_STRING bytes.
        read_fn: function(memory, datatype, count, data, position) that fills in `count` elements from the file's data; None
            where they are the same.
        write_fn: function(memory, datatype, count, data, position), the other way.  `data` is a memoryview of as many bytes as
            extent_fn says.
        extent_fn: function(datatype) that gives a predefined datatype's bytes in the file.

    Raises:
        Exception: ERR_DUP_DATAREP for a name that is taken, ERR_ARG for one that is too long.
    """
    cdef Registered made
    try:
        if not 0 < len(datarep.encode()) <= MAX_DATAREP_STRING:
            raise MPIError(ERR_ARG, f"datarep: 1 to {MAX_DATAREP_STRING} bytes expected, not {len(datarep.encode())}")
        if datarep in known:
            raise MPIError(ERR_DUP_DATAREP, f"datarep: there is a {datarep!r} already")
    except MPIError as error:
        hand_over(error, None)
    made = Registered.__new__(Registered)
    made.name, made.read_fn, made.write_fn, made.extent_fn = datarep, read_fn, write_fn, extent_fn
    known[datarep] = made


cdef External32 external32 = External32.__new__(External32)
external32.name = "external32"
known.update({"native": None, "internal": None, "external32": external32})
