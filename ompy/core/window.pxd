# Memory of each of a group's processes that the others may read and write (MPI-4.1, 12.2).  The MPI layer's `Win` is a
# handle on one of these.
#
#     communicator     private to the window: its messages meet none of the program's
#     sizes, units     bytes of each rank's memory, and bytes of one displacement there
#     addresses        where this process sees each rank's memory: its own, and in a shared window everybody's; else 0
from ompy.core.communicator cimport Communicator
from ompy.core.typemap cimport Typemap

# Flavors and models; values follow Open MPI's `mpi.h`.
cdef enum:
    FLAVOR_CREATE = 1
    FLAVOR_ALLOCATE = 2
    FLAVOR_DYNAMIC = 3
    FLAVOR_SHARED = 4
    MODEL_SEPARATE = 0
    MODEL_UNIFIED = 1

# Assertions of synchronisation calls, and kinds of locks.
cdef enum:
    ASSERT_NOCHECK = 1
    ASSERT_NOPRECEDE = 2
    ASSERT_NOPUT = 4
    ASSERT_NOSTORE = 8
    ASSERT_NOSUCCEED = 16
    LOCK_EXCLUSIVE = 1
    LOCK_SHARED = 2


cdef class Window:
    cdef readonly Communicator communicator
    cdef readonly int flavor
    cdef readonly int model
    cdef readonly size_t base                    # of this process's memory; 0 in a dynamic window
    cdef readonly Py_ssize_t size                # of this process's memory, in bytes
    cdef readonly Py_ssize_t unit                # of this process's displacements, in bytes
    cdef Py_ssize_t *sizes
    cdef Py_ssize_t *units
    cdef size_t *addresses
    cdef public object module                    # OscModule: who serves the window
    cdef public object parent                    # the communicator that it is made from, until it is served: to agree over
    cdef public object memory                    # keeps this process's memory alive
    cdef public dict attributes                  # what the MPI layer keeps: keyvals, error handler, info
    cdef public str name
    cdef readonly bint freed

    # Raises ERR_DISP or ERR_RMA_RANGE unless the elements lie within the target's memory.  A dynamic window's ranges are
    # known to the target alone.
    cdef int check_range(self, int target, Py_ssize_t displacement, Py_ssize_t count, Typemap typemap) except -1
