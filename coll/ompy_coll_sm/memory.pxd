# Typed memory as a run of packed bytes, from any of them on.
from ompy.core.convertor cimport Convertor
from ompy.core.copying cimport copy_bytes
from ompy.core.typemap cimport Typemap

cdef inline Convertor convertor_for(size_t address, Py_ssize_t count, Typemap typemap):
    """What `load` and `store` need to reach the memory; None for contiguous memory."""
    cdef Convertor convertor
    if typemap is None or typemap.contiguous or count == 0:
        return None
    convertor = Convertor.__new__(Convertor)
    convertor.prepare(<char *> address, count, typemap)
    return convertor


cdef inline int load(size_t address, Convertor convertor, size_t offset, char *target, size_t nbytes) except -1:
    """Packed bytes `offset` to `offset + nbytes` of the memory, to `target`."""
    if convertor is None:
        copy_bytes(target, <char *> (address + offset), nbytes)
        return 0
    convertor.seek(offset)
    convertor.pack(target, nbytes)
    return 0


cdef inline int store(size_t address, Convertor convertor, size_t offset, const char *source, size_t nbytes) except -1:
    """The reverse of `load`."""
    if convertor is None:
        copy_bytes(<char *> (address + offset), source, nbytes)
        return 0
    convertor.seek(offset)
    convertor.unpack(source, nbytes)
    return 0
