# Memory of array libraries that do not speak Python's buffer protocol: DLPack and the CUDA array interface.
from cpython.buffer cimport Py_buffer

# Device types of DLPack.
cdef enum:
    DEVICE_CPU = 1
    DEVICE_CUDA = 2
    DEVICE_CUDA_HOST = 3
    DEVICE_ROCM_HOST = 11
    DEVICE_CUDA_MANAGED = 13

cdef bint speaks_dlpack(object source) noexcept
cdef bint speaks_cuda(object source) noexcept
# Both fill `view` as PyObject_GetBuffer would and return the device type; PyBuffer_Release gives the memory back.
cdef int acquire_dlpack(object source, Py_buffer *view, int flags) except -1
cdef int acquire_cuda(object source, Py_buffer *view, int flags) except -1
