# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""A collective access through memory that the ranks share.  See `exchange.pxd`."""
from libc.stdint cimport INT64_MAX, int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from ompy.core.basic cimport BASIC_BYTE
from ompy.core.convertor cimport Convertor, Run
from ompy.core.file cimport Access, File
from ompy.core.typemap cimport predefined
from ompy_fcoll_two_phase.fingerprint cimport Fingerprint, plus
from ompy_fcoll_two_phase.window cimport PAGE, Row, Window

from ompy.core.errors import ERR_NO_MEM, MPIError, code_of, error_string


cdef int describe(Convertor cursor, Py_ssize_t nbytes, Fingerprint fingerprint, int64_t origin, Row *row) noexcept nogil:
    cdef Run run
    while nbytes > 0:
        nbytes -= cursor.next_run(nbytes, &run)
        if run.stride == run.length:
            run.length *= run.count
            run.count = 1
        row.first = min(row.first, <int64_t> run.place)
        row.end = <int64_t> run.place + (run.count - 1) * run.stride + run.length
        if fingerprint is not None:
            row.fingerprint = plus(row.fingerprint, fingerprint.of_blocks(
                <int64_t> run.place - origin, run.length, run.count, run.stride))
    return 0


cdef object failure_of(File file, Access access, int rank, int64_t code):
    doing = "write" if access.writing else "read"
    return MPIError(code, f"{file.path}: a collective {doing} can't be finished on rank {rank}, which has the reason: "
                          f"{error_string(code)}")


cdef class Exchange:
    """One rank's part of a collective access.

    Parameters:
        window: what the ranks share, with room for a window.
        file, access: what is moved.
    """

    def __init__(self, Window window not None, File file not None, Access access not None):
        self.window = window
        self.file = file
        self.fbtl = file.parts["fbtl"]
        self.access = access
        if access.nbytes > 0:
            self.cursor = access.view.cursor(access.position)
            self.probe = access.view.cursor(access.position)
        if not access.typemap.contiguous:
            self.memory = Convertor.__new__(Convertor)
            self.memory.prepare(<char *> access.address, access.count, access.typemap)
            self.packed = <char *> malloc(min(window.size + PAGE, max(1, access.nbytes)))
            if self.packed == NULL:
                self.problem = MPIError(ERR_NO_MEM, f"{file.path}: no memory for a window's data")

    def __dealloc__(self):
        free(self.packed)

    cdef Py_ssize_t run(self, int64_t start, int64_t end, Py_ssize_t size, bint told) except -1:
        while start < end:
            self.origin = start - start % PAGE
            if told:
                self.mine = self.access.nbytes
                self.sum_up()
            else:
                self.agree_on(min(self.origin + size, end))
            if not self.access.writing:
                self.read_together()
            elif self.tiled or self.manner.fills_holes:
                self.write_together()
            elif self.mine > 0:
                self.write_own()
            self.done += self.mine
            start = self.following
        if self.access.writing:
            self.tell(0)
        return self.done

    cdef int agree_on(self, int64_t stop) except -1:
        cdef Access access = self.access
        cdef Row mine
        cdef char *place = NULL
        cdef Py_ssize_t here = access.position + self.done
        memset(&mine, 0, sizeof(Row))
        mine.first = mine.following = INT64_MAX
        mine.failed = self.failed()
        if self.problem is None and self.done < access.nbytes:
            mine.nbytes = max(0, min(access.view.position_of(stop) - here, access.nbytes - self.done))
            describe(self.probe, mine.nbytes, self.window.fingerprint if access.writing else None, self.origin, &mine)
            if self.done + mine.nbytes < access.nbytes:
                self.probe.stretch(&place)
                mine.following = <int64_t> place
        self.mine = mine.nbytes
        self.window.gather_rows(&mine)
        self.raise_failures()
        return self.sum_up()

    cdef int sum_up(self) noexcept nogil:
        cdef Row *row
        cdef int64_t total = 0, fingerprint = 0
        cdef int rank
        self.low, self.high, self.following = INT64_MAX, 0, INT64_MAX
        for rank in range(self.window.communicator.size):
            row = &self.window.rows[rank]
            self.following = min(self.following, row.following)
            if row.nbytes > 0:
                self.low = min(self.low, row.first)
                self.high = max(self.high, row.end)
                total += row.nbytes
                fingerprint = plus(fingerprint, row.fingerprint)
        self.tiled = total == self.high - self.low and fingerprint == self.window.fingerprint.of_blocks(
            self.low - self.origin, total, 1, total)
        return 0

    def failed(self) -> int:
        """The class of the error that this rank has met, or 0."""
        return 0 if self.problem is None else code_of(self.problem)

    def tell(self, int64_t end) -> None:
        """Every rank learns where what the others have read ends, and raises what one has met."""
        cdef Row mine
        memset(&mine, 0, sizeof(Row))
        mine.end = end
        mine.failed = self.failed()
        self.window.gather_rows(&mine)
        self.raise_failures()

    cdef int raise_failures(self) except -1:
        cdef int rank
        cdef int64_t code
        for rank in range(self.window.communicator.size):
            code = self.window.rows[rank].failed
            if code:
                raise self.problem or failure_of(self.file, self.access, rank, code)
        return 0

    cdef int write_together(self) except -1:
        cdef int64_t low, high
        cdef char *image = self.image(&low, &high)
        cdef Py_ssize_t there
        cdef bint locks = self.manner.locks and low < high
        if locks:
            self.file.turn.acquire()
        try:
            try:
                if locks:
                    self.fbtl.lock(low, high - low, True)
                if not self.tiled and low < high:
                    there = self.fbtl.fetch(<size_t> image, high - low, low)
                    memset(image + there, 0, high - low - there)
            except BaseException as error:
                self.problem = error
            if not self.tiled:
                self.meet()
            self.move_pieces(False)
            self.meet()
            try:
                if low < high and self.problem is None:
                    self.fbtl.store(<size_t> image, high - low, low)
            except BaseException as error:
                self.problem = error
        finally:
            if locks:
                try:
                    self.fbtl.unlock(low, high - low)
                finally:
                    self.file.turn.release()
        return 0

    cdef int write_own(self) except -1:
        """This rank's pieces, by itself."""
        cdef Access part = Access.__new__(Access)
        if self.memory is not None:
            self.memory.move(self.packed, self.mine, True)
        part.address = <size_t> self.data()
        part.count = part.nbytes = self.mine
        part.typemap = predefined(BASIC_BYTE)
        part.writing = True
        part.view = self.access.view
        part.position = self.access.position + self.done
        try:
            self.fbtl.pwritev(part)
        except BaseException as error:
            self.problem = error
        return 0

    cdef int read_together(self) except -1:
        cdef int64_t low, high, end = 0
        cdef char *image = self.image(&low, &high)
        cdef Py_ssize_t here = self.access.position + self.done
        cdef int rank
        try:
            if low < high:
                end = self.fbtl.fetch(<size_t> image, high - low, low)
                end = low + end if end else 0
        except BaseException as error:
            self.problem = error
        self.tell(end)
        for rank in range(self.window.communicator.size):
            end = max(end, self.window.rows[rank].end)
        if end < self.high:
            # The end of the file: what is behind it is no data.
            self.following = INT64_MAX
            if self.mine > 0:
                self.mine = min(self.mine, max(0, self.access.view.position_of(end) - here))
        self.move_pieces(True)
        return 0

    cdef int64_t part(self, int mover, int64_t *low, int64_t *high) noexcept nogil:
        cdef int movers = self.manner.movers
        cdef int64_t share = (self.high - self.origin + movers - 1) // movers, begin
        share += (PAGE - share % PAGE) % PAGE
        begin = self.origin + mover * share if mover < movers else self.high
        high[0] = min(self.high, begin + share)
        low[0] = min(max(self.low, begin), high[0])
        return begin

    cdef char *image(self, int64_t *low, int64_t *high) noexcept nogil:
        self.part(self.window.turn, low, high)
        return self.window.segment.address + (low[0] - self.origin)

    cdef char *data(self) noexcept nogil:
        return <char *> self.access.address + self.done if self.memory is None else self.packed

    cdef int move_pieces(self, bint packing) except -1:
        """One part of the window after the other, beginning with the one behind this rank's own, so that no two processors want
        the same lines at a time."""
        cdef Py_ssize_t here = self.access.position + self.done, distance, first
        cdef int64_t low, high
        cdef char *data = self.data()
        if self.mine == 0:
            return 0
        self.part(self.window.turn, &low, &high)
        distance = <Py_ssize_t> self.window.segment.address - self.origin
        with nogil:
            if self.memory is not None and not packing:
                self.memory.move(data, self.mine, True)
            first = min(max(0, self.access.view.position_of(high) - here), self.mine)
            self.cursor.shift(distance)
            self.cursor.go_to(here + first)
            self.cursor.move(data + first, self.mine - first, packing)
            self.cursor.go_to(here)
            self.cursor.move(data, first, packing)
            self.cursor.shift(-distance)
            if self.memory is not None and packing:
                self.memory.move(data, self.mine, False)
        return 0

    cdef int meet(self) except -1:
        return self.window.meet()
