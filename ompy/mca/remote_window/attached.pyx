# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""What the ranks of a dynamic window have attached.  See `attached.pxd`."""
from _bisect import bisect_right, insort_right
from array import array

from cpython.bytearray cimport PyByteArray_AS_STRING
from libc.stdint cimport int64_t, uint64_t

from ompy.core.atomic cimport full_fence
from ompy.core.typemap cimport span
from ompy.core.window cimport FLAVOR_DYNAMIC, Window
from ompy.mca.active_rdma cimport close_register, open_register
from ompy.mca.osc cimport Access
from ompy.mca.remote_window.ways cimport ASK, BYTES, DETACHED, LONGEST_ROW, Key, Way, Ways, new_descriptor

from ompy.core.errors import ERR_RMA_RANGE, MPIError
from ompy.mca.attachments import Attachments, not_attached


cdef class Known:
    """Keys of what one rank has attached, by address."""
    cdef int64_t detached                        # the word, when they were asked for
    cdef list starts
    cdef dict keys


cdef class Attached(Ways):
    """What is attached, here and elsewhere."""

    def __init__(self, str component not None, Window window not None):
        Ways.__init__(self, component, window)
        self.dynamic = window.flavor == FLAVOR_DYNAMIC
        self.attachments = Attachments()
        self.entries = {}
        self.known = [Known.__new__(Known) for _ in range(self.ranks)] if self.dynamic else []

    def open_register(self) -> int:
        """Others ask for what is attached by this name."""
        self.register = open_register(self) if self.dynamic else 0
        return self.register

    def close(self):
        """Nobody accesses memory here any more."""
        if self.register:
            close_register(self.register)
        for row, held in self.entries.values():
            self.close_row(row, held)
        self.entries = {}
        Ways.close(self)

    # -- the owner's side ---------------------------------------------------------------------------------------------

    cpdef int attach(self, size_t address, Py_ssize_t size) except -1:
        """Add memory to this process's part."""
        cdef list held = []
        self.may_attach("Attach")
        self.attachments.add(address, size)
        if size:
            try:
                self.entries[address] = (self.row_of(address, size, held), held)
            except BaseException:
                self.attachments.remove(address)
                raise
        return 0

    cpdef int detach(self, size_t address) except -1:
        """Take memory away again."""
        self.may_attach("Detach")
        if self.attachments.remove(address):
            self.words[<int> DETACHED] += 1
            full_fence()
            row, held = self.entries.pop(address)
            self.close_row(row, held)
        return 0

    def entry(self, uint64_t address):
        """The row of what is attached there, as bytes; none where nothing is."""
        start, size = self.attachments.holding(address)
        return array("q", self.entries[start][0]).tobytes() if size else b""

    # -- the others' --------------------------------------------------------------------------------------------------

    cdef Key key_for(self, Access access):
        cdef Way way = self.ways[access.target]
        cdef Known known
        cdef Key key = None
        cdef Py_ssize_t first = 0, nbytes
        cdef uint64_t start
        cdef bytearray words
        if not self.dynamic:
            return way.memory
        nbytes = span(access.target_type, access.target_count, &first)
        start = <uint64_t> (access.displacement + first)
        if way.layer is None:
            address, size = self.attachments.holding(start)
            if nbytes > address + size - start:
                raise MPIError(ERR_RMA_RANGE, not_attached(self.rank, start, nbytes))
            return None
        known = self.known[access.target]
        words = bytearray(8 * (<int> DETACHED + 1))
        self.look(access.target, <int> DETACHED + 1, words)
        if known.keys is None or known.detached != (<int64_t *> PyByteArray_AS_STRING(words))[<int> DETACHED]:
            known.detached = (<int64_t *> PyByteArray_AS_STRING(words))[<int> DETACHED]
            known.starts, known.keys = [], {}
        place = bisect_right(known.starts, start)
        if place:
            key = known.keys[known.starts[place - 1]]
        if key is None or start - key.address >= key.size:
            key = self.asked(access.target, start)
            if key is not None:
                insort_right(known.starts, key.address)
                known.keys[key.address] = key
        if key is None or <uint64_t> nbytes > key.size - (start - key.address):
            raise MPIError(ERR_RMA_RANGE, not_attached(access.target, start, nbytes))
        return key

    cdef Key asked(self, int target, uint64_t address):
        """The key of what lies there, from the target itself; None where nothing does."""
        cdef Way way = self.ways[target], answer = Way()
        cdef Key key = Key()
        cdef bytearray told = bytearray(8 * <int> LONGEST_ROW)
        # Counted by itself: what has gone wrong with accesses is told by whoever completes them.
        answer.rank, answer.proc, answer.layer, answer.waking = target, way.proc, way.layer, way.waking
        key.btl, key.endpoint, key.handle = way.layer, way.waking, way.register
        descriptor = new_descriptor(answer, key, <size_t> PyByteArray_AS_STRING(told), address, len(told), told)
        self.launch(answer, key, ASK, descriptor, None, 0, 0)
        self.await_quiet(answer, target)
        row = array("q", told).tolist()
        if row[BYTES] == 0:
            return None
        key = self.native_key(way, row) if way.state.btl is not way.layer else None
        return self.layer_key(way, row) if key is None else key
