# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=True, annotation_typing=False, binding=False, auto_pickle=False
# distutils: extra_compile_args=-Os
"""Raw memory: `MPI.buffer`, `MPI.Alloc_mem` (MPI-4.1, 9.2), and access to the memory of any object."""

from cpython.buffer cimport (
    PyBUF_SIMPLE,
    PyBUF_WRITABLE,
    PyBuffer_FillInfo,
    PyBuffer_Release,
    PyObject_CheckBuffer,
    PyObject_GetBuffer,
)
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.long cimport PyLong_AsVoidPtr
from cpython.number cimport PyNumber_Index
from libc.stdlib cimport free
from libc.string cimport memmove, memset

from ompy.core.heap cimport give_back, holds, take
from ompy.core.registration cimport forget as forget_registrations
from ompy.core.segment cimport page_size
from ompy.core.typemap cimport Typemap, lies_within
from ompy.mpi.device cimport (
    DEVICE_CPU,
    DEVICE_CUDA_HOST,
    DEVICE_CUDA_MANAGED,
    DEVICE_ROCM_HOST,
    acquire_cuda,
    acquire_dlpack,
    speaks_cuda,
    speaks_dlpack,
)

from ompy.core.errors import ERR_ARG, ERR_BASE, ERR_BUFFER, MPIError
from ompy.mpi.exceptions import Exception as MPIException


cdef extern from "stdlib.h" nogil:
    int posix_memalign(void **memory, size_t alignment, size_t size)


# A cache line: what the transports copy fastest, and enough for every vector instruction.
cdef size_t ALIGNMENT = 64

cdef enum:
    FIRST_PAGE = 4096                            # bytes that are nobody's memory
# Blocks of the shared heap are whole pages, and short messages are copied through the rings anyway.
cdef Py_ssize_t SMALLEST_SHARED = 16384


cdef int acquire(object source, Py_buffer *view, int flags) except -1:
    if PyObject_CheckBuffer(source):
        PyObject_GetBuffer(source, view, flags)
        return (<buffer> source).device if type(source) is buffer else 0
    if speaks_dlpack(source):
        return acquire_dlpack(source, view, flags)
    if speaks_cuda(source):
        return acquire_cuda(source, view, flags)
    raise TypeError(f"an object with memory (buffer protocol, DLPack or CUDA array interface) expected, "
                    f"not {type(source).__name__}")


cdef int check_room(Typemap typemap, Py_ssize_t count, Py_ssize_t offset, const void *base, Py_ssize_t nbytes) except -1:
    if lies_within(typemap, count, offset, nbytes):
        if <size_t> base + offset + typemap.true_lower_bound < FIRST_PAGE and count and typemap.size:
            raise MPIError(ERR_BUFFER, f"message: its first of {count} elements is at address "
                                       f"{<size_t> base + offset + typemap.true_lower_bound}, where no memory is")
        return 0
    # As Python's integers: what is too far may be farther than an address can tell.
    reach = (<object> count - 1) * typemap.extent
    start = <object> offset + typemap.true_lower_bound + min(0, reach)
    raise ValueError(f"message: {count} elements reach from byte {start} to {start + abs(reach) + typemap.true_extent}, "
                     f"but the buffer has {nbytes} bytes")


cdef class Allocation:
    """Aligned memory, freed with the object; in the shared heap, which has whole pages, where `shared` and there is one."""

    cdef void *memory
    cdef Py_ssize_t nbytes

    def __cinit__(self, Py_ssize_t nbytes, bint clear, bint shared, size_t alignment):
        cdef bint zeroed = False
        if shared:
            self.memory = take(<size_t> nbytes, &zeroed)
        # At least a byte, so that empty memory has an address of its own.
        if self.memory == NULL and posix_memalign(&self.memory, alignment, <size_t> max(nbytes, 1)) != 0:
            self.memory = NULL
            raise MemoryError(f"no memory for {nbytes} bytes")
        self.nbytes = nbytes
        if clear and not zeroed:
            memset(self.memory, 0, <size_t> nbytes)

    def __dealloc__(self):
        if holds(<size_t> self.memory, 1):
            give_back(self.memory)
        else:
            free(self.memory)

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self.memory, self.nbytes, 0, flags)


cdef class buffer:
    """
    A run of bytes: someone's memory, or its own (`allocate`).

    Speaks the buffer protocol as unsigned bytes and can be indexed and sliced like a memoryview, with step 1.
    """

    def __cinit__(self, *args):
        if args:
            self.device = acquire(args[0], &self.view, PyBUF_SIMPLE)
            self.held = True

    def __dealloc__(self):
        if self.held:
            PyBuffer_Release(&self.view)

    @staticmethod
    def allocate(nbytes: int, clear: bool = False) -> buffer:
        """New memory of `nbytes` bytes, aligned to 64; zeros when `clear`.

        Raises:
            ValueError: a negative size.
        """
        if nbytes < 0:
            raise ValueError(f"nbytes: a size expected, not {nbytes}")
        return allocate_buffer(nbytes, clear)

    @staticmethod
    def frombuffer(obj: Buffer, readonly: bool = False) -> buffer:
        """The contiguous memory of `obj`.

        Raises:
            BufferError: read-only memory without `readonly`, or memory that is not contiguous.
        """
        cdef buffer made = buffer.__new__(buffer)
        made.device = acquire(obj, &made.view, PyBUF_SIMPLE if readonly else PyBUF_WRITABLE)
        made.held = True
        made.view.readonly = readonly
        return made

    @staticmethod
    def fromaddress(address: int, nbytes: int, readonly: bool = False) -> buffer:
        """The `nbytes` bytes at `address`, which the caller keeps alive."""
        if nbytes < 0:
            raise ValueError(f"nbytes: a size expected, not {nbytes}")
        if address < 0 or (nbytes > 0 and not address):
            raise ValueError(f"address: {nbytes} bytes at address {address}")
        return buffer_over(<size_t> PyLong_AsVoidPtr(address), nbytes, None, readonly)

    @property
    def address(self) -> int:
        """Address of the first byte; 0 for an empty buffer."""
        return <size_t> self.view.buf

    @property
    def obj(self) -> Buffer | None:
        """The object whose memory this is, or None."""
        return self.view.obj if self.held else None

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.view.len

    @property
    def readonly(self) -> bool:
        """Whether the memory may not be written."""
        return bool(self.view.readonly)

    @property
    def format(self) -> str:
        """Format of an element, as of the struct module."""
        return "B" if self.view.format == NULL else self.view.format.decode()

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return 1 if not self.held else self.view.itemsize

    def cast(self, format: str, shape: list[int] | tuple[int, ...] = ...) -> memoryview:
        """The memory as a memoryview of another format or shape."""
        check_reachable(self.device)
        if shape is ...:
            return memoryview(self).cast(format)
        return memoryview(self).cast(format, shape)

    def tobytes(self, order: str | None = None) -> bytes:
        """A copy of the memory."""
        check_reachable(self.device)
        return PyBytes_FromStringAndSize(<char *> self.view.buf, self.view.len)

    def toreadonly(self) -> buffer:
        """The same memory as a read-only buffer."""
        cdef buffer made = buffer.frombuffer(self.obj if self.obj is not None else self, readonly=True)
        made.view.buf, made.view.len = self.view.buf, self.view.len
        return made

    def release(self) -> None:
        """Let go of the memory: the buffer is empty from now on.  Views and slices of it keep it until the last one goes."""
        self.let_go()

    cdef int let_go(self) except -1:
        if self.held and self.exports:
            self.outlasting = self.view
        elif self.held:
            PyBuffer_Release(&self.view)
        memset(&self.view, 0, sizeof(Py_buffer))
        self.held = False
        self.device = 0
        return 0

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self.view.buf, self.view.len, self.view.readonly, flags)
        self.exports += 1

    def __releasebuffer__(self, Py_buffer *view):
        self.exports -= 1
        if self.exports == 0:
            PyBuffer_Release(&self.outlasting)   # of nothing, unless it was released meanwhile

    def __len__(self) -> int:
        return self.view.len

    def __getitem__(self, item: int | slice) -> int | buffer:
        check_reachable(self.device)
        cdef Py_ssize_t start, length
        if isinstance(item, slice):
            start, length = part(self, item)
            return buffer_over(<size_t> self.view.buf + start, length, self, self.view.readonly)
        return (<unsigned char *> self.view.buf)[position(self, item)]

    def __setitem__(self, item: int | slice, value: int | Buffer) -> None:
        check_reachable(self.device)
        cdef Py_ssize_t start, length
        cdef buffer source
        if self.view.readonly:
            raise TypeError("the buffer is read-only")
        if not isinstance(item, slice):
            (<unsigned char *> self.view.buf)[position(self, item)] = <unsigned char> value
            return
        start, length = part(self, item)
        if isinstance(value, int):
            memset(<char *> self.view.buf + start, <unsigned char> value, <size_t> length)
            return
        source = value if isinstance(value, buffer) else buffer.frombuffer(value, readonly=True)
        if source.view.len != length:
            raise ValueError(f"{length} bytes expected, not {source.view.len}")
        memmove(<char *> self.view.buf + start, source.view.buf, <size_t> length)


cdef Py_ssize_t position(buffer within, item) except -1:
    if not hasattr(item, "__index__"):
        raise TypeError(f"index: an integer or a slice expected, not {type(item).__name__}")
    cdef Py_ssize_t index = PyNumber_Index(item)
    if index < 0:
        index += within.view.len
    if index < 0 or index >= within.view.len:
        raise IndexError(f"index {item} is out of range for {within.view.len} bytes")
    return index


cdef tuple part(buffer within, slice item):
    start, stop, step = item.indices(within.view.len)
    if step != 1:
        raise IndexError(f"slice: a step of 1 expected, not {step}")
    return start, max(stop - start, 0)


cdef int check_reachable(int device) except -1:
    if device not in (0, DEVICE_CPU, DEVICE_CUDA_HOST, DEVICE_ROCM_HOST, DEVICE_CUDA_MANAGED):
        raise BufferError(f"the memory is on a device (DLPack type {device}) that this processor can't reach")
    return 0


cdef buffer buffer_over(size_t address, Py_ssize_t nbytes, object owner, bint readonly):
    cdef buffer made = buffer.__new__(buffer)
    if owner is not None:
        PyBuffer_FillInfo(&made.view, owner, <void *> address, nbytes, readonly, PyBUF_SIMPLE)
        made.held = True
        if isinstance(owner, buffer):
            (<buffer> owner).exports += 1
    else:
        made.view.buf = <void *> address
        made.view.len = nbytes
        made.view.itemsize = 1
        made.view.readonly = readonly
    return made


cdef buffer allocate_buffer(Py_ssize_t nbytes, bint clear):
    cdef Allocation allocation = Allocation(nbytes, clear, False, ALIGNMENT)
    return buffer_over(<size_t> allocation.memory, nbytes, allocation, False)


cdef buffer allocate_shared(Py_ssize_t nbytes, bint clear):
    cdef Allocation allocation = Allocation(nbytes, clear, nbytes > 0, page_size)
    return buffer_over(<size_t> allocation.memory, nbytes, allocation, False)


cdef size_t wished_alignment(object info) except 0:
    if not info:
        return 1
    from ompy.mca.window_hints import alignment

    try:
        return alignment(info.Get("mpi_minimum_memory_alignment") or "1")
    except ValueError:
        return 1


# What `Alloc_mem` gave out: address -> Allocation.  The program frees it by `Free_mem`, not by dropping the buffer.
cdef dict allocations = {}


def Alloc_mem(size: int, info=None) -> buffer:
    """Memory for messages and windows, `size` bytes (MPI-4.1, 9.2).  Free it with `Free_mem`.

    From 16 KiB on it lies in the shared heap, where peers on this host read and write large messages in place.

    Parameters:
        info: of its hints, `mpi_minimum_memory_alignment`, up to a page, is met.

    Raises:
        Exception: ERR_ARG for a negative size.
        MemoryError: no memory.
    """
    if size < 0:
        raise MPIException(ERR_ARG, f"size: a number of bytes expected, not {size}")
    cdef Allocation allocation = Allocation(size, False, size >= SMALLEST_SHARED, max(ALIGNMENT, wished_alignment(info)))
    allocations[<size_t> allocation.memory] = allocation
    return buffer_over(<size_t> allocation.memory, size, None, False)


def Free_mem(mem: buffer) -> None:
    """Free memory of `Alloc_mem` (MPI-4.1, 9.2); the buffer is empty from now on.

    Raises:
        Exception: ERR_BASE for memory that `Alloc_mem` did not give out.
    """
    cdef Py_buffer view
    acquire(mem, &view, PyBUF_SIMPLE)
    address = <size_t> view.buf
    PyBuffer_Release(&view)
    if address and allocations.pop(address, None) is None:
        raise MPIException(ERR_BASE, f"mem: memory of Alloc_mem expected, not address {address:#x}")
    forget_registrations(address, len(mem))
    if isinstance(mem, buffer):
        (<buffer> mem).let_go()                  # as C programs free memory, whoever still looks at it
    else:
        mem.release()


memory = buffer
