# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""Collectives as lists of rounds that the progress engine advances.  The model is in `schedule.pxd`."""
from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from cpython.ref cimport PyObject, Py_DECREF, Py_INCREF, Py_XDECREF
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from ompy.core.communicator cimport Communicator
from ompy.core.constants cimport MODE_STANDARD
from ompy.core.convertor cimport copy_typed
from ompy.core.operation cimport Operation, failures_kept, raise_failure
from ompy.core.overflow cimport add, multiply, subtract
from ompy.core.proc cimport failures
from ompy.core.progress cimport wait
from ompy.core.progress_source cimport ProgressSource, register_source, unregister_source
from ompy.core.signals cimport keep_a_while, raise_kept_a_while
from ompy.mca cimport pml as layer

from ompy.core.errors import ERR_INTERN, ERR_TRUNCATE, MPIError

cdef enum:
    POOLED_SCHEDULES = 8
    POOLED_STEPS = 256               # a schedule that has grown beyond this isn't worth keeping
    SCRATCH_ALIGNMENT = 64

cdef list pool = []

# Schedules whose round is over, for the engine to take up, and how many there are for those who watch without the GIL.
cdef list queue = []
cdef int queued_count = 0
# Those that are under way, and the failures of processes that they know of.
cdef set under_way = set()
cdef int failures_seen = 0


cdef bint anything_queued(void *context) noexcept nogil:
    return queued_count > 0 or failures != failures_seen


cdef class ScheduleEngine(ProgressSource):
    """Takes schedules from one round to the next, outside the callbacks that completed their messages.

    Registered only while a schedule is under way, so that a program without non-blocking collectives polls nothing more.
    """

    def __cinit__(self):
        self.ready = anything_queued

    cpdef int progress(self) except -1:
        global queue, queued_count
        cdef Schedule schedule
        cdef list due = queue
        if failures != failures_seen:
            return end_failed()
        if not due:
            return 0
        queue = []
        queued_count = 0
        for schedule in due:
            schedule.settle()
        return <int> len(due)

    cpdef bint may_sleep(self) except -1:
        return not anything_queued(NULL)


cdef ScheduleEngine engine = ScheduleEngine()


cdef int note_under_way(Schedule schedule) except -1:
    global failures_seen
    if schedule.complete:
        under_way.discard(schedule)
        if not under_way:
            unregister_source(engine)
    else:
        if not under_way:
            failures_seen = failures
            register_source(engine)
        under_way.add(schedule)
        failure = (<Communicator> schedule.communicator).failure()
        if failure is not None:
            schedule.break_off(failure)
    return 0


cdef int end_failed() except -1:
    """A process has failed: what it had part in can't be completed, whoever the rank that is waited for."""
    global failures_seen
    cdef Schedule schedule
    cdef int ended = 0
    failures_seen = failures
    for schedule in list(under_way):
        failure = (<Communicator> schedule.communicator).failure()
        if failure is not None:
            schedule.break_off(failure)
            ended += 1
    return ended


cdef int message_complete(object context, Request request) except -1:
    """The hook on each message in flight: runs inside whatever completed it, so it only takes note."""
    global queued_count
    cdef Schedule schedule = <Schedule> context
    schedule.pending -= 1
    if (schedule.pending == 0 or request.error is not None) and not schedule.queued:
        schedule.queued = True
        queue.append(schedule)
        queued_count += 1
    elif schedule.pending:
        schedule.look()
    return 0


cdef class Schedule(Request):
    """Rounds of sends, receives, copies and reductions on one communicator.

    Parameters:
        comm: the communicator whose ranks the steps name.
        operation: index into the job board's operations.
        persistent: whether `start` may be called again and again.
    """

    def __cinit__(self, *args, **kwargs):
        self.steps = self.inline_steps
        self.capacity = INLINE_STEPS
        self.flight = self.inline_flight
        self.flight_capacity = INLINE_STEPS

    def __init__(self, Communicator comm not None, int operation=0, bint persistent=False):
        self.communicator = comm
        self.operation = operation
        self.tag = comm.collective_tag()
        if persistent:
            self.persist()

    def __dealloc__(self):
        # Only memory: objects named by steps are references of our own, whatever the state of the attributes.
        cdef int index
        for index in range(self.length):
            Py_XDECREF(self.steps[index].source_type)
            Py_XDECREF(self.steps[index].target_type)
        for index in range(self.flying):
            Py_XDECREF(self.flight[index])
        for index in range(self.block_count):
            free(self.blocks[index])
        PyMem_Free(self.blocks)
        if self.steps != self.inline_steps:
            PyMem_Free(self.steps)
        if self.flight != self.inline_flight:
            PyMem_Free(self.flight)

    cdef int persist(self) except -1:
        self.persistent = True
        self.tag = (<Communicator> self.communicator).persistent_tag()
        return 0

    # -- writing ------------------------------------------------------------------------------------------------------

    cdef Step *append(self, StepKind kind, int peer, Typemap typemap, object other) except NULL:
        cdef Step *larger
        cdef Step *step
        if self.length == self.capacity:
            larger = <Step *> PyMem_Malloc(2 * self.capacity * sizeof(Step))
            if larger == NULL:
                raise MemoryError()
            memcpy(larger, self.steps, self.length * sizeof(Step))
            if self.steps != self.inline_steps:
                PyMem_Free(self.steps)
            self.steps = larger
            self.capacity *= 2
        step = &self.steps[self.length]
        memset(step, 0, sizeof(Step))
        step.kind = kind
        step.peer = peer
        Py_INCREF(typemap)
        step.source_type = <PyObject *> typemap
        if other is not None:
            Py_INCREF(other)
            step.target_type = <PyObject *> other
        self.length += 1
        return step

    cpdef int send(self, size_t address, Py_ssize_t count, Typemap typemap, int peer) except -1:
        """Send `count` elements at `address` to a rank of the communicator (of the remote group, between groups)."""
        cdef Step *step = self.append(STEP_SEND, peer, typemap, None)
        step.source = address
        step.source_count = count
        return 0

    cpdef int recv(self, size_t address, Py_ssize_t count, Typemap typemap, int peer) except -1:
        """Receive `count` elements to `address` from a rank."""
        cdef Step *step = self.append(STEP_RECV, peer, typemap, None)
        step.target = address
        step.source_count = count
        return 0

    cpdef int copy(self, size_t source, Py_ssize_t source_count, Typemap source_type,
                   size_t target, Py_ssize_t target_count, Typemap target_type) except -1:
        """Copy typed data to typed data of the same signature, as a message to oneself would."""
        cdef Step *step
        if source_count * source_type.size == 0:
            return 0
        step = self.append(STEP_COPY, -1, source_type, target_type)
        step.source = source
        step.source_count = source_count
        step.target = target
        step.target_count = target_count
        return 0

    cpdef int reduce(self, size_t input, size_t inout, Py_ssize_t count, Typemap typemap,
                     Operation operation) except -1:
        """`inout[i] = input[i] op inout[i]` for `count` elements."""
        cdef Step *step
        if count == 0:
            return 0
        step = self.append(STEP_REDUCE, -1, typemap, operation)
        step.source = input
        step.source_count = count
        step.target = inout
        return 0

    cpdef int next_round(self) except -1:
        """Steps from here on begin when the messages so far are complete."""
        if self.length:
            self.steps[self.length - 1].last = True
        return 0

    cpdef size_t scratch(self, Py_ssize_t count, Typemap typemap) except? 0:
        """Memory of the schedule's own for `count` elements; the result is their address, lower bound and all."""
        cdef Py_ssize_t steps = 0, low, high, nbytes = 0
        # From the address itself to the end of the last extent, and whatever data lies outside: a reduction of the
        # program's own may look at all of it.
        cdef size_t start
        cdef void **blocks
        low = min(0, typemap.lower_bound, typemap.true_lower_bound)
        high = max(typemap.extent, typemap.lower_bound + typemap.extent, typemap.true_lower_bound + typemap.true_extent)
        if count > 0:
            if multiply(count - 1, typemap.extent, &steps) or add(low, min(0, steps), &low) or add(high, max(0, steps), &high) \
                    or subtract(high, low, &nbytes) or add(nbytes, SCRATCH_ALIGNMENT + 15, &nbytes):
                raise MemoryError(f"scratch memory for a collective of {count} elements that are {typemap.extent} bytes apart")
            nbytes = nbytes - SCRATCH_ALIGNMENT & ~15
        if self.scratch_used + nbytes + 15 <= INLINE_SCRATCH:
            start = ((<size_t> self.inline_scratch + 15) & ~(<size_t> 15)) + self.scratch_used
            self.scratch_used += nbytes
            return start - low
        if self.block_count & (self.block_count - 1) == 0:
            blocks = <void **> PyMem_Realloc(self.blocks, 2 * max(self.block_count, 1) * sizeof(void *))
            if blocks == NULL:
                raise MemoryError()
            self.blocks = blocks
        # Not Python's, which under PYTHONMALLOC=debug touches all of it: where extents are large, most of it never is.
        self.blocks[self.block_count] = malloc(nbytes + SCRATCH_ALIGNMENT)
        if self.blocks[self.block_count] == NULL:
            raise MemoryError(f"{nbytes} bytes of scratch memory for a collective")
        start = (<size_t> self.blocks[self.block_count] + SCRATCH_ALIGNMENT - 1) & ~(<size_t> SCRATCH_ALIGNMENT - 1)
        self.block_count += 1
        return start - low

    # -- carrying out -------------------------------------------------------------------------------------------------

    cdef int keep(self, Request request) except -1:
        cdef PyObject **larger
        if self.flying == self.flight_capacity:
            larger = <PyObject **> PyMem_Malloc(2 * self.flight_capacity * sizeof(PyObject *))
            if larger == NULL:
                raise MemoryError()
            memcpy(larger, self.flight, self.flying * sizeof(PyObject *))
            if self.flight != self.inline_flight:
                PyMem_Free(self.flight)
            self.flight = larger
            self.flight_capacity *= 2
        Py_INCREF(request)
        self.flight[self.flying] = <PyObject *> request
        self.flying += 1
        return 0

    cdef int post(self) except -1:
        """Start the steps of the round at the cursor; the messages are then in flight, in the order written."""
        cdef Step *step
        cdef layer.Pml pml = layer.pml
        cdef Communicator comm = <Communicator> self.communicator
        while self.cursor < self.length:
            step = &self.steps[self.cursor]
            self.cursor += 1
            if step.kind == STEP_SEND:
                self.keep(pml.isend(step.source, step.source_count, <Typemap> step.source_type, step.peer, self.tag,
                                    MODE_STANDARD, comm))
            elif step.kind == STEP_RECV:
                self.keep(pml.irecv(step.target, step.source_count, <Typemap> step.source_type, step.peer, self.tag,
                                    comm))
            else:
                self.carry_out(step)
            if step.last:
                break
        return 0

    cdef int carry_out(self, const Step *step) except -1:
        """A step of this rank's alone.  That it fails is told at the end: peers wait for what this rank has yet to send."""
        try:
            if step.kind == STEP_COPY:
                copy_to_self(step)
            else:
                (<Operation> step.target_type).reduce(<char *> step.source, <char *> step.target, step.source_count,
                                                      <Typemap> step.source_type)
                if failures_kept:
                    raise_failure()
        except BaseException as error:
            if self.failure is None:
                self.failure = error
        return 0

    cdef int tell_failure(self) except -1:
        failure, self.failure = self.failure, None
        raise failure

    cdef int land(self) except -1:
        """The messages of the round are complete: let them go."""
        cdef int index
        cdef Request request
        for index in range(self.flying):
            request = <Request> self.flight[index]
            request.release()
            Py_DECREF(request)
        self.flying = 0
        return 0

    cdef int await_round(self) except -1:
        """Wait for the messages of the round, one after the other: the board shows the first that is missing."""
        cdef int index
        cdef Request request
        for index in range(self.flying):
            request = <Request> self.flight[index]
            if not request.complete:
                request.operation = self.operation
                wait(request)
            if request.error is not None:
                # The rest may never come: their peers wait for one that has failed.
                raise step_error(request.error, request.peer)
        return self.land()

    cdef bint has_rounds(self) noexcept:
        """Several of them."""
        cdef int index
        for index in range(self.length - 1):
            if self.steps[index].last:
                return True
        return False

    cpdef int run(self) except -1:
        """Carry the schedule out, blocking.  Errors: that of the first step that fails, its peer named.

        Where there are several rounds the others count on those that are to come: what a signal handler raises is raised then.
        """
        if not self.has_rounds():
            return self.run_through()
        keep_a_while()
        try:
            return self.run_through()
        finally:
            raise_kept_a_while()

    cdef int run_through(self) except -1:
        self.cursor = 0
        try:
            while self.cursor < self.length:
                self.post()
                if self.flying:
                    self.await_round()
        except BaseException:
            self.give_up()
            self.failure = None
            raise
        return 0 if self.failure is None else self.tell_failure()

    cpdef int start(self) except -1:
        """Begin; the engine advances it.  The request is complete when this rank's part is done."""
        if self.active and not self.complete:
            raise MPIError(ERR_INTERN, "a collective was started again before it was complete")
        self.begin()
        self.cursor = 0
        return self.settle()

    cdef int settle(self) except -1:
        """After a round, and at the start: go on until messages are in flight; all errors become the request's."""
        self.queued = False
        if self.complete:
            return 0
        try:
            self.advance()
        except BaseException as error:
            return self.break_off(error)
        return self.note()

    cdef int break_off(self, object error) except -1:
        self.give_up()
        self.failure = None
        self.fail(error)
        return self.note()

    cdef int note(self) except -1:
        if self.complete == self.awaited:
            self.awaited = not self.complete
            note_under_way(self)
        return 0

    cdef int advance(self) except -1:
        cdef int index
        cdef Request request
        for index in range(self.flying):
            request = <Request> self.flight[index]
            if request.error is not None:
                raise step_error(request.error, request.peer)
        self.land()
        while self.cursor < self.length:
            self.post()
            self.pending = 0
            for index in range(self.flying):
                request = <Request> self.flight[index]
                if request.error is not None:
                    raise step_error(request.error, request.peer)
                if not request.complete:
                    self.pending += 1
                    request.watch(message_complete, self)
            if self.pending:
                self.watched = 0
                self.look()
                return 0
            self.land()
        if self.failure is not None:
            self.tell_failure()
        self.finish()
        return 0

    cdef int look(self) except -1:
        """Keep `peer` at the first rank that the round still waits for."""
        while self.watched < self.flying and (<Request> self.flight[self.watched]).complete:
            self.watched += 1
        if self.watched < self.flying:
            self.peer = (<Request> self.flight[self.watched]).peer
        return 0

    cdef int give_up(self) except -1:
        """Give up what is in flight.  The messages may still arrive, so each keeps this schedule's memory alive."""
        cdef int index
        cdef Request request
        for index in range(self.flying):
            request = <Request> self.flight[index]
            if not request.complete:
                request.unwatch(self)
                request.abandon(self)
            else:
                request.release()
            Py_DECREF(request)
        self.flying = 0
        self.pending = 0
        return 0

    cdef int clear(self) except -1:
        """Empty, for the next use."""
        cdef int index
        for index in range(self.length):
            Py_XDECREF(self.steps[index].source_type)
            Py_XDECREF(self.steps[index].target_type)
        for index in range(self.block_count):
            free(self.blocks[index])
        self.length = 0
        self.block_count = 0
        self.scratch_used = 0
        self.buffer = None
        self.error = None
        self.failure = None
        self.communicator = None
        return 0

    @property
    def rounds(self):
        """The steps, for people and tests: a list of rounds, each a list of (kind, peer, source, target, count)."""
        cdef int index
        cdef Step *step
        names = ("send", "recv", "copy", "reduce")
        rounds = [[]]
        for index in range(self.length):
            step = &self.steps[index]
            rounds[len(rounds) - 1].append((names[<int> step.kind], step.peer, step.source, step.target, step.source_count))
            if step.last and index + 1 < self.length:
                rounds.append([])
        return rounds if self.length else []


cdef int copy_to_self(const Step *step) except -1:
    """As many whole elements as there is room for, which may be passed on from there."""
    cdef Typemap source_type = <Typemap> step.source_type, target_type = <Typemap> step.target_type
    cdef Py_ssize_t nbytes = step.source_count * source_type.size, room = step.target_count * target_type.size
    copy_typed(<char *> step.source, min(nbytes, room) // source_type.size, source_type, <char *> step.target,
               step.target_count, target_type)
    if nbytes > room:
        raise MPIError(ERR_TRUNCATE, f"{nbytes} bytes for this rank itself, but room for {room}")
    return 0


def step_error(error, peer):
    """The error of one message as the collective's: with the peer's name."""
    if not isinstance(error, MPIError):
        return error
    words = f"in the collective's message with rank {peer}"
    wrapped = MPIError(error.code, f"{error.detail} ({words})" if error.detail else words)
    wrapped.__cause__ = error
    return wrapped


cdef Schedule take_schedule(Communicator comm, int operation):
    cdef Schedule schedule = blank_schedule(comm, operation)
    schedule.tag = comm.collective_tag()
    return schedule


cdef Schedule blank_schedule(Communicator comm, int operation, bint pooled=True):
    cdef Schedule schedule = <Schedule> pool.pop() if pooled and pool else Schedule.__new__(Schedule)
    schedule.communicator = comm
    schedule.operation = operation
    return schedule


cdef int recycle(Schedule schedule) except -1:
    schedule.clear()
    if len(pool) < POOLED_SCHEDULES and schedule.capacity <= POOLED_STEPS:
        pool.append(schedule)
    return 0
