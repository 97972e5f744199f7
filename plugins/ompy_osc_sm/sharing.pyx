# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""How a window comes to be shared.  See `sharing.pxd`."""
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from ompy.core.atomic cimport acquire32, add32
from ompy.core.doorbell cimport Bell
from ompy.core.heap cimport give_back, holds, take
from ompy.core.reach cimport Reach, seen
from ompy.core.window cimport FLAVOR_DYNAMIC, FLAVOR_SHARED
from ompy.mca.agreement cimport gather
from ompy_osc_sm.rank_state cimport Header, bytes_needed, lay_out
from ompy_osc_sm.mailbox cimport start_serving, stop_serving, open_outbox, own_mailbox, refuse
from ompy_osc_sm.neighbours cimport CARD_SIZE, Neighbour, forget, meet, own_card
from ompy_osc_sm.waiting cimport Waits

from ompy.core.errors import MPIError

cdef enum:
    NO_HEAP = 1
    NO_ROOM = 2
    NO_MAPPING = 3
    NO_KERNEL = 4
    MAYBE_KERNEL = 5

cdef dict REASONS = {
    NO_HEAP: "rank {} has no shared heap (btl/sm makes it)",
    NO_ROOM: "rank {} has no room in its shared heap for the words of all ranks",
    NO_MAPPING: "rank {} can't map the shared heap of another one",
    NO_KERNEL: "rank {} can't get at another one's memory, which is not in the shared heap: the kernel does not copy it",
    MAYBE_KERNEL: "rank {} can't get at all that another one may attach: the kernel copies nothing outside the shared heap",
}

cdef struct Row:
    int64_t problem
    int64_t base                                 # of this rank's memory
    int64_t words                                # rank 0: where the states are
    int64_t mailbox                              # of a rank whose memory may lie outside of its heap
    char card[CARD_SIZE]

# (address, members besides rank 0): states of windows that are gone, which slow members may still look at.
cdef list leaving = []


cdef void *room_for(size_t nbytes, bint shared) noexcept:
    cdef bint fresh = False
    cdef void *memory
    if not shared:
        return calloc(nbytes, 1)
    memory = take(nbytes, &fresh)
    if memory != NULL and not fresh:
        memset(memory, 0, nbytes)
    return memory


cdef void drop(void *memory) noexcept:
    if memory != NULL and holds(<size_t> memory, 1):
        give_back(memory)
    else:
        free(memory)


cdef int sweep() except -1:
    """Give back what every member has left."""
    global leaving
    cdef size_t address
    cdef list still = []
    for address, guests in leaving:
        if acquire32(&(<Header *> address).left) >= guests:
            drop(<void *> address)
        else:
            still.append((address, guests))
    leaving = still
    return 0


cdef class Sharing(Waits):
    """The memory of a window's ranks, as one of them sees it."""

    def __dealloc__(self):
        if not self.opened:
            drop(self.words)
        self.leave_mailbox()
        PyMem_Free(self.places)
        PyMem_Free(self.remote)
        PyMem_Free(self.owed)

    def share(self, bint kernel):
        """Find everybody's memory; collective.  Why that can't be, the same on every rank, or None.

        Parameters:
            kernel: it may copy what is not in a shared heap.
        """
        cdef int rank, ranks = self.ranks
        cdef Row mine
        cdef bytearray all = bytearray(ranks * sizeof(Row))
        cdef Row *rows = <Row *> <char *> all
        cdef bytes card = b""
        self.places = <char **> PyMem_Calloc(ranks, sizeof(char *))
        self.remote = <uint64_t *> PyMem_Calloc(ranks, sizeof(uint64_t))
        self.owed = <char *> PyMem_Calloc(ranks, 1)
        self.bells = <Bell **> PyMem_Calloc(ranks, sizeof(Bell *))
        self.room.reaches = <Reach **> PyMem_Calloc(ranks, sizeof(Reach *))
        if self.places == NULL or self.remote == NULL or self.owed == NULL or self.bells == NULL or self.room.reaches == NULL:
            raise MemoryError()
        self.neighbours = [None] * ranks
        memset(&mine, 0, sizeof(Row))
        mine.base = <int64_t> self.window.base
        if ranks == 1:
            self.words = <char *> room_for(bytes_needed(1), False)
            if self.words == NULL:
                raise MemoryError()
            mine.words = <int64_t> self.words
            rows[0] = mine
        else:
            card = own_card() or b""
            memcpy(mine.card, <char *> card, len(card))
            mine.problem = 0 if card else NO_HEAP
            if card and self.patience and self.is_outside():
                mine.mailbox = <int64_t> own_mailbox()
                self.serving = mine.mailbox != 0
            if self.rank == 0 and card:
                sweep()
                self.words = <char *> room_for(bytes_needed(ranks), True)
                mine.words = <int64_t> self.words
                mine.problem = 0 if self.words != NULL else NO_ROOM
            gather(self.window.parent, <int64_t *> &mine, <int64_t *> rows, sizeof(Row) // sizeof(int64_t))
        for rank in range(ranks):
            if rows[rank].problem:
                return REASONS[rows[rank].problem].format(rank)
        return self.find_all(all, kernel)

    def find_all(self, bytearray all, bint kernel):
        cdef Row *rows = <Row *> <char *> all
        cdef int64_t problem = 0
        cdef int64_t *problems
        cdef int rank
        cdef char *words = self.words
        cdef Neighbour neighbour
        cdef bytearray answers = bytearray(8 * self.ranks)
        for rank in range(self.ranks):
            self.remote[rank] = <uint64_t> rows[rank].base
            if rank == self.rank or self.window.flavor == FLAVOR_SHARED:
                self.places[rank] = <char *> self.window.addresses[rank]
            if rank == self.rank:
                continue
            try:
                neighbour = meet(bytes(rows[rank].card[:CARD_SIZE]).rstrip(b"\0"))
            except MPIError:
                problem = NO_MAPPING
                break
            self.neighbours[rank] = neighbour
            self.bells[rank] = neighbour.doorbell.bell
            self.room.reaches[rank] = &neighbour.reach
            if self.patience:
                open_outbox(&neighbour.outbox, rows[rank].mailbox, &neighbour.reach, neighbour.doorbell.bell,
                            neighbour.doorbell.writer)
            if self.places[rank] == NULL:
                self.places[rank] = seen(&neighbour.reach, self.remote[rank], self.window.sizes[rank])
            if self.places[rank] == NULL and self.window.sizes[rank] and not (kernel and neighbour.by_kernel):
                problem = NO_KERNEL
            if self.window.flavor == FLAVOR_DYNAMIC and not (kernel and neighbour.by_kernel):
                problem = MAYBE_KERNEL
            if rank == 0:
                words = seen(&neighbour.reach, <uint64_t> rows[0].words, bytes_needed(self.ranks))
        if self.ranks > 1:
            gather(self.window.parent, &problem, <int64_t *> <char *> answers, 1)
        else:
            problems = <int64_t *> <char *> answers
            problems[0] = problem
        problems = <int64_t *> <char *> answers
        for rank in range(self.ranks):
            if problems[rank]:
                return REASONS[problems[rank]].format(rank)
        lay_out(&self.room, words, self.rank, self.ranks, self.room.reaches)
        return None

    def is_outside(self) -> bool:
        """May memory of this rank's lie where its heap is not?"""
        return self.window.flavor == FLAVOR_DYNAMIC or self.window.size and not holds(self.window.base, self.window.size)

    @property
    def words_address(self):
        """Where the words that the ranks share are seen here (`rank_state.pxd`), for debuggers."""
        return <size_t> self.room.header

    cpdef int open(self) except -1:
        """This component serves the window."""
        self.opened = True
        if self.serving:
            start_serving()
        return 0

    cdef int leave_mailbox(self) except -1:
        if self.serving and self.opened:
            refuse()
            stop_serving()
        self.serving = False
        return 0

    cdef int leave(self) except -1:
        """This rank uses the words no more."""
        self.leave_mailbox()
        if self.rank == 0 and self.ranks > 1:
            leaving.append((<size_t> self.words, self.ranks - 1))
            self.words = NULL
            sweep()
        elif self.rank == 0:
            drop(self.words)
            self.words = NULL
        else:
            add32(&self.room.header.left, 1)
        if self.window.communicator.spans_jobs:
            forget(self.neighbours)
        return 0
