# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""One-sided communication by remote memory access and remote atomics (MPI-4.1, chapter 12).  See `window.pxd`."""
from cpython.bytearray cimport PyByteArray_AS_STRING
from libc.stdint cimport int64_t

from ompy.core.atomic cimport full_fence
from ompy.core.board cimport WIN_FENCE, WIN_FREE, WIN_LOCK, WIN_START, WIN_WAIT
from ompy.core.clock cimport clock_now
from ompy.core.progress cimport progress, progress_or_yield, wait_for, wait_until
from ompy.core.request cimport Request
from ompy.core.signals cimport keep_exceptions, raise_kept
from ompy.core.window cimport ASSERT_NOCHECK, ASSERT_NOSUCCEED, LOCK_EXCLUSIVE, LOCK_SHARED, Window
from ompy.mca.agreement cimport begin_meeting
from ompy.mca.bml cimport Bml
from ompy.mca.btl cimport FLAG_ASYNCHRONOUS
from ompy.mca.remote_window.accesses cimport Accesses
from ompy.mca.remote_window.ways cimport DRAWN, HOLDERS, READING, WAITING, WRITING, Way, number_in

from ompy.core.errors import ERR_PROC_FAILED, ERR_RMA_SYNC, MPIError


# Nanoseconds for which living ranks may keep a lock that a failed one holds, too.
cdef int64_t PATIENCE = 1000000000


cdef class Count(Request):
    """What `await_count` waits for."""
    cdef int64_t *word
    cdef int64_t value
    cdef Way way
    cdef RemoteWindow window


cdef bint has_come(void *context) except -1:
    cdef Count count = <Count> context
    full_fence()
    if count.word[0] > count.value:
        return True
    if count.way.proc.failure is not None:
        count.window.require_alive(count.peer, "before it came to this window's synchronisation")
    return False


cdef class RemoteWindow(Accesses):
    """One window over remote memory access.

    Parameters:
        component: who serves it.
        window: which.
        bml: leads to the BTLs.
    """

    def __init__(self, str component not None, Window window not None, Bml bml not None):
        Accesses.__init__(self, component, window)
        self.bml = bml
        self.starts = [0] * self.ranks
        self.waits = [0] * self.ranks
        self.unchecked = set()

    cpdef int open(self) except -1:
        """Let the others in."""
        cdef Way way
        Accesses.open(self)
        # What a dynamic window holds its owner has to be asked.
        self.direct = not self.dynamic and all([
            way.layer is None or (way.state.btl is not way.layer and way.state.btl.flags & FLAG_ASYNCHRONOUS)
            for way in self.ways
        ])
        return 0

    # -- fence --------------------------------------------------------------------------------------------------------

    cpdef int fence(self, int assertion) except -1:
        """Every rank has entered, and all accesses to this one are complete."""
        self.may_fence()
        self.finish_all(range(self.ranks), False)
        full_fence()
        self.meet(WIN_FENCE)
        full_fence()
        self.fenced = not assertion & ASSERT_NOSUCCEED
        return 0

    cdef int meet(self, int operation) except -1:
        """All ranks are here.  One that was interrupted here goes on waiting when it comes again."""
        cdef Request meeting = self.meeting
        if meeting is None or meeting.operation != operation:
            meeting = self.meeting = begin_meeting(self.window.communicator, operation)
        wait_for(<int *> &meeting.complete, meeting)
        self.meeting = None
        if meeting.error is not None:
            raise meeting.error
        return 0

    def finish_all(self, targets, bint local):
        """Complete the accesses to the targets; the first error when all are over."""
        self.for_each(targets, lambda target: self.finish(target, local))

    # -- post, start, complete, wait ----------------------------------------------------------------------------------

    cdef int64_t *count_of(self, Tally tally, int rank) noexcept:
        return &self.words[HOLDERS + <int> tally * self.ranks + rank]

    cdef int count_up(self, Tally tally, int rank) except -1:
        self.change(rank, HOLDERS + <int> tally * self.ranks + self.rank, "add", 1, 0)
        return self.wake_peer(rank)

    def tell(self, list ranks, Tally tally):
        """Count one up at each of them; the first error when all that live have it."""
        full_fence()
        keep_exceptions()
        try:
            self.for_each(ranks, lambda rank: self.count_up(tally, rank))
        finally:
            raise_kept()

    cpdef int post(self, list ranks, int assertion) except -1:
        """Open this process's memory to the ranks."""
        if self.exposed is not None:
            raise MPIError(ERR_RMA_SYNC, "Post again before Wait or a Test that said yes")
        self.exposed = ranks
        if not assertion & ASSERT_NOCHECK:
            try:
                self.tell(ranks, POSTED)
            except MPIError:
                pass                             # of ranks that have failed: Wait says so
        return 0

    cpdef int start(self, list ranks, int assertion) except -1:
        """Returns when every one of the ranks has posted."""
        cdef int rank
        self.may_start()
        if not assertion & ASSERT_NOCHECK:
            for rank in ranks:
                self.await_count(POSTED, self.starts[rank], rank, WIN_START)
            for rank in ranks:
                self.starts[rank] += 1
        return self.begin_towards(ranks)

    cpdef int complete(self) except -1:
        """Accesses are complete at the targets, which are told."""
        cdef list ranks = self.end_started()
        # The targets wait for it, whatever an access or a signal handler raises.
        keep_exceptions()
        try:
            try:
                self.finish_all(ranks, False)
            finally:
                self.tell(ranks, COMPLETED)
        finally:
            raise_kept()
        return 0

    cpdef int wait(self) except -1:
        """Until all ranks of `post` have completed."""
        cdef int rank
        cdef list ranks = self.exposed
        if ranks is None:
            raise MPIError(ERR_RMA_SYNC, "Wait without Post")
        failed = {}
        for rank in ranks:
            try:
                self.await_count(COMPLETED, self.waits[rank], rank, WIN_WAIT)
            except MPIError as error:
                failed[rank] = error
        # Those that have failed complete no more: the epoch is over without them.
        self.exposed = None
        for rank in ranks:
            if rank not in failed:
                self.waits[rank] += 1
        full_fence()
        for error in failed.values():
            raise error
        return 0

    cpdef bint test(self) except -1:
        """Whether all ranks of `post` have completed."""
        cdef int rank
        if self.exposed is None:
            raise MPIError(ERR_RMA_SYNC, "Test without Post")
        progress_or_yield()
        for rank in self.exposed:
            if self.count_of(COMPLETED, rank)[0] <= self.waits[rank] and (<Way> self.ways[rank]).proc.failure is None:
                return False
        self.wait()
        return True

    cdef int await_count(self, Tally tally, int64_t value, int peer, int operation) except -1:
        cdef Count count = Count()
        count.word = self.count_of(tally, peer)
        count.value = value
        count.way = self.ways[peer]
        count.window = self
        count.operation = operation
        count.communicator = self.window.communicator
        count.peer = peer
        return wait_until(has_come, <void *> count, count)

    # -- locks --------------------------------------------------------------------------------------------------------

    cpdef int lock(self, int target, int kind, int assertion) except -1:
        """Returns when the target's memory is ours."""
        self.may_lock(target, kind)
        if assertion & ASSERT_NOCHECK:
            self.unchecked.add(target)
        else:
            self.take_locks((target,), kind)
        self.note_lock(target, kind)
        return 0

    def take_locks(self, targets, int kind):
        """All of them, or none: what a signal handler has raised meanwhile ends the call once they can be given back."""
        cdef int target
        cdef list taken = []
        try:
            keep_exceptions()
            try:
                for target in targets:
                    self.take_lock(target, kind)
                    taken.append(target)
            finally:
                raise_kept()
        except BaseException:
            keep_exceptions()
            try:
                self.give_locks_back(taken, kind)
            except MPIError:
                pass                             # of ranks that have died since
            finally:
                raise_kept()
            raise

    cdef int take_lock(self, int target, int kind) except -1:
        """Draw a number and wait for it.  It can't be given back: what signal handlers raise is kept meanwhile."""
        cdef int64_t number = -1
        cdef bytearray read = bytearray(8 * (<int> HOLDERS + self.ranks)), drawn
        cdef int64_t *words = <int64_t *> PyByteArray_AS_STRING(read)
        cdef int round = 0, serving = WRITING if kind == LOCK_EXCLUSIVE else READING
        cdef int64_t served = -1, since = 0
        cdef bint again
        self.begin_change(target, HOLDERS + self.rank, "swap", kind, 0)
        self.keep_order(target)
        drawn = self.begin_change(target, DRAWN, "add", 1, 0)
        self.keep_order(target)
        while True:
            self.look(target, HOLDERS + self.ranks, read)
            number = number_in(drawn)
            full_fence()
            if words[serving] == number:
                break
            if round == 0:
                self.change(target, HOLDERS + self.rank, "swap", (number + 1) * WAITING | kind, 0)
            elif self.pass_over(target, words):
                continue
            again = words[serving] == served
            if not again:
                served, since = words[serving], clock_now()
            self.expect_turn(target, words + HOLDERS, number - served if again else 0, clock_now() - since)
            self.pause(round, target, WIN_LOCK)
            round += 1
        if round and not self.change(target, HOLDERS + self.rank, "swap", kind, 0):
            raise MPIError(ERR_PROC_FAILED,
                           f"the lock of rank {target} was given to the next one: a rank took this one for dead")
        if kind == LOCK_SHARED:
            self.begin_change(target, READING, "add", 1, 0)
            self.keep_order(target)
        return 0

    cdef bint pass_over(self, int target, const int64_t *words) except -1:
        """Whether the lock has come to a rank that died while it waited, and we have passed it on."""
        cdef int rank, serving
        cdef int64_t holder
        for rank in range(self.ranks):
            holder = words[HOLDERS + rank]
            if holder < WAITING or rank == self.rank or (<Way> self.ways[rank]).proc.failure is None:
                continue
            serving = READING if holder % WAITING == LOCK_SHARED else WRITING
            if words[serving] != holder // WAITING - 1:
                continue
            if self.change(target, HOLDERS + rank, "cswap", 0, holder) == holder:
                self.change(target, READING, "add", 1, 0)
                self.change(target, WRITING, "add", 1, 0)
                return True
        return False

    cdef int expect_turn(self, int target, int64_t *holders, int64_t before, int64_t unchanged) except -1:
        """Whether a wait for a lock may come to its end.

        Nothing tells which number a holder has: of those `before` this one's, as two looks have found, a failed one has one
        for certain where there are more of them than living holders and ranks that wait, and else where for `unchanged`
        nanoseconds nobody has passed the lock on.
        """
        cdef int rank, living = 0, failed = -1
        cdef Way way
        for rank in range(self.ranks):
            if holders[rank] and rank != self.rank:
                way = self.ways[rank]
                if way.proc.failure is None or holders[rank] >= WAITING:
                    living += 1
                else:
                    failed = rank
        if failed >= 0 and (before > living or unchanged > PATIENCE):
            self.require_alive(failed, f"while it held the lock of rank {target}")
        return 0

    cdef int give_lock_back(self, int target, int kind) except -1:
        if kind == LOCK_EXCLUSIVE:
            self.begin_change(target, READING, "add", 1, 0)
            self.keep_order(target)
        self.begin_change(target, WRITING, "add", 1, 0)
        self.keep_order(target)
        # Last: who sees this word empty sees, at the next look, that the lock was passed on.
        self.change(target, HOLDERS + self.rank, "swap", 0, 0)
        return 0

    def give_locks_back(self, targets, int kind):
        """The first error when all whose ranks live are given back."""
        self.for_each(targets, lambda target: self.give_lock_back(target, kind))

    cpdef int unlock(self, int target) except -1:
        """Accesses are complete at the target, then others may have it."""
        cdef int kind = self.locked[target]
        self.may_unlock(target)
        self.note_unlock(target)
        keep_exceptions()
        try:
            try:
                self.finish(target, False)
            finally:
                full_fence()
                if target in self.unchecked:
                    self.unchecked.discard(target)
                else:
                    self.give_lock_back(target, kind)
        finally:
            raise_kept()
        return progress() & 0                    # who looks at its own memory in a loop serves the others

    cpdef int lock_all(self, int assertion) except -1:
        """Returns when every rank's memory is shared with us."""
        self.may_lock_all()
        self.all_unchecked = assertion & ASSERT_NOCHECK
        if not self.all_unchecked:
            self.take_locks(range(self.ranks), LOCK_SHARED)
        self.locked_all = True
        return 0

    cpdef int unlock_all(self) except -1:
        """Accesses are complete everywhere, and all locks given back."""
        self.may_unlock_all()
        self.locked_all = False
        keep_exceptions()
        try:
            try:
                self.finish_all(range(self.ranks), False)
            finally:
                full_fence()
                if not self.all_unchecked:
                    self.give_locks_back(range(self.ranks), LOCK_SHARED)
        finally:
            raise_kept()
        return progress() & 0

    cpdef int flush(self, int target, bint local) except -1:
        """Complete accesses to a target, or to all."""
        self.may_flush(target)
        if target < 0:
            self.finish_all(range(self.ranks), local)
        else:
            self.finish(target, local)
        full_fence()
        progress()
        return 0

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
        self.finish_all(range(self.ranks), False)
        self.meet(WIN_FREE)
        self.close()
        return 0
