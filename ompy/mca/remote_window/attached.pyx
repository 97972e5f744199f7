# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""What the ranks of a dynamic window have attached.  See `attached.pxd`."""
from _bisect import bisect_right, insort_right
from array import array
from functools import partial

from cpython.bytearray cimport PyByteArray_AS_STRING
from libc.stdint cimport int64_t, uint64_t

from ompy.core.atomic cimport full_fence
from ompy.core.typemap cimport span
from ompy.core.window cimport FLAVOR_DYNAMIC, Window
from ompy.mca.active_rdma cimport close_register, open_register
from ompy.mca.osc cimport Access
from ompy.mca.pieces cimport require_attached, require_own
from ompy.mca.remote_window.ways cimport ASK, BYTES, DETACHED, LONGEST_ROW, Key, Way, Ways, new_descriptor

from ompy.mca.attachments import Attachments


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
        cdef Key key
        cdef Py_ssize_t first = 0, nbytes
        cdef uint64_t start
        if not self.dynamic:
            return way.memory
        if way.layer is None:
            require_own(self.rank, access.displacement, access.target_count, access.target_type, self.attachments)
            return None
        self.forget_detached(access.target)
        nbytes = span(access.target_type, access.target_count, &first)
        start = <uint64_t> (access.displacement + first)
        key = self.key_at(access.target, start)
        if key is None or <uint64_t> nbytes > key.size - (start - key.address):
            key = Key()
            key.parts = []
            require_attached(access.target, access.displacement, access.target_count, access.target_type,
                             partial(self.holding, access.target, key.parts))
        return key

    cdef int forget_detached(self, int target) except -1:
        """What is known of the target's memory, where it has taken some away since."""
        cdef Known known = self.known[target]
        cdef bytearray words = bytearray(8 * (<int> DETACHED + 1))
        cdef int64_t detached
        self.look(target, <int> DETACHED + 1, words)
        detached = (<int64_t *> PyByteArray_AS_STRING(words))[<int> DETACHED]
        if known.keys is None or known.detached != detached:
            known.detached = detached
            known.starts, known.keys = [], {}
        return 0

    def holding(self, int target, list parts, uint64_t address):
        """The stretch of the target's that the address lies in, as (address, bytes), whose key is one more of the parts; (0, 0)
        where there is none."""
        cdef Key key = self.key_at(target, address)
        if key is None:
            return 0, 0
        parts.append(key)
        return key.address, key.size

    cdef Key key_at(self, int target, uint64_t address):
        cdef Known known = self.known[target]
        cdef Key key = None
        place = bisect_right(known.starts, address)
        if place:
            key = known.keys[known.starts[place - 1]]
        if key is None or address - key.address >= key.size:
            key = self.asked(target, address)
            if key is not None:
                insort_right(known.starts, key.address)
                known.keys[key.address] = key
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
