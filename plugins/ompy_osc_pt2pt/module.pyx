# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Epochs of one-sided communication over messages (MPI-4.1, 12.5): who may access when."""
from ompy.core.board cimport WIN_FENCE, WIN_FREE, WIN_LOCK, WIN_START, WIN_WAIT
from ompy.core.atomic cimport full_fence
from ompy.core.progress cimport progress, progress_or_yield, wait as wait_for
from ompy.core.request cimport Request
from ompy.core.signals cimport keep_exceptions, raise_kept
from ompy.core.window cimport (
    ASSERT_NOCHECK, ASSERT_NOPRECEDE, ASSERT_NOSUCCEED, FLAVOR_DYNAMIC, LOCK_SHARED, Window,
)
from ompy.mca.agreement cimport begin_meeting
from ompy.mca.osc cimport INTERFACE
from ompy_osc_pt2pt.accesses cimport Accesses
from ompy_osc_pt2pt.header cimport FLAG_SHARED, KIND_COMPLETE, KIND_FENCE, KIND_LOCK, KIND_POST, KIND_UNLOCK
from ompy_osc_pt2pt.tally cimport Tally

from ompy.core.errors import ERR_RMA_SYNC, MPIError

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

    cpdef int open(self) except -1:
        """Take orders from now on."""
        return self.service.open()

    # -- fence --------------------------------------------------------------------------------------------------------

    cpdef int fence(self, int assertion) except -1:
        """Every rank has entered, and all accesses to this one are complete."""
        self.may_fence()
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
        cdef list others = [rank for rank in range(self.ranks) if rank != self.rank]
        if not self.has_told:
            for rank in others:
                self.tell(rank, KIND_FENCE)
                self.rely_on(rank)
            self.has_told = True
        for rank in others:
            if self.pending[rank]:
                self.finish_pending(rank)
        self.hear(self.service.fences, others, WIN_FENCE)
        self.has_told = False
        self.service.catch_up()

    cdef int hear(self, Tally tally, list ranks, int operation) except -1:
        cdef Request heard = tally.need(ranks, operation)
        if not heard.complete:
            try:
                wait_for(heard)
            except BaseException:
                tally.put_back(ranks)
                raise
        if heard.error is not None:
            tally.put_back(ranks)
            raise heard.error
        return 0

    cdef int meet(self, int operation) except -1:
        """All ranks are here.  One that was interrupted here goes on waiting when it comes again."""
        cdef Request meeting = self.meeting
        if meeting is None or meeting.operation != operation:
            meeting = self.meeting = begin_meeting(self.window.communicator, operation)
        if not meeting.complete:
            wait_for(meeting)
        self.meeting = None
        if meeting.error is not None:
            raise meeting.error
        return 0

    # -- post, start, complete, wait ----------------------------------------------------------------------------------

    cpdef int post(self, list ranks, int assertion) except -1:
        """Open this process's memory to the ranks."""
        if self.exposure is not None:
            raise MPIError(ERR_RMA_SYNC, "Post again before Wait or a Test that said yes")
        full_fence()
        self.exposure = self.service.completes.need(ranks, WIN_WAIT)
        if not assertion & ASSERT_NOCHECK:
            try:
                self.tell_each(ranks, KIND_POST)
            except MPIError:
                pass                             # of ranks that have failed: Wait says so
        return 0

    cpdef int start(self, list ranks, int assertion) except -1:
        """Returns when every one of the ranks has posted."""
        self.may_start()
        if not assertion & ASSERT_NOCHECK:
            self.hear(self.service.posts, ranks, WIN_START)
        return self.begin_towards(ranks)

    cpdef int complete(self) except -1:
        """Accesses are complete here; each target learns when they are there."""
        cdef list ranks = self.end_started()
        # The targets wait for it, whatever a signal handler raises.
        keep_exceptions()
        try:
            try:
                self.tell_each(ranks, KIND_COMPLETE)
            finally:
                self.complete_at(ranks, self.window.flavor != FLAVOR_DYNAMIC)
            for rank in ranks:
                self.rely_on(rank)
        finally:
            raise_kept()
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
            self.service.completes.forget()
            raise exposure.error
        return 0

    cpdef bint test(self) except -1:
        """Whether all ranks of `post` have completed."""
        if self.exposure is None:
            raise MPIError(ERR_RMA_SYNC, "Test without Post")
        if not self.exposure.complete:
            progress_or_yield()
            if not self.exposure.complete:
                return False
        self.wait()
        return True

    # -- locks --------------------------------------------------------------------------------------------------------

    cpdef int lock(self, int target, int kind, int assertion) except -1:
        """Returns when the target's memory is ours."""
        self.may_lock(target, kind)
        if assertion & ASSERT_NOCHECK:
            self.unchecked.add(target)
        else:
            self.take_locks((target,), FLAG_SHARED if kind == LOCK_SHARED else 0)
        self.note_lock(target, kind)
        return 0

    def take_locks(self, targets, int flags):
        """Ask for them, and wait; who does not get one, or is interrupted, holds none of them."""
        cdef int target
        cdef list asked = []
        try:
            for target in targets:
                asked.append((target, self.ask(target, KIND_LOCK, flags, WIN_LOCK)))
            for target, answer in asked:
                self.check_answer(target, answer)
        except BaseException:
            for target, _ in asked:
                try:
                    self.ask(target, KIND_UNLOCK, 0, WIN_LOCK)
                except MPIError:
                    pass                         # it is gone, and its lock with it
            raise

    cpdef int unlock(self, int target) except -1:
        """Accesses are complete at the target, then others may have it."""
        self.may_unlock(target)
        self.note_unlock(target)
        if target in self.unchecked:
            self.unchecked.discard(target)
            self.complete_at((target,), False)
            return 0
        return self.release((target,))

    def release(self, targets):
        """Give locks back, and wait for what was done under them."""
        cdef int target
        cdef list answers = []
        first = None
        full_fence()
        for target in targets:
            ordered = self.ordered[target]
            try:
                answers.append((target, self.ask(target, KIND_UNLOCK, 0, WIN_LOCK), ordered))
            except MPIError as error:            # the others are to have theirs back
                first = first or error
        self.hear_all(targets, self.take_unheard(targets) + answers)
        if first is not None:
            raise first
        return progress() & 0

    cpdef int lock_all(self, int assertion) except -1:
        """Returns when every rank's memory is shared with us."""
        self.may_lock_all()
        self.all_unchecked = assertion & ASSERT_NOCHECK
        if not self.all_unchecked:
            self.take_locks(range(self.ranks), FLAG_SHARED)
        self.locked_all = True
        return 0

    cpdef int unlock_all(self) except -1:
        """Accesses are complete everywhere, and all locks given back."""
        self.may_unlock_all()
        self.locked_all = False
        if self.all_unchecked:
            self.complete_at(range(self.ranks), False)
            return 0
        return self.release(range(self.ranks))

    cpdef int sync(self) except -1:
        """Public and private copy are one; only the processor's order of accesses is left to see to."""
        full_fence()
        progress_or_yield()
        return 0

    cpdef int flush(self, int target, bint local) except -1:
        """Complete accesses to a target, or to all."""
        self.may_flush(target)
        self.complete_at(range(self.ranks) if target < 0 else (target,), local)
        return progress() & 0                    # who looks at its own memory in a loop waits for the others' orders

    # -- dynamic windows ----------------------------------------------------------------------------------------------

    cpdef int attach(self, size_t address, Py_ssize_t size) except -1:
        """Add memory to this process's part."""
        self.may_attach("Attach")
        self.service.attachments.add(address, size)
        return 0

    cpdef int detach(self, size_t address) except -1:
        """Take memory away again."""
        self.may_attach("Detach")
        self.service.attachments.remove(address)
        return 0

    cpdef int may_free(self) except -1:
        """Whether Free belongs here."""
        if self.exposure is not None:
            raise MPIError(ERR_RMA_SYNC, "Free between Post and Wait: end the epoch first")
        return Accesses.may_free(self)

    cpdef int free(self) except -1:
        """All ranks meet: nobody will order anything of this one."""
        self.may_free()
        self.complete_at(range(self.ranks), False)
        self.service.settle()
        self.meet(WIN_FREE)
        self.service.settle()
        return self.service.close()
