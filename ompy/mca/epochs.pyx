# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""The epochs of one window at one rank.  See `epochs.pxd`."""
from cpython.mem cimport PyMem_Calloc, PyMem_Free

from ompy.core.window cimport FLAVOR_DYNAMIC, LOCK_EXCLUSIVE, LOCK_SHARED, Window
from ompy.mca.osc cimport Access, OscModule

from ompy.core.errors import ERR_ARG, ERR_LOCKTYPE, ERR_RMA_FLAVOR, ERR_RMA_SYNC, MPIError


cdef class Epochs(OscModule):
    """The epochs of one window at one rank.

    Parameters:
        component: who serves the window.
        window: which.
    """

    def __init__(self, str component not None, Window window not None):
        self.component = component
        self.window = window
        self.rank = window.communicator.rank
        self.ranks = window.communicator.size
        self.locked = <char *> PyMem_Calloc(2 * self.ranks, 1)
        if self.locked == NULL:
            raise MemoryError()
        self.begun = self.locked + self.ranks
        self.no_locks = window.attributes["hints"].number("no_locks")

    def __dealloc__(self):
        PyMem_Free(self.locked)

    cpdef int may_access(self, Access access, Py_ssize_t nbytes) except -1:
        """Whether the access may be made: ERR_RMA_SYNC, ERR_ARG, ERR_DISP or ERR_RMA_RANGE if not."""
        cdef Py_ssize_t there = access.target_count * access.target_type.size
        if not self.is_open(access.target):
            raise MPIError(ERR_RMA_SYNC, f"no epoch is open towards rank {access.target}: call Fence, Start, Lock or Lock_all "
                                         "first")
        if nbytes != there:
            raise MPIError(ERR_ARG, f"origin and target differ: {nbytes} bytes of data here, {there} bytes "
                                    f"({access.target_count} elements) at rank {access.target}")
        return self.window.check_range(access.target, access.displacement, access.target_count, access.target_type)

    cpdef int may_flush(self, int target) except -1:
        """Whether a target is locked, or any (-1); ERR_RMA_SYNC if not."""
        if self.locked_all or (self.locked[target] if target >= 0 else self.locks):
            return 0
        which = f"rank {target} is not locked" if target >= 0 else "no rank is locked"
        raise MPIError(ERR_RMA_SYNC, f"{which}: flushing is for epochs of Lock and Lock_all")

    cpdef int may_fence(self) except -1:
        """Whether Fence belongs here; ERR_RMA_SYNC if not."""
        if self.started is not None:
            raise MPIError(ERR_RMA_SYNC, "Fence within an epoch of Start: Complete it first")
        return self.nothing_is_locked("Fence")

    cpdef int may_start(self) except -1:
        """Whether Start does."""
        if self.started is not None:
            raise MPIError(ERR_RMA_SYNC, "Start again before Complete")
        return self.nothing_is_locked("Start")

    cdef int nothing_is_locked(self, str call) except -1:
        """Epochs of one process, other than locks of several ranks, are disjoint (MPI-4.1, 12.5)."""
        if self.locked_all or self.locks:
            raise MPIError(ERR_RMA_SYNC, f"{call} while this process holds locks of the window: Unlock or Unlock_all first")
        return 0

    cpdef int may_lock(self, int target, int kind) except -1:
        """Whether Lock does; ERR_LOCKTYPE for a kind that there is none of."""
        if kind != LOCK_EXCLUSIVE and kind != LOCK_SHARED:
            raise MPIError(ERR_LOCKTYPE, f"lock_type: LOCK_EXCLUSIVE or LOCK_SHARED expected, got {kind}")
        if self.locked[target] or self.locked_all:
            raise MPIError(ERR_RMA_SYNC, f"rank {target} is locked by this process already")
        return self.lock_is_allowed("Lock")

    cdef int lock_is_allowed(self, str call) except -1:
        if self.started is not None:
            raise MPIError(ERR_RMA_SYNC, f"{call} within an epoch of Start: Complete it first")
        if self.no_locks:
            raise MPIError(ERR_RMA_SYNC, "the window was made with the hint no_locks, so it is not to be locked")
        return 0

    cpdef int may_unlock(self, int target) except -1:
        """Whether Unlock does."""
        if not self.locked[target]:
            raise MPIError(ERR_RMA_SYNC, f"Unlock: this process has not locked rank {target}")
        return 0

    cpdef int may_lock_all(self) except -1:
        """Whether Lock_all does."""
        if self.locked_all or self.locks:
            raise MPIError(ERR_RMA_SYNC, "Lock_all: this process holds locks of the window already")
        return self.lock_is_allowed("Lock_all")

    cpdef int may_unlock_all(self) except -1:
        """Whether Unlock_all does."""
        if not self.locked_all:
            raise MPIError(ERR_RMA_SYNC, "Unlock_all without Lock_all")
        return 0

    cpdef int may_free(self) except -1:
        """Whether Free does."""
        if self.started is not None or self.locked_all or self.locks:
            raise MPIError(ERR_RMA_SYNC, "Free within an epoch: end it first (Wait, Complete, Unlock or Unlock_all)")
        return 0

    cpdef int may_attach(self, str call) except -1:
        """Whether Attach or Detach does; ERR_RMA_FLAVOR unless the window is dynamic."""
        if self.window.flavor != FLAVOR_DYNAMIC:
            raise MPIError(ERR_RMA_FLAVOR, f"{call}: a window of Create_dynamic expected")
        return 0

    def for_each(self, targets, call) -> None:
        """`call(target)` for each of them; the first error when all are over, so that the living have what is theirs."""
        first = None
        for target in targets:
            try:
                call(target)
            except MPIError as error:
                first = first or error
        if first is not None:
            raise first

    cpdef int begin_towards(self, list ranks) except -1:
        """An epoch of Start begins; one of Fence is over."""
        cdef int rank
        self.fenced = False
        self.started = ranks
        for rank in ranks:
            self.begun[rank] = True
        return 0

    cpdef list end_started(self):
        """The epoch of Start is over; returns its ranks, ERR_RMA_SYNC where there was none."""
        cdef int rank
        cdef list ranks = self.started
        if ranks is None:
            raise MPIError(ERR_RMA_SYNC, "Complete without Start")
        self.started = None
        for rank in ranks:
            self.begun[rank] = False
        return ranks

    cpdef void note_lock(self, int target, int kind) noexcept:
        """A target is locked."""
        self.locked[target] = kind
        self.locks += 1

    cpdef void note_unlock(self, int target) noexcept:
        """It is not."""
        self.locked[target] = 0
        self.locks -= 1
