# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""A collective access by messages.  See `message_exchange.pxd`."""
from cpython.mem cimport PyMem_Malloc
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memset

from ompy.core.basic cimport BASIC_BYTE, BASIC_INT64_T
from ompy.core.convertor cimport Run, gather_blocks, scatter_blocks
from ompy.core.file cimport Access, File
from ompy.core.typemap cimport Typemap, predefined
from ompy.mca.coll cimport ALLTOALL, ALLTOALLV, CollectiveCall, CollTable
from ompy_fcoll_two_phase.exchange cimport Exchange, failure_of
from ompy_fcoll_two_phase.window cimport Row, Window

from ompy.core.errors import ERR_NO_MEM, MPIError


cdef Py_ssize_t *counted(const int64_t *numbers, int size, int field) except NULL:
    """Every rank's number of a field, in memory that a call frees."""
    cdef Py_ssize_t *counts = <Py_ssize_t *> PyMem_Malloc(size * sizeof(Py_ssize_t))
    cdef int rank
    if counts == NULL:
        raise MemoryError()
    for rank in range(size):
        counts[rank] = numbers[2 * rank + field]
    return counts


cdef class MessageExchange(Exchange):
    """One rank's part of a collective access by messages.

    Parameters:
        window: what the ranks agree on.
        file, access: what is moved.
    """

    def __init__(self, Window window not None, File file not None, Access access not None):
        Exchange.__init__(self, window, file, access)
        cdef int size = window.communicator.size
        self.told = <int64_t *> calloc(2 * size, sizeof(int64_t))
        self.heard = <int64_t *> calloc(2 * size, sizeof(int64_t))
        if self.told == NULL or self.heard == NULL:
            raise MemoryError()

    def __dealloc__(self):
        free(self.places)
        free(self.others)
        free(self.pieces)
        free(self.told)
        free(self.heard)

    cdef char *image(self, int64_t *low, int64_t *high) noexcept nogil:
        cdef int64_t begin = self.part(self.window.turn, low, high)
        return self.window.own + (low[0] - begin)

    cdef int move_pieces(self, bint packing) except -1:
        cdef char *data = self.data()
        self.describe_pieces()
        if not self.hear():
            return 0
        self.send_all(<char *> self.places, self.told, <char *> self.others, self.heard, 0, predefined(BASIC_INT64_T))
        if packing:
            with nogil:
                self.place_pieces(True)
            self.send_all(self.pieces, self.heard, data, self.told, 1, predefined(BASIC_BYTE))
            if self.memory is not None:
                self.memory.move(data, self.mine, False)
        else:
            if self.memory is not None:
                self.memory.move(data, self.mine, True)
            self.send_all(data, self.told, self.pieces, self.heard, 1, predefined(BASIC_BYTE))
            with nogil:
                self.place_pieces(False)
        return 0

    cdef int meet(self) except -1:
        """Nobody looks into another rank's part."""
        return 0

    cdef int describe_pieces(self) except -1:
        cdef Py_ssize_t here = self.access.position + self.done, begin = 0, end, first
        cdef int64_t low, high
        cdef int64_t *grown
        cdef int mover, rank
        cdef Run run
        memset(self.told, 0, 2 * self.window.communicator.size * sizeof(int64_t))
        self.used = 0
        if self.mine == 0:
            return 0
        self.cursor.go_to(here)
        for mover in range(self.manner.movers):
            self.part(mover, &low, &high)
            end = min(max(begin, self.access.view.position_of(high) - here), self.mine)
            rank = self.window.order[mover]
            first = self.used
            self.told[2 * rank + 1] = end - begin
            while begin < end:
                if self.room - self.used < REGULAR:
                    grown = <int64_t *> realloc(self.places, (2 * self.room + 64) * sizeof(int64_t))
                    if grown == NULL:
                        self.problem = MPIError(ERR_NO_MEM, f"{self.file.path}: no memory for the places of a window's pieces")
                        return 0
                    self.places = grown
                    self.room = 2 * self.room + 64
                begin += self.cursor.next_run(end - begin, &run)
                if run.stride == run.length:
                    run.length *= run.count
                    run.count = 1
                self.places[self.used] = <int64_t> run.place
                self.places[self.used + 1] = run.length if run.count == 1 else -run.length
                if run.count > 1:
                    self.places[self.used + 2] = run.count
                    self.places[self.used + 3] = run.stride
                self.used += SINGLE if run.count == 1 else REGULAR
            self.told[2 * rank] = self.used - first
        return 0

    cdef bint hear(self) except -1:
        cdef CollectiveCall call = CollectiveCall.__new__(CollectiveCall)
        cdef Py_ssize_t numbers = 0, nbytes = 0
        cdef int rank
        cdef Row mine
        call.send_address, call.recv_address = <size_t> self.told, <size_t> self.heard
        call.send_count = call.recv_count = 2
        call.send_type = call.recv_type = predefined(BASIC_INT64_T)
        (<CollTable> self.window.communicator.coll).of(ALLTOALL).run(ALLTOALL, call, self.window.communicator)
        for rank in range(self.window.communicator.size):
            numbers += self.heard[2 * rank]
            nbytes += self.heard[2 * rank + 1]
        free(self.others)
        free(self.pieces)
        self.others = <int64_t *> malloc(max(1, numbers * sizeof(int64_t)))
        self.pieces = <char *> malloc(max(1, nbytes))
        if (self.others == NULL or self.pieces == NULL) and self.problem is None:
            self.problem = MPIError(ERR_NO_MEM, f"{self.file.path}: no memory for the pieces of a window")
        # Data go only when all ranks can take them.
        memset(&mine, 0, sizeof(Row))
        mine.failed = self.failed()
        self.window.gather_rows(&mine)
        for rank in range(self.window.communicator.size):
            if self.window.rows[rank].failed:
                self.problem = self.problem or failure_of(self.file, self.access, rank, self.window.rows[rank].failed)
                return False
        return True

    cdef int send_all(self, char *mine, const int64_t *counts, char *theirs, const int64_t *their_counts, int field,
                      Typemap typemap) except -1:
        cdef int size = self.window.communicator.size, turn, rank
        cdef CollectiveCall call = CollectiveCall.__new__(CollectiveCall)
        cdef bint to_movers = counts == self.told
        cdef Py_ssize_t *places
        cdef Py_ssize_t place = 0
        call.send_counts = counted(counts, size, field)
        call.recv_counts = counted(their_counts, size, field)
        # This rank's own lie in the order of movers, not of ranks.
        places = <Py_ssize_t *> PyMem_Malloc(size * sizeof(Py_ssize_t))
        if places == NULL:
            raise MemoryError()
        for turn in range(size):
            rank = self.window.order[turn]
            places[rank] = place
            place += self.told[2 * rank + field]
        if to_movers:
            call.send_displacements = places
        else:
            call.recv_displacements = places
        call.send_address, call.recv_address = <size_t> mine, <size_t> theirs
        call.send_type = call.recv_type = typemap
        return (<CollTable> self.window.communicator.coll).of(ALLTOALLV).run(ALLTOALLV, call, self.window.communicator)

    cdef int place_pieces(self, bint packing) noexcept nogil:
        cdef int64_t low, high
        cdef int64_t begin = self.part(self.window.turn, &low, &high)
        cdef const int64_t *number = self.others
        cdef const int64_t *last = number
        cdef char *packed = self.pieces
        cdef char *place
        cdef int64_t length, count, stride
        cdef int rank
        for rank in range(self.window.communicator.size):
            last += self.heard[2 * rank]
        while number < last:
            place = self.window.own + (number[0] - begin)
            length, count, stride = number[1], 1, 0
            number += SINGLE
            if length < 0:
                length, count, stride = -length, number[0], number[1]
                number += REGULAR - SINGLE
            if packing:
                gather_blocks(packed, place, length, count, stride)
            else:
                scatter_blocks(packed, place, length, count, stride)
            packed += length * count
        return 0
