# The job's byte transports as a wire: node numbers are ranks in the job.
#
#     message that fits a packet      sendi: one active message, tag TAG_PORTALS
#     longer, a BTL can get           header as an offer; the receiving kernel matches, then gets into the descriptor: one copy
#     longer, otherwise               opening and fragments of max_send_size
from libc.stdint cimport uint32_t

from ompy.mca.bml cimport Bml

from ompy_puma.kernel cimport QKernel
from ompy_puma.link cimport Link, Wire

cdef enum:
    TAG_PORTALS = 16

cdef class BtlWire(Wire):
    cdef readonly Bml bml
    cdef bint private
    cdef object receiver

# The kernel of this process over these BTLs: made at the first call, the same at every further one.  Every user makes a
# Process of its own on it (`create_context`), with a portal table of its own.  `node`: this process's rank in the job.
# `private`: the BML is not the job's own.
cpdef QKernel kernel_over(Bml bml, uint32_t node, bint private=*)
# The BTLs are about to close.
cpdef int forget_kernel(QKernel kernel) except -1
