# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""What the ranks of a dynamic window have attached.  See `attached.pxd`."""
from functools import partial

from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.stdint cimport uint64_t
from libc.string cimport memcpy, memmove

from ompy.core.atomic cimport acquire, full_fence, release
from ompy.core.reach cimport Reach, has_gone, seen
from ompy.core.typemap cimport span
from ompy.core.window cimport FLAVOR_DYNAMIC, Window
from ompy.mca.osc cimport Access
from ompy.mca.pieces cimport require_attached
from ompy_osc_sm.rank_state cimport RankState, state_of
from ompy_osc_sm.mailbox cimport refuse
from ompy_osc_sm.sharing cimport Sharing, drop, room_for

from ompy.core.errors import ERR_NO_MEM, ERR_PROC_FAILED, MPIError
from ompy.mca.attachments import Attachments

cdef extern from "<sched.h>" nogil:
    int sched_yield()

cdef enum:
    FIRST_CAPACITY = 256
    LOOKS = 64                                   # at a list that is being changed before the core is offered to its owner


cdef inline bint contains(const Stretch *stretch, uint64_t start, uint64_t nbytes) noexcept nogil:
    cdef uint64_t offset = start - stretch.address
    return offset < stretch.size and nbytes <= stretch.size - offset


cdef inline size_t position(const Stretch *stretches, size_t count, uint64_t address) noexcept nogil:
    """How many begin at or below the address."""
    cdef size_t low = 0, middle
    while low < count:
        middle = (low + count) // 2
        if stretches[middle].address <= address:
            low = middle + 1
        else:
            count = middle
    return low


cdef class Attached(Sharing):
    """What is attached, here and elsewhere."""

    def __init__(self, str component not None, Window window not None):
        Sharing.__init__(self, component, window)
        self.dynamic = window.flavor == FLAVOR_DYNAMIC
        if self.dynamic:
            self.attachments = Attachments()
            self.found = <Found *> PyMem_Calloc(self.ranks, sizeof(Found))
            if self.found == NULL:
                raise MemoryError()

    def __dealloc__(self):
        drop(self.stretches)
        PyMem_Free(self.found)

    # -- the owner's side ---------------------------------------------------------------------------------------------

    cpdef int attach(self, size_t address, Py_ssize_t size) except -1:
        """Add memory to this process's part."""
        cdef size_t place
        self.may_attach("Attach")
        self.attachments.add(address, size)
        if size == 0:
            return 0
        try:
            if self.count == self.capacity:
                self.grow()
        except MPIError:
            self.attachments.remove(address)
            raise
        place = position(self.stretches, self.count, address)
        self.begin_change()
        memmove(&self.stretches[place + 1], &self.stretches[place], (self.count - place) * sizeof(Stretch))
        self.stretches[place].address = address
        self.stretches[place].size = size
        self.count += 1
        self.end_change()
        return 0

    cpdef int detach(self, size_t address) except -1:
        """Take memory away again."""
        cdef size_t place
        self.may_attach("Detach")
        if self.attachments.remove(address):
            place = position(self.stretches, self.count, address)
            self.begin_change()
            memmove(&self.stretches[place - 1], &self.stretches[place], (self.count - place) * sizeof(Stretch))
            self.count -= 1
            self.end_change()
            refuse()
        return 0

    cdef int grow(self) except -1:
        cdef Stretch *old = self.stretches
        cdef size_t capacity = 2 * self.capacity or FIRST_CAPACITY
        cdef Stretch *larger = <Stretch *> room_for(capacity * sizeof(Stretch), self.ranks > 1)
        if larger == NULL:
            raise MPIError(ERR_NO_MEM, f"Attach: no room in the shared heap for a list of {capacity} stretches of memory")
        if self.count:
            memcpy(larger, old, self.count * sizeof(Stretch))
        self.begin_change()
        self.stretches = larger
        self.end_change()
        self.capacity = capacity
        drop(old)
        return 0

    cdef void begin_change(self) noexcept:
        cdef RankState *state = state_of(&self.room, self.rank)
        release(&state.changes, state.changes + 1)
        full_fence()

    cdef void end_change(self) noexcept:
        cdef RankState *state = state_of(&self.room, self.rank)
        state.list = <uint64_t> self.stretches
        state.stretches = self.count
        release(&state.changes, state.changes + 1)

    # -- the others' --------------------------------------------------------------------------------------------------

    cdef bint sees_attached(self, Access access, char **place) except -1:
        cdef Py_ssize_t first = 0, nbytes = span(access.target_type, access.target_count, &first)
        cdef uint64_t start = <uint64_t> (access.displacement + first)
        cdef Found *found = &self.found[access.target]
        if acquire(&state_of(&self.room, access.target).changes) != found.changes \
                or not contains(&found.stretch, start, nbytes):
            self.look_up(access.target, start)
            if not contains(&found.stretch, start, nbytes):
                require_attached(access.target, access.displacement, access.target_count, access.target_type,
                                 partial(self.holding, access.target))
        if access.target == self.rank:
            place[0] = <char *> access.displacement
            return True
        place[0] = seen(self.room.reaches[access.target], start, nbytes)
        if place[0] == NULL:
            return False
        place[0] -= first
        return True

    def holding(self, int target, uint64_t address):
        """The stretch of the target's that the address lies in, as (address, bytes); (0, 0) where there is none."""
        cdef const Stretch *stretch = &self.found[target].stretch
        self.look_up(target, address)
        if contains(stretch, address, 1):
            return stretch.address, stretch.size
        return 0, 0

    cdef int look_up(self, int target, uint64_t address) except -1:
        cdef RankState *state = state_of(&self.room, target)
        cdef Reach *reach = self.room.reaches[target]
        cdef Found *found = &self.found[target]
        cdef const Stretch *stretches
        cdef uint64_t changes, where, count
        cdef size_t place
        cdef unsigned int looks = 0
        while True:
            changes = acquire(&state.changes)
            where, count = state.list, state.stretches
            stretches = <const Stretch *> where if reach == NULL else \
                <const Stretch *> seen(reach, where, count * sizeof(Stretch))
            place = position(stretches, count, address) if stretches != NULL else 0
            found.stretch = stretches[place - 1] if place else Stretch(0, 0)
            full_fence()
            if not changes & 1 and acquire(&state.changes) == changes:
                break
            looks += 1
            if looks % LOOKS == 0:
                with nogil:
                    sched_yield()
                if changes & 1 and has_gone(reach):
                    raise MPIError(ERR_PROC_FAILED, self.death_of(target))
        found.changes = changes
        return 0
