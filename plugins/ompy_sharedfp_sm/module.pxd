# The shared pointer as one number in memory that all ranks have mapped; a rank alone keeps it in its own.
from libc.stdint cimport int64_t

from ompy.core.segment cimport Segment
from ompy.mca.sharedfp cimport SharedfpModule


cdef class SharedMemory(SharedfpModule):
    cdef Segment segment
    cdef int64_t own
    cdef int64_t *number
