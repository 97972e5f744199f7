# Accesses, each of them done when its call returns: what lies in a heap by the processor, everything else by its owner, where
# that is inside MPI and there is little to do (`mailbox.pxd`), or by the kernel.
# Every accumulate into a rank's memory, of whatever length and type, is made by the holder of that rank's word `combining`,
# so that each is atomic for each element, and none is mixed with what the processor could do in one instruction.
from libc.stdint cimport uint64_t

from ompy.core.typemap cimport Typemap
from ompy.mca.osc cimport Access
from ompy_osc_sm.attached cimport Attached
from ompy_osc_sm.mailbox cimport LONGEST, Kind, Outbox


cdef class Accesses(Attached):
    # Where the access's elements are seen here; NULL: they are not.  ERR_RMA_RANGE where they are not attached.
    cdef inline char *place_of(self, Access access) except? NULL:
        cdef char *memory = self.places[access.target]
        if memory != NULL:
            return memory + access.displacement * self.window.units[access.target]
        return self.attached_place(access) if self.dynamic else NULL

    # `combining` of the target is ours; and no more.
    cdef int take_word(self, int target) except -1
    cdef int wait_for_word(self, int target) except -1
    cdef int give_word_back(self, int target) except -1

    # Memory that is not seen here.  Small elements that are in one piece: has the target changed or read them for us?
    cdef inline bint may_order(self, Access access, size_t nbytes) noexcept:
        return self.patience and nbytes <= LONGEST and access.target_type.contiguous
    cdef bint order_copy(self, Access access, Kind kind, char *here, size_t nbytes) except -1
    cdef bint order_update(self, Access access, bint fetch, bint modify, const char *packed, const char *compare) except -1
    cdef bint is_done(self, Access access, Outbox *outbox) except -1
    # Otherwise: an image is a copy of what is between the first and the last byte of the target's elements.
    cdef uint64_t address_of(self, Access access) noexcept
    cdef int transfer(self, Access access, size_t here, uint64_t there, size_t size, bint inward) except -1
    cdef int put_remote(self, Access access) except -1
    cdef int get_remote(self, Access access, size_t address, Py_ssize_t count, Typemap typemap) except -1
    cdef int write_back(self, Access access, char *image, Py_ssize_t first) except -1

    # The elements at `place` with what the origin has, which is packed where `packed` is not NULL.
    cdef int combine_at(self, Access access, char *place, const char *packed) except -1
    cdef int update(self, Access access, bint fetch, bint modify, const char *packed,
                    const char *compare) except -1
    cdef int update_image(self, Access access, bint fetch, bint modify, const char *packed, const char *compare) except -1
    cdef int update_in_turns(self, Access access, char *place, bint fetch, bint modify, Py_ssize_t count) except -1
    cdef int update_at(self, Access access, char *place, bint fetch, bint modify, const char *packed,
                       const char *compare) except -1
