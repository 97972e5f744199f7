# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""Collective accesses put together in shared memory.  See `module.pxd`."""
from libc.stdint cimport INT64_MAX, int64_t
from libc.stdlib cimport free as free_memory, malloc
from libc.string cimport memset

from ompy.core.communicator cimport Communicator
from ompy.core.file cimport MODE_UNIQUE_OPEN, Access, File
from ompy.mca.agreement cimport gather
from ompy.mca.fbtl cimport FbtlModule
from ompy.mca.fcoll cimport INTERFACE, FcollModule
from ompy_fcoll_two_phase.exchange cimport Exchange, Manner
from ompy_fcoll_two_phase.window cimport Window

interface = INTERFACE


cdef class TwoPhase(FcollModule):
    """One file's collective accesses.

    Parameters:
        file: the file, open.
        long_piece: bytes from which on pieces go one by one.
        read_twice: bytes of the file that several ranks may read, each for itself.
    """

    def __init__(self, File file not None, Py_ssize_t long_piece, Py_ssize_t read_twice):
        FcollModule.__init__(self, "two_phase", file)
        self.long_piece = long_piece
        self.read_twice = read_twice
        self.window = Window(file.communicator)
        self.plans = <Plan *> malloc(file.communicator.size * sizeof(Plan))
        if self.plans == NULL:
            raise MemoryError()

    def __dealloc__(self):
        free_memory(self.plans)

    cpdef int free(self) except -1:
        """The file is about to be closed."""
        FcollModule.free(self)
        return self.window.close()

    cpdef Py_ssize_t read_all(self, Access access) except -1:
        """From the file to every rank's memory; returns this rank's bytes of data."""
        return self.move_all(access)

    cpdef Py_ssize_t write_all(self, Access access) except -1:
        """From every rank's memory to the file; returns this rank's bytes of data."""
        return self.move_all(access)

    cdef Py_ssize_t move_all(self, Access access) except -1:
        cdef FbtlModule fbtl = self.file.parts["fbtl"]
        cdef Exchange exchange
        cdef int64_t start = INT64_MAX, end = 0
        cdef int rank
        self.plan(access)
        for rank in range(self.file.communicator.size):
            start = min(start, self.plans[rank].first)
            end = max(end, self.plans[rank].end)
        if not self.is_gathered(access.writing, start, end) or not self.window.make_room(self.plans[0].window):
            return fbtl.pwritev(access) if access.writing else fbtl.preadv(access)
        exchange = Exchange(self.window, self.file, access)
        exchange.manner = self.manner()
        return exchange.run(start, end, self.plans[0].window)

    cdef int plan(self, Access access) except -1:
        cdef Communicator comm = self.file.communicator
        cdef Plan mine
        cdef Py_ssize_t first = 0
        cdef char *place = NULL
        memset(&mine, 0, sizeof(Plan))
        mine.first = INT64_MAX
        mine.nbytes = access.nbytes
        mine.window = self.file.hints.number("cb_buffer_size")
        if access.view.ordered or access.nbytes == 0:
            mine.traits |= ORDERED
        if not access.detached and self.file.pending == 0:
            mine.traits |= QUIET
        if access.nbytes > 0:
            mine.end = access.view.reach(access.position, access.nbytes, &first) + first
            mine.first = first
            if not access.view.contiguous and access.view.cursor(access.position).stretch(&place) < \
                    min(access.nbytes, self.long_piece):
                mine.traits |= SHORT
        gather(comm, <const int64_t *> &mine, <int64_t *> self.plans, sizeof(Plan) // sizeof(int64_t))
        return 0

    cdef bint is_gathered(self, bint writing, int64_t start, int64_t end) except -1:
        cdef str word = self.file.hints.word("romio_cb_write" if writing else "romio_cb_read")
        cdef int64_t reaches = 0
        cdef bint short_ones = False
        cdef int rank
        for rank in range(self.file.communicator.size):
            if not self.plans[rank].traits & ORDERED:
                return False
            short_ones = short_ones or self.plans[rank].traits & SHORT
            if self.plans[rank].nbytes > 0:
                reaches += self.plans[rank].end - self.plans[rank].first
        if word != "automatic":
            return word == "enable"
        return short_ones and (writing or reaches - (end - start) >= self.read_twice)

    cdef Manner manner(self):
        cdef Manner manner
        cdef int size = self.file.communicator.size, rank
        word = self.file.hints.word("romio_ds_write")
        manner.locks = word == "enable"
        # One lock at a time in the whole job: two jobs whose ranks held a part each would wait for one another.
        manner.movers = 1 if manner.locks else min(self.file.hints.number("cb_nodes") or size, size)
        manner.fills_holes = manner.locks or word == "automatic" and self.file.mode & MODE_UNIQUE_OPEN != 0
        for rank in range(size):
            if not manner.locks and not self.plans[rank].traits & QUIET:
                manner.fills_holes = False
        return manner
