# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""Epochs of Post and Wait, Start and Complete.  See `active_target.pxd`."""
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.stdint cimport uint32_t
from libc.string cimport memcpy

from ompy.core.atomic cimport acquire32, fetch_to_write, release32
from ompy.core.board cimport WIN_START, WIN_WAIT
from ompy.core.progress cimport progress_or_yield
from ompy.core.reach cimport has_gone
from ompy.core.window cimport ASSERT_NOCHECK, Window
from ompy.mca.osc cimport Access
from ompy_osc_sm.rank_state cimport Completion, DataHeader, completion_at, has_reached, posted_to
from ompy_osc_sm.remote cimport Remote
from ompy_osc_sm.waiting cimport REACHED32, Condition

from ompy.core.errors import ERR_RMA_SYNC, MPIError

# At another rank's word before the wait is one as any other; where somebody may have an order for this rank it is at once.
cdef enum:
    LOOKS = 200
    # Data begin at a multiple of so many bytes.
    ALIGNMENT = 8


cdef inline size_t padded(size_t nbytes) noexcept nogil:
    return (nbytes + ALIGNMENT - 1) & ~<size_t> (ALIGNMENT - 1)


cdef class ActiveTarget(Remote):
    """Epochs in which the targets say when, too."""

    def __init__(self, str component not None, Window window not None):
        Remote.__init__(self, component, window)
        self.posts = <uint32_t *> PyMem_Calloc(6 * self.ranks, sizeof(uint32_t))
        self.ahead = <char *> PyMem_Calloc(self.ranks, 1)
        if self.posts == NULL or self.ahead == NULL:
            raise MemoryError()
        self.starts = self.posts + self.ranks
        self.completes = self.starts + self.ranks
        self.waits = self.completes + self.ranks
        self.waited = self.waits + self.ranks
        self.used = self.waited + self.ranks

    def __dealloc__(self):
        PyMem_Free(self.posts)
        PyMem_Free(self.ahead)

    # -- the target's side --------------------------------------------------------------------------------------------

    cpdef int post(self, list ranks, int assertion) except -1:
        """Open this process's memory to the ranks."""
        cdef int rank
        if self.exposed is not None:
            raise MPIError(ERR_RMA_SYNC, "Post again before Wait or a Test that said yes")
        self.exposed = ranks
        if not assertion & ASSERT_NOCHECK:
            for rank in ranks:
                self.posts[rank] += 1
                release32(posted_to(&self.room, rank, self.rank, self.posts[rank]), self.posts[rank])
            self.ring()
            for rank in ranks:
                fetch_to_write(posted_to(&self.room, rank, self.rank, self.posts[rank] + 1))
        return 0

    cpdef int wait(self) except -1:
        """Until all ranks of `post` have completed; what they put ahead of it is made now."""
        cdef int rank
        cdef uint32_t turn
        cdef Completion *completion
        cdef list ranks = self.exposed
        cdef dict failed = None
        if ranks is None:
            raise MPIError(ERR_RMA_SYNC, "Wait without Post")
        for rank in ranks:
            turn = self.waits[rank] + 1
            try:
                self.await_count(&completion_at(&self.room, self.rank, rank, turn).completed, turn, rank, WIN_WAIT)
            except MPIError as error:
                if failed is None:
                    failed = {}
                failed[rank] = error
        # Those that have failed complete no more: the epoch is over without them.
        self.exposed = None
        for rank in ranks:
            if failed is None or rank not in failed:
                self.waits[rank] += 1
                completion = completion_at(&self.room, self.rank, rank, self.waits[rank])
                self.waited[rank] = completion.waited
                if completion.used:
                    self.carry_out(self.rank, completion, completion.used)
        if failed is not None:
            raise next(iter(failed.values()))
        return 0

    cpdef bint test(self) except -1:
        """Whether all ranks of `post` have completed."""
        cdef int rank
        cdef uint32_t turn
        if self.exposed is None:
            raise MPIError(ERR_RMA_SYNC, "Test without Post")
        for rank in self.exposed:
            turn = self.waits[rank] + 1
            if not has_reached(acquire32(&completion_at(&self.room, self.rank, rank, turn).completed), turn):
                if rank != self.rank and has_gone(self.room.reaches[rank]):
                    continue                     # Wait says so
                progress_or_yield()
                return False
        self.wait()
        return True

    # -- the origin's -------------------------------------------------------------------------------------------------

    cpdef int start(self, list ranks, int assertion) except -1:
        """Returns when every one of the ranks has posted, or need not have yet."""
        cdef int rank
        cdef uint32_t turn
        self.may_start()
        if not assertion & ASSERT_NOCHECK:
            for rank in ranks:
                turn = self.starts[rank] + 1
                if self.may_be_ahead(rank):
                    if has_reached(self.waited[rank], self.completes[rank] - 1):
                        continue
                    turn -= 1
                self.await_count(posted_to(&self.room, self.rank, rank, turn), turn, rank, WIN_START)
            for rank in ranks:
                self.starts[rank] += 1
                self.ahead[rank] = self.may_be_ahead(rank)
        return self.begin_towards(ranks)

    cdef bint put_ahead(self, Access access, size_t nbytes) except -1:
        cdef int target = access.target
        cdef size_t used = self.used[target] + sizeof(DataHeader) + nbytes
        cdef char *data
        cdef DataHeader *header
        if used > self.room.capacity or not access.origin_type.contiguous or not access.target_type.contiguous:
            return False
        data = &completion_at(&self.room, target, self.rank, self.completes[target] + 1).data[self.used[target]]
        header = <DataHeader *> data
        header.displacement = access.displacement * self.window.units[target]
        header.size = nbytes
        memcpy(data + sizeof(DataHeader), <char *> access.origin_address, nbytes)
        self.used[target] = <uint32_t> padded(used)
        return True

    cdef int see_post(self, int target) except -1:
        """The target's memory is open, and holds what has been put so far."""
        cdef uint32_t turn = self.starts[target], used = self.used[target]
        self.await_count(posted_to(&self.room, self.rank, target, turn), turn, target, WIN_START)
        self.ahead[target] = False
        self.used[target] = 0
        return self.carry_out(target, completion_at(&self.room, target, self.rank, self.completes[target] + 1), used)

    cdef int carry_out(self, int target, const Completion *completion, size_t used) except -1:
        """Make the puts, in the memory of a target that has posted, or in this process's own."""
        cdef const char *data = &completion.data[0]
        cdef const char *end = data + used
        cdef const DataHeader *header
        while data < end:
            header = <const DataHeader *> data
            data += sizeof(DataHeader)
            if self.places[target] != NULL:
                memcpy(self.places[target] + header.displacement, data, header.size)
            else:
                self.transfer(target, <size_t> data, self.remote[target] + header.displacement, header.size, False)
            data += padded(header.size)
        return 0

    cpdef int complete(self) except -1:
        """Tell the targets that all accesses are complete."""
        cdef int rank
        cdef Completion *completion
        self.settle_orders()
        cdef list ranks = self.end_started()
        for rank in ranks:
            self.completes[rank] += 1
            completion = completion_at(&self.room, rank, self.rank, self.completes[rank])
            completion.waited = self.waits[rank]
            completion.used = self.used[rank]
            release32(&completion.completed, self.completes[rank])
            self.used[rank] = 0
            self.ahead[rank] = False
        self.ring()
        for rank in ranks:
            fetch_to_write(completion_at(&self.room, rank, self.rank, self.completes[rank] + 1))
        return self.poll_now_and_then()

    cdef int await_count(self, uint32_t *word, uint32_t value, int peer, int operation) except -1:
        cdef Condition condition
        cdef int _look
        for _look in range(1 if self.crowded or self.serving else LOOKS):
            if has_reached(acquire32(word), value):
                return 0
        condition.what = REACHED32
        condition.place = word
        condition.value = value
        condition.peer = peer
        return self.await_(&condition, operation)
