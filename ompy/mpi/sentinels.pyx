# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=True, annotation_typing=False, binding=False, auto_pickle=False
# distutils: extra_compile_args=-Os
"""The special values of buffer arguments: BOTTOM, IN_PLACE, BUFFER_AUTOMATIC (MPI-4.1, 2.5.4)."""

from cpython.buffer cimport Py_buffer


cdef class Sentinel:
    """A constant that stands where a buffer is expected."""

    def __bool__(self) -> bool:
        return self.value != 0

    def __int__(self) -> int:
        return self.value

    def __hash__(self) -> int:
        return hash(self.value)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, type(self)):
            return True
        return self.value == other if isinstance(other, int) else NotImplemented

    def __ne__(self, other: object) -> bool:
        if isinstance(other, type(self)):
            return False
        return self.value != other if isinstance(other, int) else NotImplemented

    def __getbuffer__(self, Py_buffer *view, int flags):
        # No owner and no bytes: only the address says something.
        view.obj = None
        view.buf = <void *> self.value
        view.len = 0
        view.itemsize = 1
        view.readonly = 0
        view.ndim = 1
        view.format = NULL
        view.shape = &view.len
        view.strides = &view.itemsize
        view.suboffsets = NULL
        view.internal = NULL

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> str:
        return self.name


cdef class BottomType(Sentinel):
    """Type of `BOTTOM`: addresses are absolute (MPI-4.1, 5.1.5)."""

    def __cinit__(self):
        self.name = "BOTTOM"

    def __index__(self) -> int:
        return self.value


cdef class InPlaceType(Sentinel):
    """Type of `IN_PLACE`: the result replaces the operand (MPI-4.1, 6.2.3)."""

    def __cinit__(self):
        self.name = "IN_PLACE"
        self.value = 1


cdef class BufferAutomaticType(Sentinel):
    """Type of `BUFFER_AUTOMATIC`: the library makes the memory for buffered sends (MPI-4.1, 3.6)."""

    def __cinit__(self):
        self.name = "BUFFER_AUTOMATIC"
        self.value = 2


bottom = BottomType()
in_place = InPlaceType()
buffer_automatic = BufferAutomaticType()

BOTTOM = bottom
IN_PLACE = in_place
BUFFER_AUTOMATIC = buffer_automatic
