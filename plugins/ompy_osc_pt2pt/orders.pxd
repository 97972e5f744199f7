# The origin's half, lower part: orders on their way, and answers awaited.
from libc.stdint cimport int64_t

from ompy.core.request cimport Request
from ompy.core.typemap cimport Typemap
from ompy.mca.epochs cimport Epochs
from ompy.mca.osc cimport Access
from ompy_osc_pt2pt.header cimport Order
from ompy_osc_pt2pt.service cimport Service


cdef class Orders(Epochs):
    cdef Service service
    cdef Py_ssize_t inline_limit                 # bytes of data that travel with their order
    cdef int next_number
    cdef list pending                            # target -> list of Requests: not yet complete at the origin
    cdef dict unheard                            # target -> answers that a later call waits for, as `hear_all` takes them
    cdef int *look_at                            # target -> length of its list at which complete ones are dropped
    # target -> accesses that were ordered of it, and how many of them are settled: it has answered that they were carried out,
    # or was told the end of the epoch.  A question whose answer another thread waits for settles nothing.
    cdef int64_t *ordered
    cdef int64_t *settled
    # target -> accesses that were ordered of it until the last flush, and whether that was for one alone.  If so, the next
    # one flushes by itself (P+F), so that who puts and flushes in turns sends one order a time:
    #
    #     put flush    put flush    put put flush    put flush    put flush
    #     P F          P+F          P+F P F          P F          P+F
    cdef int64_t *flushed
    cdef bint *alone

    cdef int draw_number(self) noexcept
    # A number for an access that changes the target's memory, and perhaps a flag.
    cdef int number_order(self, int target, Order *order) noexcept
    # If it flushes, too, receive that answer, after the access's own.
    cdef int receive_answer(self, int target, const Order *order) except -1
    # Enter the target's datatype; returns its description, or None where a code says it all.
    cdef object describe(self, Order *order, Access access)
    # Send an order, with its data unless that goes apart.
    cdef int send_order(self, int target, Order *order, bytes description, size_t address, Py_ssize_t count,
                        Typemap typemap) except -1
    # The same and the origin's data, however it goes; returns what is to be waited for before that may change, or None.
    cdef Request send_with_data(self, Access access, Order *order)
    # Remember what is not yet complete at the origin.
    cdef int keep(self, int target, Request request) except -1
    # The program's request for one of our own; None where it wants none, or needs none.
    cdef Request promise(self, Access access, Request request)
    # Send an order that is answered when it, and all before it, has been carried out.
    cdef Request ask(self, int target, int kind, int flags, int operation)
    # Send one that has no answer.
    cdef int tell(self, int target, int kind) except -1
    # Wait for an answer; raises what went wrong at the target.
    cdef int check_answer(self, int target, Request answer) except -1
    # The target was told the end of the epoch: it sees to all that it was ordered so far.
    cdef inline void rely_on(self, int target) noexcept:
        self.settled[target] = self.ordered[target]

    cdef list take_unheard(self, object targets)
    cdef int leave_unheard(self, list answers) except -1
    # Wait until accesses to a target are complete at this side.
    cdef int finish_pending(self, int target) except -1
