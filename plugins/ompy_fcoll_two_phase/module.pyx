# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Collective accesses put together in shared memory.  See `module.pxd`."""
from libc.stdint cimport INT64_MAX, int64_t
from libc.stdlib cimport free as free_memory, malloc
from libc.string cimport memset

from ompy.core.communicator cimport Communicator
from ompy.core.file cimport MODE_UNIQUE_OPEN, Access, File
from ompy.mca.agreement cimport gather
from ompy.mca.fbtl cimport FbtlModule
from ompy.mca.fcoll cimport INTERFACE, FcollModule
from ompy_fcoll_two_phase.exchange cimport Exchange, Manner, describe, failure_of
from ompy_fcoll_two_phase.message_exchange cimport MessageExchange
from ompy_fcoll_two_phase.window cimport PAGE, Row, Window

from ompy.core.errors import code_of

interface = INTERFACE

cdef enum:
    # Pieces from this length on are read straight to memory, with gaps that go nowhere, by fbtl components that can.
    TINY_PIECE = 2048
    # Pieces are copied to mapped pages of the file by whose they are if they are whole lines of the cache, or from this length
    # on; else ranks would take too many lines from one another.
    LINE = 64
    COPIED_PIECE = 512
    # Of a part of the file so long that no cache holds it, each byte should come from memory once.
    CACHED = 16 << 20


cdef class TwoPhase(FcollModule):
    """One file's collective accesses.

    Parameters:
        file: the file, open.
        long_piece: bytes from which on pieces go one by one.
        read_twice: bytes of the file that several ranks may read, each for itself.
        shared: through memory, else by messages.
    """

    def __init__(self, File file not None, Py_ssize_t long_piece, Py_ssize_t read_twice, bint shared):
        FcollModule.__init__(self, "two_phase", file)
        self.long_piece = long_piece
        self.read_twice = read_twice
        self.window = Window(file.communicator, shared)
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
        cdef Communicator comm = self.file.communicator
        cdef Exchange exchange
        cdef Plan mine
        cdef int64_t start = INT64_MAX, end = 0
        cdef int rank
        if access.view.plain and self.file.hints.word("romio_cb_write" if access.writing else "romio_cb_read") != "enable":
            # Every rank has long pieces, and nobody waits for anybody.
            return fbtl.pwritev(access) if access.writing else fbtl.preadv(access)
        self.window.meet_hosts()
        memset(&mine, 0, sizeof(Plan))
        mine.first = INT64_MAX
        try:
            if access.problem is None:
                self.plan(access, &mine)
        except BaseException as error:
            access.refuse(error)
        mine.failed = 0 if access.problem is None else code_of(access.problem)
        gather(comm, <const int64_t *> &mine, <int64_t *> self.plans, sizeof(Plan) // sizeof(int64_t))
        for rank in range(comm.size):
            if self.plans[rank].failed:
                raise access.problem or failure_of(self.file, access, rank, self.plans[rank].failed)
            start = min(start, self.plans[rank].first)
            end = max(end, self.plans[rank].end)
        if not self.is_gathered(&mine, access.writing, start, end):
            return fbtl.pwritev(access) if access.writing else fbtl.preadv(access)
        if not self.window.make_room(self.plans[0].window, self.plans[0].part):
            return fbtl.pwritev(access) if access.writing else fbtl.preadv(access)
        exchange = (Exchange if self.window.shared else MessageExchange)(self.window, self.file, access)
        exchange.manner = self.manner(&mine)
        return exchange.run(start, end, self.plans[0].window, self.is_told(start, end))

    cdef int plan(self, Access access, Plan *mine) except -1:
        cdef Communicator comm = self.file.communicator
        cdef FbtlModule fbtl = self.file.parts["fbtl"]
        cdef Row row
        cdef Py_ssize_t first = 0, piece
        cdef char *place = NULL
        mine.nbytes = access.nbytes
        word = self.file.hints.word("romio_cb_write" if access.writing else "romio_cb_read")
        mine.traits |= GATHERED if word == "enable" else APART if word == "disable" else 0
        word = self.file.hints.word("romio_ds_write")
        mine.traits |= LOCKED if word == "enable" else 0
        if word == "automatic" and self.file.mode & MODE_UNIQUE_OPEN:
            mine.traits |= ALONE
        # One lock at a time in the whole job: two jobs whose ranks held a part each would wait for one another.
        mine.movers = 1 if mine.traits & LOCKED else min(self.file.hints.number("cb_nodes") or self.window.worth, comm.size)
        mine.part = mine.window = self.file.hints.number("cb_buffer_size")
        if not self.window.shared:
            mine.window *= mine.movers
        if access.view.ordered or access.nbytes == 0:
            mine.traits |= ORDERED
        if access.nbytes == 0:
            mine.traits |= MAPPED
        if not access.detached and self.file.pending == 0:
            mine.traits |= QUIET
        if self.file.readable:
            mine.traits |= READABLE
        if access.nbytes > 0:
            mine.end = access.view.reach(access.position, access.nbytes, &first) + first
            mine.first = first
            if not access.view.contiguous:
                piece = access.view.cursor(access.position).stretch(&place)
                if piece < min(access.nbytes, self.long_piece):
                    mine.traits |= SHORT
                if fbtl.is_mapped(access) and (
                        not access.writing or piece >= COPIED_PIECE or not (piece % LINE or first % LINE)):
                    mine.traits |= MAPPED
                if piece < min(access.nbytes, TINY_PIECE) or not access.typemap.contiguous \
                        or self.file.hints.word("romio_ds_read") == "disable":
                    mine.traits |= TINY
        if mine.traits & ORDERED and access.typemap.contiguous and self.window.has_room(mine.window, mine.part) \
                and mine.end - (first - first % PAGE) <= mine.window:
            mine.traits |= WHOLE
            if access.writing and access.nbytes > 0:
                memset(&row, 0, sizeof(Row))
                describe(
                    access.view.cursor(access.position), access.nbytes, self.window.fingerprint, first - first % PAGE, &row)
                mine.fingerprint = row.fingerprint
        return 0

    cdef bint is_gathered(self, const Plan *mine, bint writing, int64_t start, int64_t end) noexcept:
        cdef int64_t reaches = 0, total = 0
        cdef bint short_ones = False, tiny_ones = False, copies = True
        cdef int rank
        for rank in range(self.file.communicator.size):
            if not self.plans[rank].traits & ORDERED:
                return False
            short_ones = short_ones or self.plans[rank].traits & SHORT
            tiny_ones = tiny_ones or self.plans[rank].traits & TINY
            copies = copies and self.plans[rank].traits & MAPPED
            total += self.plans[rank].nbytes
            if self.plans[rank].nbytes > 0:
                reaches += self.plans[rank].end - self.plans[rank].first
        if mine.traits & (GATHERED | APART):
            return mine.traits & GATHERED != 0
        if copies:
            return False
        if writing or not short_ones:
            return short_ones
        if reaches - (end - start) < self.read_twice:
            return False
        # Through the window each byte is copied twice, many to another core.  Who reads gaps along copies once, on his own.
        return tiny_ones or not self.window.shared or reaches > 2 * total or end - start > CACHED

    cdef bint is_told(self, int64_t start, int64_t end) noexcept:
        cdef Plan *plan
        cdef Row *row
        cdef int64_t origin = start - start % PAGE
        cdef int rank
        if end - origin > self.plans[0].window:
            return False
        for rank in range(self.file.communicator.size):
            plan = &self.plans[rank]
            row = &self.window.rows[rank]
            if not plan.traits & WHOLE:
                return False
            memset(row, 0, sizeof(Row))
            row.first, row.end, row.nbytes, row.following = plan.first, plan.end, plan.nbytes, INT64_MAX
            if plan.fingerprint:
                row.fingerprint = self.window.fingerprint.moved(plan.fingerprint, plan.first - plan.first % PAGE - origin)
        return True

    cdef Manner manner(self, const Plan *mine) noexcept:
        cdef Manner manner
        cdef int size = self.file.communicator.size, rank
        cdef int64_t needed
        manner.locks = mine.traits & LOCKED != 0
        manner.movers = <int> mine.movers
        needed = READABLE if manner.locks else READABLE | QUIET
        manner.fills_holes = mine.traits & (LOCKED | ALONE) != 0
        for rank in range(size):
            if self.plans[rank].traits & needed != needed:
                manner.fills_holes = False
        return manner
