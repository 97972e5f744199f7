# Memory of targets that is not seen here.  Its owner reads or changes it, where that is inside MPI, through its mailbox
# (`mailbox.pxd`).  What is in one piece and long it does alone, or a share of it while the kernel copies the rest for the
# origin, or nothing of it, as was quickest of late (`ompy/core/pace.pxd`).  Everything else, and what it does not take in
# time, the kernel copies for the origin.
from libc.stdint cimport int64_t, uint64_t

from ompy.core.convertor cimport Convertor, copy_typed
from ompy.core.copying cimport copy_long
from ompy.core.typemap cimport Typemap
from ompy.mca.osc cimport Access
from ompy_osc_sm.attached cimport Attached
from ompy_osc_sm.mailbox cimport Kind, Outbox, Slot
from ompy_osc_sm.neighbours cimport Neighbour


cdef inline int copy(char *origin, Py_ssize_t origin_count, Typemap origin_type,
                     char *target, Py_ssize_t target_count, Typemap target_type) except -1:
    if origin_type.contiguous and target_type.contiguous:
        copy_long(target, origin, origin_count * origin_type.size)
        return 0
    return copy_typed(origin, origin_count, origin_type, target, target_count, target_type)


cdef char *room_for(Py_ssize_t nbytes, int target) except NULL


cdef class Remote(Attached):
    cdef inline uint64_t address_of(self, Access access) noexcept:
        return self.remote[access.target] + access.displacement * self.window.units[access.target]

    # Before anything else is done to a target.
    cdef inline int settle_order(self, int target) except -1:
        return self.complete_order(target) if self.outbox_of(target).outstanding else 0

    # Before accesses are to be complete.
    cdef inline int settle_orders(self, int target=-1) except -1:
        return self.complete_orders(target) if self.owed_count else 0

    cdef int complete_order(self, int target) except -1
    cdef int complete_orders(self, int target) except -1           # -1: of all
    cdef int owe(self, Access access) except -1

    cdef int put_remote(self, Access access) except -1
    cdef int put_packed(self, Access access, char *packed, Py_ssize_t nbytes) except -1
    cdef int get_remote(self, Access access, size_t address, Py_ssize_t count, Typemap typemap) except -1
    cdef int get_packed(self, Access access, char *packed, Py_ssize_t nbytes) except -1
    cdef inline Outbox *outbox_of(self, int target) noexcept:
        return &(<Neighbour> self.neighbours[target]).outbox

    cdef int copy_run(self, Access access, Kind kind, size_t here, size_t nbytes) except -1
    cdef int accumulate_run(self, Access access, int number, const char *operand, size_t nbytes) except -1
    # How many bytes the target has done.
    cdef size_t order_copy(self, Access access, Kind kind, char *here, size_t nbytes, bint turned) except? 0
    # Whether the target has carried it out.
    cdef bint order_update(self, Access access, bint fetch, bint modify, const char *packed, const char *compare) except -1
    cdef bint is_done(self, Access access, Outbox *outbox, int64_t patience) except -1
    # Where this process's part of a long order is.
    cdef void name_memory(self, Slot *slot, size_t here) noexcept

    cdef int transfer(self, int target, size_t here, uint64_t there, size_t size, bint inward) except -1
    cdef size_t copy_jointly(self, Access access, size_t here, size_t begin, size_t nbytes, bint inward,
                             bint jointly) except? 0
    cdef size_t combine_jointly(self, Access access, int number, const char *operand, size_t done, size_t end) except? 0
    cdef int check_moved(self, int error, int target, uint64_t there, size_t size, bint inward) except -1
    # Between packed bytes here and the target's elements, which do not lie together.
    cdef int move_blocks(self, Access access, bint inward, char *packed) except -1
    # As far as the target carries it out; by the kernel from there on.
    cdef int order_blocks(self, Access access, Convertor convertor, bint inward, char *packed) except -1
    cdef int read_blocks(self, Access access, Convertor convertor, char *packed) except -1
    cdef int transfer_blocks(self, int target, Convertor convertor, bint inward, char *packed) except -1
    cdef int combine_pieces(self, Access access, const char *operand, size_t done, size_t end) except -1
