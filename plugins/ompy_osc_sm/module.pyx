# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""One-sided communication by loads and stores, among processes of one host (MPI-4.1, chapter 12).

Every access but a short put or get by an order (`mailbox.pxd`) and a put that goes with a Complete (`active_target.pxd`) is
complete when its call returns, at the origin and at the target; so what ends an epoch waits for those orders, and only tells
others, by a store that no access before it can pass.
"""
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.stdint cimport int64_t, uint64_t

from ompy.core.atomic cimport acquire, fetch_to_write, full_fence, relax, release
from ompy.core.board cimport WIN_FENCE, WIN_FREE, WIN_LOCK
from ompy.core.progress cimport progress_or_yield
from ompy.core.window cimport ASSERT_NOCHECK, ASSERT_NOSUCCEED, LOCK_SHARED, Window
from ompy.mca.osc cimport INTERFACE
from ompy_osc_sm.accesses cimport Accesses
from ompy_osc_sm.rank_state cimport ask, give_up, met_by, turns_of
from ompy_osc_sm.waiting cimport GRANTED, REACHED, Condition

from ompy.core.errors import ERR_RMA_SYNC, MPIError

interface = INTERFACE

# At another rank's word, with a pause before each, before the wait is one as any other; where somebody may have an order for
# this rank it is at once.
cdef enum:
    PAUSES = 32


cdef class SmWindow(Accesses):
    """One window whose ranks share a host.

    Parameters:
        window: which.
        spins: rounds of looking before a wait is the progress engine's.
        crowded: ranks outnumber cores.
        patience: microseconds that an order waits to be claimed (`mailbox.pxd`); 0: there are no orders.
    """

    def __init__(self, Window window not None, int spins, bint crowded, double patience):
        Accesses.__init__(self, "sm", window)
        self.direct = True
        self.hints = window.attributes["hints"].values
        self.spins = spins
        self.crowded = crowded
        self.patience = <int64_t> (1000 * patience)
        self.unchecked = <char *> PyMem_Calloc(self.ranks, 1)
        if self.unchecked == NULL:
            raise MemoryError()

    def __dealloc__(self):
        PyMem_Free(self.unchecked)

    # -- fence --------------------------------------------------------------------------------------------------------

    cpdef int fence(self, int assertion) except -1:
        """Every rank has entered, and all accesses to this one are complete."""
        self.may_fence()
        self.settle_orders()
        self.meet(WIN_FENCE)
        self.fenced = not assertion & ASSERT_NOSUCCEED
        return 0

    cdef int meet(self, int operation) except -1:
        """All ranks are here.  One that was interrupted here goes on waiting when it comes again."""
        cdef uint64_t turn = self.met + 1
        cdef uint64_t *word = met_by(&self.room, self.rank, turn)
        cdef Condition condition
        cdef int rank, _look
        if word[0] < turn:
            release(word, turn)
            self.ring()
        for rank in range(self.ranks):
            word = met_by(&self.room, rank, turn)
            if rank == self.rank:
                continue
            for _look in range(1 if self.crowded or self.serving else PAUSES):
                relax()                          # a line that is looked at while it is written comes later
                if acquire(word) >= turn:
                    break
            else:
                condition.what = REACHED
                condition.place = word
                condition.value = turn
                condition.peer = rank
                self.await_(&condition, operation)
        self.met = turn
        fetch_to_write(met_by(&self.room, self.rank, turn + 1))
        return self.poll_now_and_then()

    # -- locks --------------------------------------------------------------------------------------------------------

    cpdef int lock(self, int target, int kind, int assertion) except -1:
        """Returns when the target's memory is ours."""
        self.may_lock(target, kind)
        self.require_alive(target)
        if assertion & ASSERT_NOCHECK:
            self.unchecked[target] = True
        else:
            self.take_lock(target, kind)
        self.note_lock(target, kind)
        return 0

    cdef int take_lock(self, int target, int kind) except -1:
        """The lock is ours, or nothing of it, whatever ends the wait."""
        cdef Condition condition
        cdef uint64_t *turn = turns_of(&self.room, target) + self.rank
        if turn[0]:
            raise MPIError(ERR_RMA_SYNC, f"another thread of this process waits for the lock of rank {target}")
        if ask(&self.room, target, kind):
            return 0
        condition.what = GRANTED
        condition.place = turn
        condition.peer = target
        try:
            self.await_(&condition, WIN_LOCK)
        except BaseException:
            self.give_back(target)
            raise
        return 0

    def give_back(self, int target) -> None:
        give_up(&self.room, target)
        self.ring()

    cpdef int unlock(self, int target) except -1:
        """Others may have the target's memory."""
        self.may_unlock(target)
        try:
            self.settle_orders(target)
        finally:
            self.note_unlock(target)
            full_fence()
            if self.unchecked[target]:
                self.unchecked[target] = False
            else:
                give_up(&self.room, target)
                self.ring()
        return self.poll_now_and_then()

    cpdef int lock_all(self, int assertion) except -1:
        """Returns when every rank's memory is shared with us."""
        cdef int target, taken = 0
        self.may_lock_all()
        self.all_unchecked = assertion & ASSERT_NOCHECK
        if not self.all_unchecked:
            try:
                for target in range(self.ranks):
                    self.take_lock(target, LOCK_SHARED)
                    taken += 1
            except BaseException:
                for target in range(taken):
                    self.give_back(target)
                raise
        self.locked_all = True
        return 0

    cpdef int unlock_all(self) except -1:
        """All locks are given back."""
        cdef int target
        self.may_unlock_all()
        try:
            self.settle_orders()
        finally:
            self.locked_all = False
            full_fence()
            if not self.all_unchecked:
                for target in range(self.ranks):
                    give_up(&self.room, target)
                self.ring()
        return self.poll_now_and_then()

    cpdef int flush(self, int target, bint local) except -1:
        """Wait for the orders that are left, and for the processor's order."""
        self.may_flush(target)
        self.require_alive(target)
        self.settle_orders(target)
        if not local:
            full_fence()
        return self.poll_now_and_then()

    cpdef int sync(self) except -1:
        """Public and private copy are one; only the processor's order of accesses is left to see to."""
        full_fence()
        progress_or_yield()
        return 0

    # -- the end ------------------------------------------------------------------------------------------------------

    cpdef int may_free(self) except -1:
        """Whether Free belongs here."""
        if self.exposed is not None:
            raise MPIError(ERR_RMA_SYNC, "Free between Post and Wait: end the epoch first")
        return Accesses.may_free(self)

    cpdef int free(self) except -1:
        """All ranks meet: nobody will access anything of this one."""
        self.may_free()
        self.settle_orders()
        self.meet(WIN_FREE)
        return self.leave()
