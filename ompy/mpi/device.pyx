# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
# cython: auto_pickle=False
"""DLPack (version 0 and 1) and the CUDA array interface (version 3), as sources of Py_buffer views.

Structures: https://dmlc.github.io/dlpack/latest/c_api.html and
https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html
"""

from cpython.buffer cimport PyBUF_FORMAT, PyBUF_WRITABLE, PyBuffer_FillInfo
from cpython.long cimport PyLong_AsVoidPtr
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef enum:
    CODE_INT = 0
    CODE_UINT = 1
    CODE_FLOAT = 2
    CODE_COMPLEX = 5
    CODE_BOOL = 6
    FLAG_READ_ONLY = 1

cdef struct Tensor:
    void *data
    int32_t device_type
    int32_t device_id
    int32_t ndim
    uint8_t code
    uint8_t bits
    uint16_t lanes
    int64_t *shape
    int64_t *strides
    uint64_t byte_offset

cdef struct ManagedTensor:
    Tensor tensor
    void *manager
    void *deleter

cdef struct VersionedTensor:
    uint32_t major
    uint32_t minor
    void *manager
    void *deleter
    uint64_t flags
    Tensor tensor


cdef bint speaks_dlpack(object source) noexcept:
    return hasattr(source, "__dlpack__")


cdef bint speaks_cuda(object source) noexcept:
    return hasattr(source, "__cuda_array_interface__")


cdef int acquire_dlpack(object source, Py_buffer *view, int flags) except -1:
    cdef Tensor *tensor
    cdef VersionedTensor *versioned
    cdef bint readonly = False
    cdef bint has_version
    cdef int device_type, _device_number
    device_type, _device_number = source.__dlpack_device__()
    # A producer with a queue of its own is told not to wait for it: MPI reads memory, it follows no stream.
    options = {} if device_type == DEVICE_CPU else {"stream": -1}
    try:
        capsule = source.__dlpack__(max_version=(1, 0), copy=False, **options)
    except TypeError:
        capsule = source.__dlpack__(**options)
    # A producer may answer with less than what was asked for.
    has_version = PyCapsule_IsValid(capsule, "dltensor_versioned")
    if not has_version and not PyCapsule_IsValid(capsule, "dltensor"):
        raise BufferError("dlpack: __dlpack__ gave no capsule named 'dltensor_versioned' or 'dltensor'")
    if has_version:
        versioned = <VersionedTensor *> PyCapsule_GetPointer(capsule, "dltensor_versioned")
        if versioned.major < 1:
            raise BufferError(f"dlpack: version 1 expected, not {versioned.major}.{versioned.minor}")
        tensor = &versioned.tensor
        readonly = versioned.flags & FLAG_READ_ONLY
    else:
        tensor = &(<ManagedTensor *> PyCapsule_GetPointer(capsule, "dltensor")).tensor
    check_shape(tensor)
    if not (has_order(tensor, False) or has_order(tensor, True)):
        raise BufferError("dlpack: the memory is not contiguous")
    if readonly and flags & PyBUF_WRITABLE:
        raise BufferError("dlpack: the memory is read-only")
    if tensor.data == NULL and tensor_size(tensor) > 0:
        raise BufferError(f"dlpack: {tensor_size(tensor)} bytes at address 0")
    PyBuffer_FillInfo(view, capsule, <char *> tensor.data + tensor.byte_offset, tensor_size(tensor), readonly, flags)
    if flags & PyBUF_FORMAT:
        set_format(view, tensor_kind(tensor), (tensor.bits * tensor.lanes + 7) // 8)
    return device_type


cdef int check_shape(Tensor *tensor) except -1:
    cdef int i
    if tensor.ndim < 0:
        raise BufferError(f"dlpack: negative number of dimensions {tensor.ndim}")
    if tensor.ndim > 0 and tensor.shape == NULL:
        raise BufferError("dlpack: the shape is missing")
    for i in range(tensor.ndim):
        if tensor.shape[i] < 0:
            raise BufferError(f"dlpack: negative extent {tensor.shape[i]} of dimension {i}")
        if tensor.strides != NULL and tensor.strides[i] < 0:
            raise BufferError(f"dlpack: negative stride {tensor.strides[i]} of dimension {i}")
    return 0


cdef bint has_order(Tensor *tensor, bint first_index_fastest) noexcept:
    cdef int i, dimension
    cdef int64_t expected = 1
    if tensor.strides == NULL:
        return not first_index_fastest or tensor.ndim <= 1
    for i in range(tensor.ndim):
        dimension = i if first_index_fastest else tensor.ndim - 1 - i
        if tensor.shape[dimension] > 1 and tensor.strides[dimension] != expected:
            return False
        expected *= tensor.shape[dimension]
    return True


cdef Py_ssize_t tensor_size(Tensor *tensor) noexcept:
    cdef Py_ssize_t size = (<Py_ssize_t> tensor.bits * tensor.lanes + 7) // 8
    cdef int i
    for i in range(tensor.ndim):
        size *= tensor.shape[i]
    return size


cdef char tensor_kind(Tensor *tensor) noexcept:
    # Two lanes of a floating type are how producers without complex numbers of their own pass them.
    if tensor.lanes != 1:
        return c"c" if tensor.code == CODE_FLOAT and tensor.lanes == 2 else c"V"
    if tensor.code == CODE_BOOL:
        return c"b"
    if tensor.code == CODE_INT:
        return c"i"
    if tensor.code == CODE_UINT:
        return c"u"
    if tensor.code == CODE_FLOAT:
        return c"f"
    return c"c" if tensor.code == CODE_COMPLEX else c"V"


# Kind and bytes of an item -> format of the buffer protocol; the table keeps the characters alive.
cdef dict FORMATS = {
    ("b", 1): b"?",
    ("i", 1): b"b", ("i", 2): b"h", ("i", 4): b"i", ("i", 8): b"l",
    ("u", 1): b"B", ("u", 2): b"H", ("u", 4): b"I", ("u", 8): b"L",
    ("f", 2): b"e", ("f", 4): b"f", ("f", 8): b"d", ("f", 16): b"g",
    ("c", 4): b"Ze", ("c", 8): b"Zf", ("c", 16): b"Zd", ("c", 32): b"Zg",
    ("V", 1): b"B",
}


cdef int set_format(Py_buffer *view, char kind, Py_ssize_t itemsize) except -1:
    # What has no format is handed on as bytes.
    known = (chr(kind), itemsize)
    if known not in FORMATS:
        known = ("V", 1)
    view.format = <char *> <bytes> FORMATS[known]
    view.itemsize = known[1]
    return 0


cdef int acquire_cuda(object source, Py_buffer *view, int flags) except -1:
    cdef dict interface = source.__cuda_array_interface__
    cdef tuple data = interface["data"]
    cdef str typestr = interface["typestr"]
    cdef tuple shape = interface["shape"]
    cdef tuple strides = interface.get("strides")
    cdef list descr = interface.get("descr")
    cdef Py_ssize_t extent, size = 1
    cdef bint readonly
    name = "__cuda_array_interface__"
    address, readonly = data
    for extent in shape:
        size *= extent
    if address is None and size == 0:
        address = 0
    cdef void *memory = PyLong_AsVoidPtr(address)
    order, kind = typestr[0:1], ord(typestr[1:2])
    cdef Py_ssize_t itemsize = int(typestr[2:])
    if flags & PyBUF_FORMAT:
        if order == ">":
            raise BufferError(f"{name}: typestr {typestr!r} is not in this machine's byte order")
        if order not in ("<", "|"):
            raise BufferError(f"{name}: typestr {typestr!r} has no known byte order")
    if interface.get("mask") is not None:
        raise BufferError(f"{name}: masked arrays can't be messages")
    if size < 0:
        raise BufferError(f"{name}: negative size {size} of shape {shape}")
    if size > 0 and memory == NULL:
        raise BufferError(f"{name}: {size} items at address 0")
    if strides is not None and not (is_ordered(shape, strides, itemsize, False) or is_ordered(shape, strides, itemsize, True)):
        raise BufferError(f"{name}: the memory is not contiguous (shape {shape}, strides {strides}, item size {itemsize})")
    if readonly and flags & PyBUF_WRITABLE:
        raise BufferError(f"{name}: the memory is read-only")
    if descr is not None and (len(descr) != 1 or descr[0] != ("", typestr)):
        from warnings import warn
        warn(f"{name}: ignoring 'descr' key", RuntimeWarning, stacklevel=2)
    PyBuffer_FillInfo(view, source, memory, size * itemsize, readonly, flags)
    if flags & PyBUF_FORMAT:
        set_format(view, kind, itemsize)
    return DEVICE_CUDA


cdef bint is_ordered(tuple shape, tuple strides, Py_ssize_t itemsize, bint first_index_fastest) except -1:
    cdef Py_ssize_t expected = itemsize
    cdef Py_ssize_t extent, stride
    pairs = list(zip(shape, strides, strict=True))
    for extent, stride in (pairs if first_index_fastest else reversed(pairs)):
        if extent > 1 and stride != expected:
            return False
        expected *= extent
    return True
