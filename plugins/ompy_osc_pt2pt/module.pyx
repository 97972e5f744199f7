# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""Epochs of one-sided communication over messages (MPI-4.1, 12.5): who may access when."""
from cpython.mem cimport PyMem_Calloc, PyMem_Free

from ompy.core.board cimport WIN_FENCE, WIN_FREE, WIN_LOCK, WIN_START, WIN_WAIT
from ompy.core.atomic cimport full_fence
from ompy.core.progress cimport progress, wait as wait_for
from ompy.core.request cimport Request
from ompy.core.window cimport (
    ASSERT_NOCHECK, ASSERT_NOPRECEDE, ASSERT_NOSUCCEED, FLAVOR_DYNAMIC, LOCK_EXCLUSIVE, LOCK_SHARED, Window,
)
from ompy.mca.osc cimport INTERFACE
from ompy_osc_pt2pt.accesses cimport Accesses
from ompy_osc_pt2pt.header cimport FLAG_SHARED, KIND_COMPLETE, KIND_FENCE, KIND_LOCK, KIND_POST, KIND_UNLOCK

from ompy.core.errors import ERR_ARG, ERR_LOCKTYPE, ERR_RMA_ATTACH, ERR_RMA_FLAVOR, ERR_RMA_SYNC, MPIError

interface = INTERFACE

# Ranks up to which a fence is a word from each to each; among more, the rounds of a barrier are fewer messages.
cdef enum:
    FEW_RANKS = 16


cdef class Pt2pt(Accesses):
    """One window over messages.

    Parameters:
        window: which.
        inline_limit: bytes of data that travel with their order; more go as a message of their own.
    """

    def __init__(self, Window window not None, Py_ssize_t inline_limit=4096):
        Accesses.__init__(self, window, inline_limit)
        self.unchecked = set()
        self.locked = <char *> PyMem_Calloc(self.ranks, 1)
        if self.locked == NULL:
            raise MemoryError()

    def __dealloc__(self):
        PyMem_Free(self.locked)

    cpdef int open(self) except -1:
        """Take orders from now on."""
        return self.service.open()

    # -- what is allowed ----------------------------------------------------------------------------------------------

    cdef int check_epoch(self, int target) except -1:
        if self.fenced or self.locked_all or self.locked[target]:
            return 0
        if self.started is not None and target in self.started:
            return 0
        raise MPIError(ERR_RMA_SYNC, f"no epoch is open towards rank {target}: call Fence, Start, Lock or Lock_all first")

    cdef int check_target(self, int target) except -1:
        if not (self.locked_all or self.locked[target]):
            raise MPIError(ERR_RMA_SYNC, f"rank {target} is not locked: flushing is for epochs of Lock and Lock_all")
        return 0

    # -- fence --------------------------------------------------------------------------------------------------------

    cpdef int fence(self, int assertion) except -1:
        """Every rank has entered, and all accesses to this one are complete."""
        if self.started is not None or self.locked_all:
            raise MPIError(ERR_RMA_SYNC, "Fence within an epoch of Start or Lock_all: Complete or Unlock_all it first")
        full_fence()
        if self.ranks <= FEW_RANKS and self.window.flavor != FLAVOR_DYNAMIC:
            self.exchange_words()
        else:
            if not assertion & ASSERT_NOPRECEDE:
                self.complete_at(range(self.ranks), False)
            self.meet(WIN_FENCE)
        self.fenced = not assertion & ASSERT_NOSUCCEED
        full_fence()
        return 0

    def exchange_words(self):
        """Tell every rank that nothing more comes in this epoch, and hear it from every one."""
        cdef int rank
        cdef Request heard
        cdef list others = [rank for rank in range(self.ranks) if rank != self.rank]
        for rank in others:
            self.tell(rank, KIND_FENCE)
            self.dirty[rank] = False
        for rank in others:
            if self.pending[rank]:
                self.finish_pending(rank)
        heard = self.service.fences.need(others, WIN_FENCE)
        if not heard.complete:
            wait_for(heard)
        if heard.error is not None:
            raise heard.error
        self.service.catch_up()

    # -- post, start, complete, wait ----------------------------------------------------------------------------------

    cpdef int post(self, list ranks, int assertion) except -1:
        """Open this process's memory to the ranks."""
        if self.exposure is not None:
            raise MPIError(ERR_RMA_SYNC, "Post again before Wait or a Test that said yes")
        full_fence()
        self.exposure = self.service.completes.need(ranks, WIN_WAIT)
        if not assertion & ASSERT_NOCHECK:
            for rank in ranks:
                self.tell(rank, KIND_POST)
        return 0

    cpdef int start(self, list ranks, int assertion) except -1:
        """Returns when every one of the ranks has posted."""
        cdef Request posted
        if self.started is not None:
            raise MPIError(ERR_RMA_SYNC, "Start again before Complete")
        if not assertion & ASSERT_NOCHECK:
            posted = self.service.posts.need(ranks, WIN_START)
            if not posted.complete:
                wait_for(posted)
            if posted.error is not None:
                raise posted.error
        self.fenced = False
        self.started = list(ranks)
        return 0

    cpdef int complete(self) except -1:
        """Accesses are complete here; each target learns when they are there."""
        cdef list ranks = self.started
        if ranks is None:
            raise MPIError(ERR_RMA_SYNC, "Complete without Start")
        self.started = None
        for rank in ranks:
            self.tell(rank, KIND_COMPLETE)
        self.complete_at(ranks, self.window.flavor != FLAVOR_DYNAMIC)
        for rank in ranks:
            self.dirty[<int> rank] = False
        return 0

    cpdef int wait(self) except -1:
        """Until all ranks of `post` have completed."""
        cdef Request exposure = self.exposure
        if exposure is None:
            raise MPIError(ERR_RMA_SYNC, "Wait without Post")
        if not exposure.complete:
            wait_for(exposure)
        self.exposure = None
        full_fence()
        if exposure.error is not None:
            raise exposure.error
        return 0

    cpdef bint test(self) except -1:
        """Whether all ranks of `post` have completed."""
        if self.exposure is None:
            raise MPIError(ERR_RMA_SYNC, "Test without Post")
        if not self.exposure.complete:
            progress()
            if not self.exposure.complete:
                return False
        self.wait()
        return True

    # -- locks --------------------------------------------------------------------------------------------------------

    cpdef int lock(self, int target, int kind, int assertion) except -1:
        """Returns when the target's memory is ours."""
        if kind != LOCK_EXCLUSIVE and kind != LOCK_SHARED:
            raise MPIError(ERR_LOCKTYPE, f"lock_type: LOCK_EXCLUSIVE or LOCK_SHARED expected, got {kind}")
        if self.locked[target] or self.locked_all:
            raise MPIError(ERR_RMA_SYNC, f"rank {target} is locked by this process already")
        if assertion & ASSERT_NOCHECK:
            self.unchecked.add(target)
        else:
            self.heed(target, self.ask(target, KIND_LOCK, FLAG_SHARED if kind == LOCK_SHARED else 0, WIN_LOCK))
        self.locked[target] = kind
        return 0

    cpdef int unlock(self, int target) except -1:
        """Accesses are complete at the target, then others may have it."""
        if not self.locked[target]:
            raise MPIError(ERR_RMA_SYNC, f"Unlock: this process has not locked rank {target}")
        self.locked[target] = 0
        if target in self.unchecked:
            self.unchecked.discard(target)
            self.complete_at((target,), False)
            return 0
        return self.release((target,))

    def release(self, targets):
        """Give locks back, and wait for what was done under them."""
        cdef int target
        cdef list answers = []
        full_fence()
        for target in targets:
            self.dirty[target] = False
            answers.append((target, self.ask(target, KIND_UNLOCK, 0, WIN_LOCK)))
        for target in targets:
            if self.pending[target]:
                self.finish_pending(target)
        self.heed_all(answers)
        return 0

    cpdef int lock_all(self, int assertion) except -1:
        """Returns when every rank's memory is shared with us."""
        cdef int target
        if self.locked_all or any([self.locked[target] for target in range(self.ranks)]):
            raise MPIError(ERR_RMA_SYNC, "Lock_all: this process holds locks of the window already")
        self.all_unchecked = assertion & ASSERT_NOCHECK
        if not self.all_unchecked:
            self.heed_all([(target, self.ask(target, KIND_LOCK, FLAG_SHARED, WIN_LOCK)) for target in range(self.ranks)])
        self.locked_all = True
        return 0

    cpdef int unlock_all(self) except -1:
        """Accesses are complete everywhere, and all locks given back."""
        if not self.locked_all:
            raise MPIError(ERR_RMA_SYNC, "Unlock_all without Lock_all")
        self.locked_all = False
        if self.all_unchecked:
            self.complete_at(range(self.ranks), False)
            return 0
        return self.release(range(self.ranks))

    cpdef int sync(self) except -1:
        """Public and private copy are one; only the processor's order of accesses is left to see to."""
        full_fence()
        progress()
        return 0

    cpdef int flush(self, int target, bint local) except -1:
        """Complete accesses to a target, or to all."""
        cdef int each
        if target >= 0:
            self.check_target(target)
        elif not self.locked_all and not any([self.locked[each] for each in range(self.ranks)]):
            raise MPIError(ERR_RMA_SYNC, "no rank is locked: flushing is for epochs of Lock and Lock_all")
        self.complete_at(range(self.ranks) if target < 0 else (target,), local)
        return 0

    # -- dynamic windows ----------------------------------------------------------------------------------------------

    cpdef int attach(self, size_t address, Py_ssize_t size) except -1:
        """Add memory to this process's part."""
        if self.window.flavor != FLAVOR_DYNAMIC:
            raise MPIError(ERR_RMA_FLAVOR, "Attach: a window of Create_dynamic expected")
        for start, nbytes in self.service.regions.items():
            if address < start + nbytes and start < address + size:
                raise MPIError(ERR_RMA_ATTACH, f"Attach: the {size} bytes at {address:#x} overlap the {nbytes} at {start:#x} "
                                               "that are attached")
        self.service.regions[address] = size
        return 0

    cpdef int detach(self, size_t address) except -1:
        """Take memory away again."""
        if self.window.flavor != FLAVOR_DYNAMIC:
            raise MPIError(ERR_RMA_FLAVOR, "Detach: a window of Create_dynamic expected")
        if address not in self.service.regions:
            raise MPIError(ERR_ARG, f"Detach: nothing is attached at {address:#x}")
        del self.service.regions[address]
        return 0

    cpdef int free(self) except -1:
        """All ranks meet: nobody will order anything of this one."""
        cdef int target
        if self.exposure is not None or self.started is not None or self.locked_all \
                or any([self.locked[target] for target in range(self.ranks)]):
            raise MPIError(ERR_RMA_SYNC, "Free within an epoch: end it first (Wait, Complete, Unlock or Unlock_all)")
        self.complete_at(range(self.ranks), False)
        self.service.settle()
        self.meet(WIN_FREE)
        self.service.settle()
        return self.service.close()
