# The bytes of a target's elements, piece by piece, and whether they are attached (MPI-4.1, 12.2.4).
#
#     attached      |----- A -----|---- B ----|          |---- C ----|
#     elements               ###########                   ####
#     pieces                 1    2                        3          a block is cut where a stretch ends
#
# What lies between the elements is none of them: it need not be attached, nor be memory.
from libc.stdint cimport uint64_t

from ompy.core.convertor cimport Convertor
from ompy.core.typemap cimport Typemap


cdef class Pieces:
    cdef Convertor convertor
    cdef uint64_t address                        # of what lies together next
    cdef Py_ssize_t length                       # 0: there is nothing left
    cdef Py_ssize_t position                     # of its data among those of all elements

    # Goes on behind what of it lies in the stretch, where it begins; how many bytes that are.
    cdef Py_ssize_t leave(self, uint64_t start, uint64_t size) noexcept
    cdef void look(self) noexcept


cdef Pieces pieces_of(Py_ssize_t displacement, Py_ssize_t count, Typemap typemap)
# ERR_RMA_RANGE unless a rank has attached all of them.  `holding(address)` is the stretch that an address lies in, as
# `Attachments.holding`; it is called, in order, for the first piece of those that follow one another in one stretch.
cdef int require_attached(int rank, Py_ssize_t displacement, Py_ssize_t count, Typemap typemap, object holding) except -1
# The same of what is this process's (`Attachments`, or what has `holding`).
cpdef int require_own(int rank, Py_ssize_t displacement, Py_ssize_t count, Typemap typemap, object attachments) except -1
