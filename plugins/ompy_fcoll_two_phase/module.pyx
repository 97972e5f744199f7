# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""Collective writes put together in shared memory.  See `module.pxd`."""
from libc.stdint cimport INT64_MAX, int64_t
from libc.stdlib cimport free as free_memory, malloc
from libc.string cimport memset

from ompy.core.basic cimport BASIC_BYTE
from ompy.core.communicator cimport Communicator
from ompy.core.convertor cimport Convertor, Run
from ompy.core.file cimport MODE_UNIQUE_OPEN, Access, File
from ompy.core.typemap cimport predefined
from ompy.mca.agreement cimport gather, shared_memory
from ompy.mca.coll cimport BARRIER, CollectiveCall, CollTable
from ompy.mca.fbtl cimport FbtlModule
from ompy.mca.fcoll cimport INTERFACE, FcollModule

from ompy.core.errors import MPIError, error_string

interface = INTERFACE

cdef enum:
    PLAN_WORDS = sizeof(Plan) // 8
    ROW_WORDS = sizeof(Row) // 8
    PAGE = 4096


cdef extern from *:
    """
    #include <stdint.h>
    /* A number that tells nothing of the offsets around it: the finaliser of splitmix64. */
    static inline int64_t ompy_mix(int64_t offset) {
        uint64_t word = (uint64_t) offset + 0x9E3779B97F4A7C15u;
        word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9u;
        word = (word ^ (word >> 27)) * 0x94D049BB133111EBu;
        return (int64_t) (word ^ (word >> 31));
    }
    """
    int64_t mix "ompy_mix"(int64_t offset) noexcept nogil


cdef class TwoPhase(FcollModule):
    """One file's collective accesses.

    Parameters:
        file: the file, open.
        long_piece: bytes from which on pieces are written one by one.
    """

    def __init__(self, File file not None, Py_ssize_t long_piece):
        FcollModule.__init__(self, "two_phase", file)
        self.long_piece = long_piece
        self.plans = <Plan *> malloc(file.communicator.size * sizeof(Plan))
        self.rows = <Row *> malloc(file.communicator.size * sizeof(Row))
        if self.plans == NULL or self.rows == NULL:
            raise MemoryError()

    def __dealloc__(self):
        free_memory(self.plans)
        free_memory(self.rows)

    cpdef int free(self) except -1:
        """The file is about to be closed."""
        FcollModule.free(self)
        if self.segment is not None:
            self.segment.close()
            self.segment = None
        return 0

    cpdef Py_ssize_t read_all(self, Access access) except -1:
        """Each rank reads its own: what another has read along is in the same page cache."""
        return (<FbtlModule> self.file.parts["fbtl"]).preadv(access)

    cpdef Py_ssize_t write_all(self, Access access) except -1:
        """From every rank's memory to the file; returns this rank's bytes of data."""
        cdef Communicator comm = self.file.communicator
        cdef Assembly assembly
        cdef int64_t start = INT64_MAX, end = 0, window
        cdef int rank
        self.plan(access)
        window = self.plans[0].window
        if not self.is_gathered("romio_cb_write") or not self.make_room(window):
            return (<FbtlModule> self.file.parts["fbtl"]).pwritev(access)
        for rank in range(comm.size):
            start = min(start, self.plans[rank].first)
            end = max(end, self.plans[rank].end)
        assembly = Assembly(self, access)
        while start < end:
            start = assembly.step(start, min(start - start % PAGE + window, end))
        assembly.conclude()
        return access.nbytes

    cdef int plan(self, Access access) except -1:
        """Learn what each rank is about to do."""
        cdef Communicator comm = self.file.communicator
        cdef Plan mine
        cdef Py_ssize_t first = 0
        cdef char *place = NULL
        memset(&mine, 0, sizeof(Plan))
        mine.first = INT64_MAX
        mine.nbytes = access.nbytes
        mine.can = ORDERED if access.view.ordered or access.nbytes == 0 else 0
        if not access.detached and self.file.pending == 0:
            mine.can |= FILLS_HOLES
        mine.window = self.file.hints.number("cb_buffer_size")
        if access.nbytes > 0:
            mine.end = access.view.reach(access.position, access.nbytes, &first) + first
            mine.first = first
            mine.piece = access.nbytes if access.view.contiguous else access.view.cursor(access.position).stretch(&place)
        gather(comm, <const int64_t *> &mine, <int64_t *> self.plans, PLAN_WORDS)
        return 0

    cdef bint is_gathered(self, str hint) except -1:
        """Whether the ranks put their pieces together: the same answer on all of them."""
        cdef Plan *plan
        cdef int rank
        cdef bint worth_it = False
        cdef str word = self.file.hints.word(hint)
        for rank in range(self.file.communicator.size):
            plan = &self.plans[rank]
            if not plan.can & ORDERED:
                return False
            if 0 < plan.nbytes and plan.piece < plan.nbytes and plan.piece < self.long_piece:
                worth_it = True
        return word != "disable" and (worth_it or word == "enable")

    cdef bint make_room(self, Py_ssize_t size) except -1:
        """Memory for a window, the same on all ranks; False where it can't be had."""
        if self.segment is not None and self.segment.size >= <size_t> size + PAGE:
            return True
        if self.segment is not None:
            self.segment.close()
        self.segment = shared_memory(self.file.communicator, "ompy-two-phase", size + PAGE)
        return self.segment is not None


cdef class Assembly:
    """See `module.pxd`."""

    def __init__(self, TwoPhase module not None, Access access not None):
        self.module = module
        self.access = access
        self.fbtl = module.file.parts["fbtl"]
        if access.nbytes > 0:
            self.cursor = access.view.cursor(access.position)
            self.probe = access.view.cursor(access.position)
        if not access.typemap.contiguous:
            self.memory = Convertor.__new__(Convertor)
            self.memory.prepare(<char *> access.address, access.count, access.typemap)
            self.packed = <char *> malloc(module.segment.size)
            if self.packed == NULL:
                raise MemoryError()

    def __dealloc__(self):
        free_memory(self.packed)

    def step(self, int64_t start, int64_t stop) -> int:
        """One window; returns where the next one begins."""
        cdef TwoPhase module = self.module
        cdef Communicator comm = module.file.communicator
        cdef Py_ssize_t mine
        cdef int64_t following = INT64_MAX
        cdef bint tiled = False
        cdef int rank
        self.agree_on(start, stop, &tiled)
        mine = module.rows[comm.rank].nbytes
        for rank in range(comm.size):
            following = min(following, module.rows[rank].following)
        if tiled or self.fills_holes():
            self.store_together(mine, tiled)
        elif mine > 0:
            self.store_own(mine)
        self.done += mine
        return following

    cdef int agree_on(self, int64_t start, int64_t stop, bint *tiled) except -1:
        """Tell the others what this rank has in the window, and learn whether it has holes."""
        cdef TwoPhase module = self.module
        cdef Access access = self.access
        cdef Row mine
        cdef Row *row
        cdef Run run
        cdef Py_ssize_t here = access.position + self.done, left
        cdef int64_t fingerprint = 0, total = 0, place
        cdef Py_ssize_t _
        cdef int rank
        memset(&mine, 0, sizeof(Row))
        mine.first = mine.following = INT64_MAX
        mine.failed = self.failed
        if self.done < access.nbytes:
            with nogil:
                mine.nbytes = max(0, min(access.view.position_of(stop) - here, access.nbytes - self.done))
                left = mine.nbytes
                while left > 0:
                    left -= self.probe.next_run(left, &run)
                    place = <int64_t> run.place
                    mine.first = min(mine.first, place)
                    mine.end = place + (run.count - 1) * run.stride + run.length
                    if run.stride == run.length:
                        fingerprint += mix(mine.end) - mix(place)
                        continue
                    for _ in range(run.count):
                        fingerprint += mix(place + run.length) - mix(place)
                        place += run.stride
                if self.done + mine.nbytes < access.nbytes:
                    self.probe.stretch(&run.place)
                    mine.following = <int64_t> run.place
        mine.fingerprint = fingerprint
        gather(module.file.communicator, <const int64_t *> &mine, <int64_t *> module.rows, ROW_WORDS)
        self.raise_failures()
        self.low, self.high, fingerprint = INT64_MAX, 0, 0
        for rank in range(module.file.communicator.size):
            row = &module.rows[rank]
            if row.nbytes > 0:
                self.low = min(self.low, row.first)
                self.high = max(self.high, row.end)
                total += row.nbytes
                fingerprint += row.fingerprint
        tiled[0] = total == self.high - self.low and fingerprint == mix(self.high) - mix(self.low)
        return 0

    def raise_failures(self) -> None:
        """Every rank raises what one has met."""
        cdef TwoPhase module = self.module
        cdef int rank
        for rank in range(module.file.communicator.size):
            if module.rows[rank].failed:
                if self.problem is not None:
                    raise self.problem
                reason = error_string(module.rows[rank].failed)
                raise MPIError(module.rows[rank].failed, f"{module.file.path}: a collective write can't be finished on rank "
                                                         f"{rank}, which has the reason: {reason}")

    def fills_holes(self) -> bool:
        """Whether the window may be read and written back: nobody else writes to its holes meanwhile."""
        cdef TwoPhase module = self.module
        cdef int rank
        word = module.file.hints.word("romio_ds_write")
        if word == "enable":
            return True
        if word == "disable" or not module.file.mode & MODE_UNIQUE_OPEN:
            return False
        for rank in range(module.file.communicator.size):
            if not module.plans[rank].can & FILLS_HOLES:
                return False
        return True

    def store_together(self, Py_ssize_t mine, bint tiled) -> None:
        """All put their pieces into the window, and its writers write it."""
        cdef TwoPhase module = self.module
        cdef Communicator comm = module.file.communicator
        cdef CollectiveCall call = CollectiveCall.__new__(CollectiveCall)
        cdef bint locks = module.file.hints.word("romio_ds_write") == "enable"
        # One lock at a time in the whole job: two jobs whose ranks held a part each would wait for one another.
        cdef int writers = 1 if locks else min(module.file.hints.number("cb_nodes") or comm.size, comm.size)
        cdef int64_t base, share, low, high
        cdef char *image
        base = self.low - self.low % PAGE
        share = (self.high - base + writers - 1) // writers
        share += (PAGE - share % PAGE) % PAGE
        low = min(self.high, base + comm.rank * share) if comm.rank < writers else self.high
        high = min(self.high, low + share)
        low = max(self.low, low)
        image = module.segment.address + (low - base)
        locks = locks and low < high
        if locks:
            module.file.turn.acquire()
        try:
            try:
                if locks:
                    self.fbtl.lock(low, high - low, True)
                if not tiled and low < high:
                    there = self.fbtl.fetch(<size_t> image, high - low, low)
                    memset(image + <Py_ssize_t> there, 0, high - low - <Py_ssize_t> there)
            except MPIError as error:
                self.fail(error)
            if not tiled:
                (<CollTable> comm.coll).of(BARRIER).run(BARRIER, call, comm)
            if mine > 0:
                self.fill(mine)
            (<CollTable> comm.coll).of(BARRIER).run(BARRIER, call, comm)
            try:
                if low < high and not self.failed:
                    self.fbtl.store(<size_t> image, high - low, low)
                if locks:
                    self.fbtl.unlock(low, high - low)
            except MPIError as error:
                self.fail(error)
        finally:
            if locks:
                module.file.turn.release()

    cdef int fill(self, Py_ssize_t nbytes) except -1:
        """This rank's pieces to their places in the window."""
        cdef Py_ssize_t distance = <Py_ssize_t> self.module.segment.address - (self.low - self.low % PAGE)
        with nogil:
            self.cursor.shift(distance)
            self.cursor.move(self.next_bytes(nbytes), nbytes, False)
            self.cursor.shift(-distance)
        return 0

    cdef char *next_bytes(self, Py_ssize_t nbytes) noexcept nogil:
        if self.memory is None:
            return <char *> self.access.address + self.done
        self.memory.move(self.packed, nbytes, True)
        return self.packed

    cdef int store_own(self, Py_ssize_t nbytes) except -1:
        """This rank's pieces, by itself."""
        cdef Access part = Access.__new__(Access)
        part.address = <size_t> self.next_bytes(nbytes)
        part.count = part.nbytes = nbytes
        part.typemap = predefined(BASIC_BYTE)
        part.writing = True
        part.view = self.access.view
        part.position = self.access.position + self.done
        self.cursor.go_to(part.position + nbytes)
        try:
            self.fbtl.pwritev(part)
        except MPIError as error:
            self.fail(error)
        return 0

    def fail(self, error) -> None:
        """The others learn of it with the next window, or at the end."""
        self.problem = error
        self.failed = error.code

    def conclude(self) -> None:
        """All is written, or every rank knows that it isn't."""
        cdef Row mine
        memset(&mine, 0, sizeof(Row))
        mine.failed = self.failed
        gather(self.module.file.communicator, <const int64_t *> &mine, <int64_t *> self.module.rows, ROW_WORDS)
        self.raise_failures()
