# A collective as a list of rounds that the progress engine advances.
#
# An algorithm writes its sends, receives, local copies and reductions into a schedule once; run blocking, non-blocking
# or again and again (persistent), it is the same schedule.  The steps of a round are started in the order written, a
# local step is over when the next one starts, and a round begins when every message of the one before is complete:
#
#     round 0   recv(1)  recv(2)          linear reduction on rank 0 of 3
#     round 1   reduce   reduce           local: takes no time on the wire
#
# All messages of one run carry one tag, so between two ranks they match in the order in which each wrote them.
# Memory and typemaps named in steps stay alive as long as the schedule: typemaps and operations by reference, scratch by
# ownership, the program's buffers through `Request.buffer`.
from cpython.ref cimport PyObject

from ompy.core.communicator cimport Communicator
from ompy.core.operation cimport Operation
from ompy.core.request cimport Request
from ompy.core.typemap cimport Typemap

cdef enum StepKind:
    STEP_SEND
    STEP_RECV
    STEP_COPY
    STEP_REDUCE

cdef struct Step:
    StepKind kind
    bint last                                    # of its round
    int peer
    size_t source                                # what is sent, copied from, or the input of a reduction
    size_t target                                # where it is received, copied to, or reduced into
    Py_ssize_t source_count
    Py_ssize_t target_count
    PyObject *source_type                        # Typemap, a reference of our own
    PyObject *target_type                        # Typemap, or the Operation of a reduction

cdef enum:
    INLINE_STEPS = 8                             # steps, messages in flight, and bytes of scratch that need no malloc
    INLINE_SCRATCH = 512


cdef class Schedule(Request):
    cdef Step *steps
    cdef int length
    cdef int capacity
    cdef int cursor                              # the next step to start
    cdef PyObject **flight                       # the messages of the round under way, each a Request, in order
    cdef int flying
    cdef int flight_capacity
    cdef int pending                             # how many of them are not complete
    cdef int watched                             # index of the first of those: `peer` is its peer
    cdef bint queued                             # the round is over, the engine will take up the next
    cdef bint awaited                            # counted among the schedules that keep the engine registered
    cdef void **blocks                           # scratch that did not fit inline
    cdef int block_count
    cdef Py_ssize_t scratch_used
    cdef object failure                          # of a step of this rank's alone, told at the end
    cdef Step inline_steps[INLINE_STEPS]
    cdef PyObject *inline_flight[INLINE_STEPS]
    cdef char inline_scratch[INLINE_SCRATCH]

    cpdef int send(self, size_t address, Py_ssize_t count, Typemap typemap, int peer) except -1
    cpdef int recv(self, size_t address, Py_ssize_t count, Typemap typemap, int peer) except -1
    cpdef int copy(self, size_t source, Py_ssize_t source_count, Typemap source_type,
                   size_t target, Py_ssize_t target_count, Typemap target_type) except -1
    # inout[i] = input[i] op inout[i]: of two ranks' data the lower rank's is the input.
    cpdef int reduce(self, size_t input, size_t inout, Py_ssize_t count, Typemap typemap, Operation operation) except -1
    cpdef int next_round(self) except -1
    # Scratch memory for `count` elements, laid out as the typemap wants it; returns the address to use with it.
    cpdef size_t scratch(self, Py_ssize_t count, Typemap typemap) except? 0

    # To be started again and again, under a tag that no other call will ever have.
    cdef int persist(self) except -1
    # Carry it out and return when this rank's part is done.  `start` is the other way: the engine advances it.
    cpdef int run(self) except -1
    cdef bint has_rounds(self) noexcept
    cdef int run_through(self) except -1

    cdef Step *append(self, StepKind kind, int peer, Typemap typemap, object other) except NULL
    cdef int post(self) except -1
    cdef int carry_out(self, const Step *step) except -1
    cdef int tell_failure(self) except -1
    cdef int keep(self, Request request) except -1
    cdef int land(self) except -1
    cdef int await_round(self) except -1
    cdef int advance(self) except -1
    cdef int settle(self) except -1
    cdef int break_off(self, object error) except -1     # it can't be completed
    cdef int note(self) except -1                # whether it is under way
    cdef int look(self) except -1
    cdef int give_up(self) except -1
    cdef int clear(self) except -1


# A schedule on a communicator, with a fresh tag of it, from a pool, for those who run it once, blocking, and give it back with
# `recycle`; `operation` is what the job board calls it.
cdef Schedule take_schedule(Communicator comm, int operation)
# The same without a tag: that is taken once all is written, as an exception before would leave this rank a tag ahead.
cdef Schedule blank_schedule(Communicator comm, int operation, bint pooled=*)
cdef int recycle(Schedule schedule) except -1
