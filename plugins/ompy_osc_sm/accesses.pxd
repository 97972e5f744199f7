# Accesses: what lies in a heap by the processor, done when the call returns; all else in one of the ways of `remote.pxd`.
#
# Every accumulate into a rank's memory, of whatever length and type, is made by the holder of that rank's word `combining`,
# so that each is atomic for each element, and none is mixed with what the processor could do in one instruction.
from ompy.mca.osc cimport Access
from ompy_osc_sm.active_target cimport ActiveTarget


cdef class Accesses(ActiveTarget):
    cdef dict hints                              # in force on the window

    # Whether the access's elements are seen here, and where.  ERR_RMA_RANGE where they are not attached.
    cdef inline bint sees(self, Access access, char **place) except -1:
        cdef char *memory = self.places[access.target]
        if memory != NULL:
            place[0] = memory + access.displacement * self.window.units[access.target]
            return True
        return self.sees_attached(access, place) if self.dynamic else False

    # `combining` of the target is ours; and no more.
    cdef int take_word(self, int target) except -1
    cdef int wait_for_word(self, int target) except -1
    cdef int give_word_back(self, int target) except -1

    # The elements at `place` with what the origin has, which is packed where `packed` is not NULL.
    cdef int combine_at(self, Access access, char *place, const char *packed) except -1
    cdef int update(self, Access access, bint fetch, bint modify, const char *packed,
                    const char *compare) except -1
    cdef int update_here(self, Access access, bint fetch, bint modify, const char *packed, const char *compare) except -1
    # Between packed bytes here and the target's elements, by the kernel where they lie together.
    cdef int move_elements(self, Access access, bint inward, char *packed, Py_ssize_t nbytes) except -1
    cdef int update_in_turns(self, Access access, char *place, bint fetch, bint modify, Py_ssize_t count) except -1
    cdef int update_at(self, Access access, char *place, bint fetch, bint modify, const char *packed,
                       const char *compare) except -1
