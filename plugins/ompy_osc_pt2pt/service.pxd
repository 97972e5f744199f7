# The target's half: takes the orders of the other ranks, from the progress engine, and carries them out.
#
# An order whose data travels apart waits for it, and the origin's later orders wait behind it.  Those that end an epoch (fence,
# complete, unlock) wait besides until answers that are read out of the window have left it, and whatever is behind such an
# end is not even begun, since it belongs to the next epoch:
#
#     rank 1    accumulate (data on its way) | put (here) | unlock | put (its data not asked for yet)
#     rank 2    complete (a long get's answer is still being read)
#     rank 3    fence carried out | put              `ahead`: not before this rank has left its own fence
#
# What each synchronisation promises of this rank's memory (MPI-4.1, 12.5), and what keeps it:
#
#     Fence     on return, accesses of every rank before its fence are done and none of those after it has begun.  Among few
#               ranks a fence is one word from each to each, behind its accesses; a rank that has all words goes on at once,
#               so its next accesses may come here before the last word does: they wait (`ahead`).  Among many, and in dynamic
#               windows, every rank completes its accesses, then all meet.
#     Wait      on return, accesses of the ranks that were posted to are done: a complete counts when it is carried out.
#     Unlock    the lock goes to the next one when the holder's accesses are done: likewise.
#     Flush     promises something to the origin alone, which waits for its gets itself.
from ompy.core.communicator cimport Communicator
from ompy.core.request cimport Request
from ompy.core.typemap cimport Typemap
from ompy.core.window cimport Window
from ompy_osc_pt2pt.header cimport Order
from ompy_osc_pt2pt.locks cimport LockQueue
from ompy_osc_pt2pt.tally cimport Tally


cdef class Task:
    """An order that has come."""
    cdef Order order
    cdef int origin
    cdef Typemap typemap                         # of the window's side
    cdef object message                          # bytearray that holds the order
    cdef const char *data                        # packed, in `message` or `apart`; NULL: straight into the window
    cdef object apart                            # bytearray for data of its own
    cdef char *place                             # in the window
    cdef Request arriving                        # the data, or None
    cdef object error                            # why it can't be carried out: MPIError, or None


cdef class Origin:
    """One rank's orders that can't be carried out yet."""
    cdef int rank
    cdef list tasks                              # in the order in which they came
    cdef Py_ssize_t begun                        # so many of them have been: data that travels apart is asked for
    cdef list reads                              # answers that are being read out of the window
    cdef bint ahead                              # has fenced while this rank has not
    cdef bint busy                               # its tasks are being carried out; messages may bring us there again
    cdef object failure                          # MPIError: what went wrong since it was last told, or None


cdef class Service:
    cdef Window window
    cdef Communicator communicator
    cdef readonly dict gone                      # rank -> its failure: nothing of it comes any more, no fence will be whole
    cdef readonly Tally posts, completes, fences
    cdef LockQueue locks
    cdef readonly object attachments             # of a dynamic window (`Attachments`)
    cdef Request listener                        # takes the next order
    cdef list origins                            # rank -> Origin, or None before its first order
    cdef dict held                               # rank -> Origin, of those that have tasks
    cdef dict own_answers                        # number -> Request: what this rank asked itself
    cdef list sending                            # answers on their way, other than `Origin.reads`
    cdef int look_at                             # length of it at which complete ones are dropped
    cdef bint due                                # in the engine's list
    cdef bint closed

    cdef int open(self) except -1
    cdef int close(self) except -1
    # This rank has left its fence: what ranks sent after theirs may be carried out.
    cdef int catch_up(self) except -1
    # Where the elements lie in this rank's window; raises ERR_RMA_RANGE.
    cdef char *locate(self, Py_ssize_t displacement, Py_ssize_t count, Typemap typemap) except? NULL
    # Carry out an order without data that this rank gives itself; its answer finishes the request, which may be None.
    cdef int serve_own(self, Order *order, Request answer) except -1
    # All answers are with the progress of their receivers.
    cdef int settle(self) except -1

    cdef int attend(self) except -1
    # Some process has failed.  Who waits here for one of this window's is told.
    cdef int note_failures(self) except -1
    cdef int pass_locks_on(self) except -1
    cdef int listen(self) except -1
    cdef int take(self, Request request) except -1
    cdef Origin origin_of(self, int rank)
    # Carry out what can be.
    cdef int drain(self, Origin origin) except -1
    cdef int begin_more(self, Origin origin) except -1
    cdef int receive_data(self, Task task) except -1
    cdef int carry_out(self, Task task) except -1
    cdef int perform(self, Task task) except -1
    cdef int answer(self, int origin, int number, object words) except -1
    cdef int answer_from_window(self, Task task) except -1
    cdef bytes failure_of(self, int rank)
    cdef bytearray fetched(self, Task task)


# Index of a predefined operation in an order; raises ERR_OP for one that accumulates can't have.
cdef int operation_code(object operation) except -1
