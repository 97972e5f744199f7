# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""What the ranks of a file share while they move its bytes.  See `window.pxd`."""
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

from ompy.core.communicator cimport Communicator
from ompy.mca.agreement cimport agree, gather, shared_memory
from ompy.mca.coll cimport BARRIER, CollectiveCall, CollTable
from ompy_fcoll_two_phase.fingerprint cimport Fingerprint

from ompy.core.errors import MPIError


cdef class Window:
    """See `window.pxd`.

    Parameters:
        communicator: the file's.
    """

    def __init__(self, Communicator communicator not None):
        self.communicator = communicator
        self.fingerprint = Fingerprint()
        self.rows = <Row *> malloc(communicator.size * sizeof(Row))
        if self.rows == NULL:
            raise MemoryError()

    def __dealloc__(self):
        free(self.rows)

    cdef bint has_room(self, Py_ssize_t size) noexcept:
        return self.segment is not None and size <= self.size

    cdef bint make_room(self, Py_ssize_t size) except -1:
        if self.has_room(size):
            return True
        self.close()
        try:
            self.segment = shared_memory(self.communicator, "ompy-two-phase", size + PAGE)
        except MPIError:
            return False
        problem = None
        try:
            self.fingerprint.prepare(size + PAGE)
        except MemoryError as error:
            problem = error
        try:
            agree(self.communicator, problem, "no memory")
        except Exception:
            self.close()
            return False
        self.size = size
        return True

    cdef int gather_rows(self, const Row *mine) except -1:
        return gather(self.communicator, <const int64_t *> mine, <int64_t *> self.rows, sizeof(Row) // sizeof(int64_t))

    cdef int meet(self) except -1:
        cdef CollectiveCall call = CollectiveCall.__new__(CollectiveCall)
        return (<CollTable> self.communicator.coll).of(BARRIER).run(BARRIER, call, self.communicator)

    cdef int close(self) except -1:
        if self.segment is not None:
            self.segment.close()
            self.segment = None
        return 0
