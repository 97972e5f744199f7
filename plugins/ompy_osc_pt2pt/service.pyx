# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""The target's half of one-sided communication.  See `service.pxd`."""
from cpython.bytearray cimport PyByteArray_AS_STRING
from libc.string cimport memcpy

from ompy.core.basic cimport BASIC_BYTE
from ompy.core.constants cimport ANY_SOURCE, MODE_STANDARD
from ompy.core.convertor cimport pack_all, unpack_all
from ompy.core.flattening cimport rebuild
from ompy.core.operation cimport Operation, predefined as predefined_operation
from ompy.core.proc cimport Proc, failures, table
from ompy.core.progress cimport wait
from ompy.core.progress_source cimport ProgressSource, register_source, unregister_source, wake
from ompy.core.typemap cimport predefined
from ompy.core.window cimport FLAVOR_DYNAMIC
from ompy.mca.accumulate cimport combine, swap_if_equal
from ompy.mca.pieces cimport require_own
from ompy.mca.pml cimport pml
from ompy_osc_pt2pt.header cimport (
    FLAG_APART, FLAG_FLUSHES, FLAG_SHARED, KIND_ACCUMULATE, KIND_COMPARE_AND_SWAP, KIND_COMPLETE, KIND_FENCE, KIND_FLUSH,
    KIND_GET, KIND_GET_ACCUMULATE, KIND_LOCK, KIND_POST, KIND_PUT, KIND_UNLOCK, TAG_ORDER, padded,
)

from ompy.core.errors import ERR_OP, ERR_OTHER, ERR_PROC_FAILED, MPIError
from ompy.mca.attachments import Attachments

# Answers kept when they are first looked through for those that are complete.
cdef enum:
    FIRST_LOOK = 64

# The operations of accumulates, by the number that an order has.
cdef tuple OPERATIONS = tuple(
    predefined_operation(name)
    for name in (
        "REPLACE", "NO_OP", "SUM", "PROD", "MAX", "MIN", "LAND", "LOR", "LXOR", "BAND", "BOR", "BXOR", "MAXLOC", "MINLOC",
    )
)
cdef dict codes = {operation: code for code, operation in enumerate(OPERATIONS)}


cdef int operation_code(object operation) except -1:
    code = codes.get(operation)
    if code is None:
        raise MPIError(ERR_OP, f"op: a predefined operation expected in an accumulate, not {operation.name}")
    return code


# -- the engine's list of windows with something to do

cdef list due = []
cdef int due_count = 0
cdef list open_services = []
cdef int failures_seen = 0                       # processes that have failed, as far as the open windows know


cdef bint anything_due(void *context) noexcept nogil:
    return due_count > 0 or failures != failures_seen


cdef class ServiceEngine(ProgressSource):
    """Carries out what has come, outside the callbacks that completed the messages.

    Registered only while there is a window that other ranks can reach.
    """

    def __cinit__(self):
        self.ready = anything_due

    cpdef int progress(self) except -1:
        global due, due_count, failures_seen
        cdef Service service
        cdef list services
        if failures != failures_seen:
            failures_seen = failures
            for service in list(open_services):
                service.note_failures()
        services = due
        if not services:
            return 0
        due = []
        due_count = 0
        for service in services:
            service.due = False
            service.attend()
        return <int> len(services)

    cpdef bint may_sleep(self) except -1:
        return not anything_due(NULL)


cdef ServiceEngine engine = ServiceEngine()


cdef int message_complete(object context, Request request) except -1:
    """The hook on what is being received: runs inside whatever completed it, so it only takes note."""
    global due_count
    cdef Service service = <Service> context
    if not service.due:
        service.due = True
        due.append(service)
        due_count += 1
    return 0


cdef bytes told(object error):
    """An error as its origin is told of it; `Orders.check_answer` reads it."""
    known = isinstance(error, MPIError)
    return f"{error.code if known else ERR_OTHER} {error.detail if known else error}".encode()


cdef class Origin:
    """One rank's orders that can't be carried out yet."""


cdef inline bint ends(const Order *order) noexcept:
    """Does it say to others than the origin that its accesses are done?"""
    return order.kind == KIND_FENCE or order.kind == KIND_COMPLETE or order.kind == KIND_UNLOCK


cdef bint is_read(Origin origin):
    """Are answers to the origin still being read out of the window?"""
    cdef list reads = origin.reads
    # The last one is among the last to be complete: most calls look at no other.
    while reads and (<Request> reads[len(reads) - 1]).complete:
        reads.pop()
    return len(reads) > 0


cdef class Service:
    """One window's orders at this rank.

    Parameters:
        window: whose memory it is.
    """

    def __init__(self, Window window not None):
        self.window = window
        self.communicator = window.communicator
        self.gone = {}
        self.posts = Tally(self.communicator, self.gone)
        # Whoever is left completes its accesses: until then the epoch goes on.
        self.completes = Tally(self.communicator, self.gone, patient=True)
        self.fences = Tally(self.communicator, self.gone)
        self.locks = LockQueue()
        self.attachments = Attachments()
        self.origins = [None] * self.communicator.size
        self.held = {}
        self.own_answers = {}
        self.sending = []
        self.look_at = FIRST_LOOK

    cdef int open(self) except -1:
        global failures_seen
        if self.communicator.size == 1:
            return 0
        if not open_services:
            failures_seen = failures
            register_source(engine)
        open_services.append(self)
        if failures:
            self.note_failures()
        return self.listen()

    cdef int close(self) except -1:
        cdef Request listener = self.listener
        if self.closed:
            return 0
        self.closed = True
        self.listener = None
        if self.communicator.size == 1:
            return 0
        if listener is not None and not listener.complete:
            listener.unwatch(self)
            listener.cancel()
        open_services.remove(self)
        if not open_services:
            unregister_source(engine)
        return 0

    cdef int settle(self) except -1:
        cdef Request request
        cdef Origin origin
        for requests in [self.sending, *[(<Origin> origin).reads for origin in self.origins if origin is not None]]:
            while requests:
                request = requests.pop()
                if not request.complete:
                    wait(request)
        return 0

    # -- taking orders ------------------------------------------------------------------------------------------------

    cdef int attend(self) except -1:
        cdef Request request = self.listener
        if self.closed:
            return 0
        for origin in list(self.held.values()):
            self.drain(origin)
        if request is not None and request.complete:
            self.listener = None
            if self.take(request):
                self.listen()
        return 0

    cdef int listen(self) except -1:
        cdef Request request
        while True:
            request = pml.irecv_object(bytearray, ANY_SOURCE, TAG_ORDER, self.communicator)
            if not request.complete:
                request.watch(message_complete, self)
                self.listener = request
                return 0
            if not self.take(request):
                return 0

    cdef int take(self, Request request) except -1:
        """Carry out the order that a receive has brought, or queue it; 0 when no more will come."""
        cdef Task task
        cdef Origin origin
        cdef Py_ssize_t description
        if request.error is not None:
            # Nobody is left, or it can't be known whose order was lost.
            self.posts.fail(request.error)
            self.completes.fail(request.error)
            self.fences.fail(request.error)
            return 0
        task = Task.__new__(Task)
        task.message = request.buffer
        memcpy(&task.order, PyByteArray_AS_STRING(task.message), sizeof(Order))
        task.origin = request.status.source
        description = task.order.description
        if task.order.basic >= 0:
            task.typemap = predefined(task.order.basic)
        elif description:
            task.typemap = rebuild(PyByteArray_AS_STRING(task.message)[sizeof(Order):sizeof(Order) + description])
        if task.typemap is not None:
            try:
                task.place = self.locate(task.order.displacement, task.order.count, task.typemap)
            except MPIError as error:
                task.error = error
        if task.order.length and not task.order.flags & FLAG_APART:
            task.data = PyByteArray_AS_STRING(task.message) + sizeof(Order) + padded(description)
        origin = self.origin_of(task.origin)
        if not origin.tasks and not origin.ahead and not task.order.flags & FLAG_APART \
                and not (ends(&task.order) and is_read(origin)):
            self.carry_out(task)
            return 1
        origin.tasks.append(task)
        self.held[task.origin] = origin
        self.drain(origin)
        return 1

    cdef Origin origin_of(self, int rank):
        cdef Origin origin = self.origins[rank]
        if origin is None:
            origin = Origin.__new__(Origin)
            origin.rank = rank
            origin.tasks = []
            origin.reads = []
            self.origins[rank] = origin
        return origin

    cdef int drain(self, Origin origin) except -1:
        """Carry an origin's orders out up to the first that has to wait, and begin those that may be."""
        cdef Task task
        if origin.busy:
            return 0
        origin.busy = True
        try:
            while self.begin_more(origin):
                task = origin.tasks[0]
                if (task.arriving is not None and not task.arriving.complete) or (ends(&task.order) and is_read(origin)):
                    break
                del origin.tasks[0]
                origin.begun -= 1
                self.carry_out(task)
        finally:
            origin.busy = False
        if not origin.tasks:
            self.held.pop(origin.rank, None)
        return 0

    cdef int begin_more(self, Origin origin) except -1:
        """Begin tasks up to the next end of an epoch; returns how many wait begun."""
        cdef Task task
        while origin.begun < len(origin.tasks) and not origin.ahead:
            if origin.begun and ends(&(<Task> origin.tasks[origin.begun - 1]).order):
                break
            task = origin.tasks[origin.begun]
            origin.begun += 1
            if task.order.flags & FLAG_APART:
                self.receive_data(task)
        return <int> origin.begun

    cdef int receive_data(self, Task task) except -1:
        cdef bint straight = task.order.kind == KIND_PUT and task.error is None
        if not straight:
            task.apart = bytearray(task.order.length)
            task.data = PyByteArray_AS_STRING(task.apart)
        try:
            if straight:
                task.arriving = pml.irecv(<size_t> task.place, task.order.count, task.typemap, task.origin,
                                          task.order.number, self.communicator)
            else:
                task.arriving = pml.irecv(<size_t> task.data, task.order.length, predefined(BASIC_BYTE), task.origin,
                                          task.order.number, self.communicator)
        except MPIError as error:
            task.error = task.error or error     # its origin has gone meanwhile
            return 0
        if not task.arriving.complete:
            task.arriving.watch(message_complete, self)
        return 0

    cdef int catch_up(self) except -1:
        cdef Origin origin
        for origin in self.origins:
            if origin is not None and origin.ahead:
                origin.ahead = False
                self.drain(origin)
        return 0

    cdef int note_failures(self) except -1:
        cdef Proc proc
        cdef int rank
        for proc in table.known():
            if proc.failure is not None:
                rank = self.communicator.group.rank_of(proc.index)
                if rank >= 0:
                    self.gone[rank] = self.communicator.named(proc.failure)
        if not self.gone:
            return 0
        self.posts.note_failures()
        self.completes.note_failures()
        self.fences.note_failures()
        self.catch_up()
        return self.pass_locks_on()

    cdef int pass_locks_on(self) except -1:
        """What a rank that is gone holds is refused to whoever waits for it; where it only waited, others have their turn."""
        refused, granted = self.locks.note_failures(self.gone)
        for rank, number in granted:
            self.answer(rank, number, b"")
        if refused:
            holder = min(rank for rank in self.gone if rank in self.locks.holders)
            words = told(MPIError(ERR_PROC_FAILED, f"rank {holder} of the window has died while it held the lock of rank "
                                                   f"{self.communicator.rank}"))
            for rank, number in refused:
                self.answer(rank, number, words)
        return 0

    cdef char *locate(self, Py_ssize_t displacement, Py_ssize_t count, Typemap typemap) except? NULL:
        if self.window.flavor != FLAVOR_DYNAMIC:
            return <char *> self.window.base + displacement * self.window.unit
        require_own(self.communicator.rank, displacement, count, typemap, self.attachments)
        return <char *> <size_t> displacement

    # -- carrying them out --------------------------------------------------------------------------------------------

    cdef int carry_out(self, Task task) except -1:
        """Do what an order says.  What goes wrong is kept for the origin: here, nobody has asked for it."""
        cdef int kind = task.order.kind
        cdef Origin origin
        if task.error is None and task.arriving is not None:
            task.error = task.arriving.error
        if task.error is None:
            try:
                self.perform(task)
            except Exception as error:
                task.error = error
        if task.error is not None:
            origin = self.origin_of(task.origin)
            if origin.failure is None:
                origin.failure = task.error
            if kind == KIND_GET or kind == KIND_GET_ACCUMULATE or kind == KIND_COMPARE_AND_SWAP:
                self.answer(task.origin, task.order.number, b"")
        if task.order.flags & FLAG_FLUSHES:
            self.answer(task.origin, task.order.number, self.failure_of(task.origin))
        return 0

    cdef int perform(self, Task task) except -1:
        cdef int kind = task.order.kind
        if kind == KIND_PUT:
            if task.data != NULL:
                unpack_all(task.data, task.order.length, task.place, task.order.count, task.typemap)
        elif kind == KIND_GET:
            self.answer_from_window(task)
        elif kind == KIND_ACCUMULATE:
            combine(<Operation> OPERATIONS[task.order.operation], task.data, task.place, task.order.count, task.typemap)
        elif kind == KIND_GET_ACCUMULATE:
            old = self.fetched(task)
            combine(<Operation> OPERATIONS[task.order.operation], task.data, task.place, task.order.count, task.typemap)
            self.answer(task.origin, task.order.number, old)
        elif kind == KIND_COMPARE_AND_SWAP:
            old = self.fetched(task)
            swap_if_equal(task.data, task.data + task.typemap.size, task.place, task.typemap)
            self.answer(task.origin, task.order.number, old)
        elif kind == KIND_FLUSH:
            self.answer(task.origin, task.order.number, self.failure_of(task.origin))
        elif kind == KIND_LOCK:
            if self.locks.ask(task.origin, task.order.number, task.order.flags & FLAG_SHARED):
                self.answer(task.origin, task.order.number, b"")
            elif self.gone:
                self.pass_locks_on()
        elif kind == KIND_UNLOCK:
            for rank, number in self.locks.release(task.origin):
                self.answer(rank, number, b"")
            if self.gone:
                self.pass_locks_on()
            self.answer(task.origin, task.order.number, self.failure_of(task.origin))
        elif kind == KIND_POST:
            self.posts.add(task.origin)
        elif kind == KIND_COMPLETE:
            self.completes.add(task.origin)
        elif kind == KIND_FENCE:
            self.origin_of(task.origin).ahead = not self.gone
            self.fences.add(task.origin)
        return 0

    cdef bytes failure_of(self, int rank):
        """What went wrong with the rank's orders since it was last told; empty for nothing."""
        cdef Origin origin = self.origin_of(rank)
        error = origin.failure
        if error is None:
            return b""
        origin.failure = None
        return told(error)

    cdef bytearray fetched(self, Task task):
        """What the window holds now, packed."""
        cdef bytearray old = bytearray(task.order.count * task.typemap.size)
        pack_all(task.place, task.order.count, task.typemap, PyByteArray_AS_STRING(old))
        return old

    cdef int answer(self, int origin, int number, object words) except -1:
        cdef Request own, request, kept
        if origin == self.communicator.rank:
            own = self.own_answers.pop(number)
            own.buffer = words
            own.finish()
            wake()
            return 0
        if not isinstance(words, bytearray):
            words = bytearray(words)
        try:
            request = pml.isend(<size_t> PyByteArray_AS_STRING(words), len(words), predefined(BASIC_BYTE), origin, number + 1,
                                MODE_STANDARD, self.communicator)
        except MPIError:
            if self.communicator.peer(origin).failure is None:
                raise
            return 0                             # nobody is there to be told
        if not request.complete:
            request.buffer = words
            if len(self.sending) >= self.look_at:
                self.sending = [kept for kept in self.sending if not (<Request> kept).complete]
                self.look_at = FIRST_LOOK + 2 * <int> len(self.sending)
            self.sending.append(request)
        return 0

    cdef int answer_from_window(self, Task task) except -1:
        """The answer to a get is read where it is: until it has left, the origin's epoch does not end here."""
        cdef Request request
        request = pml.isend(<size_t> task.place, task.order.count, task.typemap, task.origin, task.order.number + 1,
                            MODE_STANDARD, self.communicator)
        if not request.complete:
            request.watch(message_complete, self)
            self.origin_of(task.origin).reads.append(request)
        return 0

    cdef int serve_own(self, Order *order, Request answer) except -1:
        cdef Task task = Task.__new__(Task)
        task.order = order[0]
        task.origin = self.communicator.rank
        if answer is not None:
            self.own_answers[order.number] = answer
        return self.carry_out(task)
