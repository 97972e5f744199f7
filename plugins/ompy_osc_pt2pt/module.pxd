# The origin's half: epochs, and accesses as orders to the target.
from ompy.core.request cimport Request
from ompy.core.typemap cimport Typemap
from ompy.mca.osc cimport Access, OscModule
from ompy_osc_pt2pt.header cimport Order
from ompy_osc_pt2pt.service cimport Service


cdef class Pt2pt(OscModule):
    cdef Service service
    cdef Py_ssize_t inline_limit                 # bytes of data that travel with their order
    cdef int rank, ranks
    cdef int next_number
    cdef list pending                            # target -> list of Requests: not yet complete at the origin
    cdef int *look_at                            # target -> length of its list at which complete ones are dropped
    cdef char *dirty                             # target -> accesses were ordered since its last answer
    # -- epochs
    cdef bint fenced                             # between two fences
    cdef list started                            # ranks of `start`, or None
    cdef Request exposure                        # of `post`: complete when all have completed
    cdef char *locked                            # target -> LOCK_EXCLUSIVE, LOCK_SHARED, 0
    cdef bint locked_all, all_unchecked          # by lock_all; without real locks
    cdef set unchecked                           # targets locked with ASSERT_NOCHECK

    cdef int check_epoch(self, int target) except -1
    cdef int check(self, Access access, Py_ssize_t nbytes) except -1
    cdef int draw_number(self) noexcept
    cdef object describe(self, Order *order, Access access)
    cdef int send_order(self, int target, Order *order, bytes description, size_t address, Py_ssize_t count,
                        Typemap typemap) except -1
    cdef Request send_with_data(self, Access access, Order *order)
    cdef Request order_accumulate(self, Access access, int kind)
    cdef Request fetching(self, Access access, int number, Py_ssize_t nbytes)
    cdef Request own_accumulate(self, Access access, int code)
    cdef int keep(self, int target, Request request) except -1
    cdef Request promise(self, Access access, Request request)
    cdef Request ask(self, int target, int kind, int flags, int operation)
    cdef int tell(self, int target, int kind) except -1
    cdef int heed(self, int target, Request answer) except -1
    cdef int finish_pending(self, int target) except -1
    cdef int check_target(self, int target) except -1
