# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""Put, get and accumulates by loads and stores.  See `accesses.pxd`."""
from cpython.bytearray cimport PyByteArray_AS_STRING
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy

from ompy.core.basic cimport basics
from ompy.core.board cimport WIN_FLUSH
from ompy.core.convertor cimport pack_all, unpack_all
from ompy.core.request cimport Request
from ompy.core.typemap cimport predefined
from ompy.mca.accumulate cimport NO_OP, REPLACE, check_operation, combine, combine_packed, swap_if_equal
from ompy.mca.osc cimport Access
from ompy_osc_sm.active_target cimport ActiveTarget
from ompy_osc_sm.rank_state cimport end_combining, state_of, try_combining
from ompy_osc_sm.remote cimport copy, room_for
from ompy_osc_sm.waiting cimport ENDED, Condition

cdef extern from "Python.h":
    bint PyGC_Disable()
    bint PyGC_Enable()

# Looks at `combining` before the wait is one like any other: most accumulates are over by then.
cdef enum:
    LOOKS = 400
    # Bytes up to which an accumulate is never worth an interruption.
    LONG = 4096


cdef class Accesses(ActiveTarget):
    """How this rank reads and writes the others' memory."""

    cpdef Request put(self, Access access):
        """Write to the target's memory."""
        cdef Py_ssize_t nbytes = access.origin_count * access.origin_type.size
        cdef char *place = NULL
        self.may_access(access, nbytes)
        if nbytes == 0 or self.ahead[access.target] and self.put_ahead(access, nbytes):
            return None
        self.await_exposure(access.target)
        if self.sees(access, &place):
            copy(<char *> access.origin_address, access.origin_count, access.origin_type,
                 place, access.target_count, access.target_type)
        else:
            self.put_remote(access)
        return None

    cpdef Request get(self, Access access):
        """Read the target's memory."""
        cdef Py_ssize_t nbytes = access.origin_count * access.origin_type.size
        cdef char *place = NULL
        self.may_access(access, nbytes)
        if nbytes == 0:
            return None
        self.await_exposure(access.target)
        if self.sees(access, &place):
            copy(place, access.target_count, access.target_type,
                 <char *> access.origin_address, access.origin_count, access.origin_type)
        else:
            self.get_remote(access, access.origin_address, access.origin_count, access.origin_type)
        return None

    cpdef Request accumulate(self, Access access):
        """Combine the origin's data into the target's memory."""
        cdef Py_ssize_t nbytes = access.origin_count * access.origin_type.size
        self.may_access(access, nbytes)
        if nbytes == 0:
            return None
        check_operation(access)
        self.await_exposure(access.target)
        self.combine_all(access, False) if not is_plain(access) else self.update(access, False, True, NULL, NULL)
        return None

    cpdef Request get_accumulate(self, Access access):
        """Combine, and fetch what was there before; with NO_OP the origin's side is not looked at."""
        cdef bint reads = access.operation is NO_OP
        cdef Py_ssize_t nbytes = access.result_count * access.result_type.size
        self.may_access(access, nbytes)
        if not reads:
            self.may_access(access, access.origin_count * access.origin_type.size)
        if nbytes == 0:
            return None
        if not reads:
            check_operation(access)
        self.await_exposure(access.target)
        if reads:
            if access.target_type.contiguous and access.result_type.contiguous:
                self.update(access, True, False, NULL, NULL)
            else:
                self.combine_all(access, True)
            return None
        if is_plain(access) and access.result_type.contiguous:
            self.update(access, True, True, NULL, NULL)
        else:
            self.combine_all(access, True)
        return None

    cpdef Request compare_and_swap(self, Access access):
        """Replace one element if it equals another, and fetch what was there."""
        cdef Py_ssize_t nbytes = access.origin_type.size
        access.target_count = access.result_count = 1
        access.target_type = access.result_type = access.origin_type
        self.may_access(access, nbytes)
        self.await_exposure(access.target)
        if access.origin_type.contiguous:
            self.update(access, True, True, <char *> access.origin_address, <char *> access.compare_address)
            return None
        pair = bytearray(2 * nbytes)
        pack_all(<char *> access.compare_address, 1, access.origin_type, PyByteArray_AS_STRING(pair))
        pack_all(<char *> access.origin_address, 1, access.origin_type, PyByteArray_AS_STRING(pair) + nbytes)
        self.update_quietly(access, True, True, pair, True)
        return None

    def combine_all(self, Access access, bint fetch):
        """An accumulate of elements that are not in one piece on both sides."""
        cdef bint modify = access.operation is not NO_OP
        packed = bytearray(access.origin_count * access.origin_type.size if modify else 0)
        if modify:
            pack_all(<char *> access.origin_address, access.origin_count, access.origin_type, PyByteArray_AS_STRING(packed))
        self.update_quietly(access, fetch, modify, packed, False)

    def update_quietly(self, Access access, bint fetch, bint modify, bytearray packed, bint swap):
        """`update` where Python objects are made: a collection of garbage could run a finaliser that accumulates, too."""
        cdef char *data = PyByteArray_AS_STRING(packed)
        cdef bint enabled = PyGC_Disable()
        try:
            if swap:
                self.update(access, fetch, modify, data + len(packed) // 2, data)
            else:
                self.update(access, fetch, modify, data, NULL)
        finally:
            if enabled:
                PyGC_Enable()

    # -- one at a time ------------------------------------------------------------------------------------------------

    cdef int take_word(self, int target) except -1:
        cdef int _look
        if self.ranks == 1:
            return 0
        for _look in range(1 if self.crowded else LOOKS):
            if try_combining(&self.room, target):
                return 0
        return self.wait_for_word(target)

    cdef int wait_for_word(self, int target) except -1:
        cdef Condition condition
        condition.what = ENDED
        condition.place = &state_of(&self.room, target).combining
        condition.peer = target
        while not try_combining(&self.room, target):
            self.await_(&condition, WIN_FLUSH)
        return 0

    cdef int give_word_back(self, int target) except -1:
        if self.ranks > 1:
            end_combining(&self.room, target)
            self.ring()
        return 0

    cdef int update(self, Access access, bint fetch, bint modify, const char *packed,
                    const char *compare) except -1:
        """Fetch what there is, and change it: with `compare`, to `packed` where it is equal; else by the operation."""
        cdef char *place = NULL
        cdef Py_ssize_t nbytes
        if self.sees(access, &place):
            nbytes = access.target_count * access.target_type.size
            if nbytes > LONG and packed == NULL and compare == NULL and access.target_type.contiguous:
                granularity = self.hints["mpi_accumulate_granularity"]
                if granularity:
                    return self.update_in_turns(access, place, fetch, modify,
                                                (max(granularity, LONG) - 1) // access.target_type.size + 1)
            self.take_word(access.target)
            try:
                self.update_at(access, place, fetch, modify, packed, compare)
            finally:
                self.give_word_back(access.target)
            return 0
        while True:
            self.settle_order(access.target)
            self.take_word(access.target)
            # While this waited for the word, a signal handler or another thread may have left an order in the slot.  With its
            # end the program's objects may go, whose finalisers may want the word, too.
            if not self.outbox_of(access.target).outstanding:
                break
            self.give_word_back(access.target)
        try:
            if not self.order_update(access, fetch, modify, packed, compare):
                self.update_here(access, fetch, modify, packed, compare)
        finally:
            self.give_word_back(access.target)
        return 0

    cdef int update_here(self, Access access, bint fetch, bint modify, const char *packed, const char *compare) except -1:
        """`update` of memory that is not seen here, by this process."""
        cdef Py_ssize_t nbytes = access.target_count * access.target_type.size
        cdef char *elements
        if modify and not fetch and packed == NULL and access.target_type.contiguous:
            return self.combine_pieces(access, <const char *> access.origin_address, 0, nbytes)
        elements = room_for(2 * nbytes, access.target)
        try:
            self.move_elements(access, True, elements, nbytes)
            if modify and packed == NULL:
                pack_all(<char *> access.origin_address, access.origin_count, access.origin_type, elements + nbytes)
                packed = elements + nbytes
            if fetch:
                unpack_all(elements, nbytes, <char *> access.result_address, access.result_count, access.result_type)
            if not modify or compare != NULL and memcmp(elements, compare, nbytes) != 0:
                return 0
            if compare != NULL or access.operation is REPLACE:
                memcpy(elements, packed, nbytes)
            else:
                combine_packed(access.operation, packed, elements, nbytes // basics[access.target_type.basic].size,
                               predefined(access.target_type.basic))
            self.move_elements(access, False, elements, nbytes)
        finally:
            free(elements)
        return 0

    cdef int move_elements(self, Access access, bint inward, char *packed, Py_ssize_t nbytes) except -1:
        if access.target_type.contiguous:
            return self.transfer(access.target, <size_t> packed, self.address_of(access), nbytes, inward)
        return self.move_blocks(access, inward, packed)

    cdef int update_in_turns(self, Access access, char *place, bint fetch, bint modify, Py_ssize_t count) except -1:
        """`update` of so many elements at a time, all contiguous: others come in between."""
        cdef Access part = Access()
        cdef Py_ssize_t done = 0, start, left = access.target_count
        part.target = access.target
        part.operation = access.operation
        part.origin_type = part.result_type = part.target_type = access.target_type
        while left:
            start = done * access.target_type.size
            count = min(count, left)
            part.origin_count = part.result_count = part.target_count = count
            part.origin_address = access.origin_address + start
            part.result_address = access.result_address + start
            self.take_word(access.target)
            try:
                self.update_at(part, place + start, fetch, modify, NULL, NULL)
            finally:
                self.give_word_back(access.target)
            done += count
            left -= count
        return 0

    cdef int update_at(self, Access access, char *place, bint fetch, bint modify, const char *packed,
                       const char *compare) except -1:
        if fetch:
            copy(place, access.target_count, access.target_type,
                 <char *> access.result_address, access.result_count, access.result_type)
        if compare != NULL:
            swap_if_equal(compare, packed, place, access.target_type)
        elif modify:
            self.combine_at(access, place, packed)
        return 0

    cdef int combine_at(self, Access access, char *place, const char *packed) except -1:
        if packed != NULL:
            return combine(access.operation, packed, place, access.target_count, access.target_type)
        return access.operation.reduce(<char *> access.origin_address, place, access.target_count, access.target_type)


cdef inline bint is_plain(Access access) noexcept:
    """Do origin and target lie alike, so that an operation takes them as they are?"""
    if access.origin_type.contiguous and access.target_type.contiguous:
        return True
    return access.origin_type is access.target_type and access.origin_count == access.target_count
