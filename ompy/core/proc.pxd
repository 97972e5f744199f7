# The processes that this one may talk to.  A Proc is made at first contact, never copied, and compared by identity.

cdef class Proc:
    cdef readonly int index                      # position in this process's table, the number that groups store
    cdef readonly int rank                       # rank in the world of its job
    cdef readonly str job                        # name of its job (the PMI key-value space)
    cdef readonly bint is_self
    cdef readonly bint is_local                  # same host: shared memory is worth a try
    cdef readonly str host
    cdef readonly int pid
    cdef readonly dict card                      # what the peer published, component name -> bytes
    cdef readonly object circle                  # whose members share the secret that it is known by (`ompy/core/circle.py`)
    cdef readonly int number                     # in its circle
    cdef public object routes                    # bml's PeerRoutes, or None before first contact
    cdef public object pml                       # the PML's state for this peer
    cdef readonly object failure                 # None, or the exception that ended contact with it

    # Contact has ended; the first reason stays.
    cpdef int fail(self, object error) except -1


cdef class ProcTable:
    cdef list procs                              # index -> Proc or None
    cdef object resolver                         # index -> Proc, asked at first contact

    cdef Proc at(self, int index)
    cpdef int extend(self, int count) except -1  # room for `count` more; returns the first new index
    cpdef list known(self)                       # the Procs that were met so far
    cpdef int forget(self, int index) except -1  # it is disconnected; its index is nobody's for ever
    cpdef int leave(self) except -1
    cpdef int clear(self) except -1


cdef ProcTable table
# Processes with which contact has ended: two looks that differ show that there are more.
cdef int failures
