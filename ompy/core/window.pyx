# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""Windows as one-sided components see them.  See `window.pxd`."""
from cpython.mem cimport PyMem_Free, PyMem_Malloc

from ompy.core.overflow cimport add, multiply
from ompy.core.typemap cimport span

from ompy.core.errors import ERR_DISP, ERR_RMA_RANGE, MPIError


cdef class Window:
    """Memory that processes of a group open to one another (MPI-4.1, 12.2).

    Parameters:
        communicator: the window's own.
        flavor: FLAVOR_CREATE, ...
        sizes, units: bytes of each rank's memory, and bytes of one displacement there.
        addresses: where this process sees each rank's memory, 0 where it doesn't.
        memory: what keeps this process's memory alive.
    """

    def __init__(self, Communicator communicator not None, int flavor, sizes, units, addresses, memory=None):
        cdef int rank, ranks = communicator.size
        self.communicator = communicator
        self.flavor = flavor
        self.model = MODEL_UNIFIED
        self.sizes = <Py_ssize_t *> PyMem_Malloc(ranks * sizeof(Py_ssize_t))
        self.units = <Py_ssize_t *> PyMem_Malloc(ranks * sizeof(Py_ssize_t))
        self.addresses = <size_t *> PyMem_Malloc(ranks * sizeof(size_t))
        if self.sizes == NULL or self.units == NULL or self.addresses == NULL:
            raise MemoryError()
        for rank in range(ranks):
            self.sizes[rank] = sizes[rank]
            self.units[rank] = units[rank]
            self.addresses[rank] = addresses[rank]
        self.base = self.addresses[communicator.rank]
        self.size = self.sizes[communicator.rank]
        self.unit = self.units[communicator.rank]
        self.memory = memory
        self.attributes = {}
        self.name = ""

    def __dealloc__(self):
        PyMem_Free(self.sizes)
        PyMem_Free(self.units)
        PyMem_Free(self.addresses)

    cdef int check_range(self, int target, Py_ssize_t displacement, Py_ssize_t count, Typemap typemap) except -1:
        cdef Py_ssize_t first = 0, nbytes, start = 0, end = 0
        cdef Py_ssize_t size = self.sizes[target], unit = self.units[target]
        if displacement < 0 and self.flavor != FLAVOR_DYNAMIC:
            raise MPIError(ERR_DISP, f"target displacement {displacement} at rank {target} is negative")
        if self.flavor == FLAVOR_DYNAMIC or count == 0 or typemap.size == 0:
            return 0
        nbytes = span(typemap, count, &first)
        if multiply(displacement, unit, &start) or add(start, first, &start) or add(start, nbytes, &end) \
                or start < 0 or end > size:
            raise MPIError(
                ERR_RMA_RANGE,
                f"{count} elements at displacement {displacement} (of {unit} bytes) reach from byte "
                f"{displacement * <object> unit + first} to {displacement * <object> unit + first + nbytes} of the window at "
                f"rank {target}, which has {size} bytes",
            )
        return 0

    def segment(self, int rank):
        """(address in this process or 0, bytes, displacement unit) of a rank's memory."""
        if not 0 <= rank < self.communicator.size:
            raise IndexError(f"rank {rank} is not in this window of {self.communicator.size}")
        return self.addresses[rank], self.sizes[rank], self.units[rank]

    def mark_freed(self):
        """No operation may begin any more."""
        self.freed = True

    def __repr__(self):
        return f"<window {self.name or hex(self.communicator.context)} rank {self.communicator.rank} " \
               f"of {self.communicator.size}, {self.size} bytes>"
