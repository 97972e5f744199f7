# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""What an origin sends, and waits for.  See `orders.pxd`."""
from cpython.bytearray cimport PyByteArray_AS_STRING
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from ompy.core.basic cimport BASIC_BYTE, basics
from ompy.core.board cimport WIN_FLUSH
from ompy.core.constants cimport MODE_STANDARD
from ompy.core.convertor cimport pack_all
from ompy.core.flattening cimport flatten
from ompy.core.progress cimport wait
from ompy.core.request cimport Request
from ompy.core.typemap cimport Typemap, predefined
from ompy.core.window cimport Window
from ompy.mca.epochs cimport Epochs
from ompy.mca.osc cimport Access
from ompy.mca.pml cimport pml
from ompy_osc_pt2pt.header cimport FLAG_APART, FLAG_FLUSHES, KIND_FLUSH, TAG_FIRST, TAG_LIMIT, TAG_ORDER, padded
from ompy_osc_pt2pt.service cimport Service

from ompy.core.errors import MPIError

# A target's accesses under way, when they are first looked through for those that are complete.
cdef enum:
    FIRST_LOOK = 64


cdef int complete_program_request(object context, Request request) except -1:
    """The hook on a request of our own that stands behind one of the program's."""
    cdef Request promised = <Request> context
    if request.error is not None:
        return promised.fail(request.error)
    return promised.finish()


cdef class Orders(Epochs):
    """What this rank asks of the others' windows.

    Parameters:
        window: which.
        inline_limit: bytes of data that travel with their order; more go as a message of their own.
    """

    def __init__(self, Window window not None, Py_ssize_t inline_limit=4096):
        Epochs.__init__(self, "pt2pt", window)
        self.inline_limit = inline_limit
        self.next_number = TAG_FIRST
        self.pending = [[] for _ in range(self.ranks)]
        self.unheard = {}
        self.look_at = <int *> PyMem_Calloc(self.ranks, sizeof(int))
        self.ordered = <int64_t *> PyMem_Calloc(3 * self.ranks, sizeof(int64_t))
        self.alone = <bint *> PyMem_Calloc(self.ranks, sizeof(bint))
        if self.look_at == NULL or self.ordered == NULL or self.alone == NULL:
            raise MemoryError()
        self.settled = self.ordered + self.ranks
        self.flushed = self.settled + self.ranks
        for target in range(self.ranks):
            self.look_at[<int> target] = FIRST_LOOK
        self.service = Service(window)

    def __dealloc__(self):
        PyMem_Free(self.look_at)
        PyMem_Free(self.ordered)
        PyMem_Free(self.alone)

    # -- sending -------------------------------------------------------------------------------------------------------

    cdef int draw_number(self) noexcept:
        cdef int number = self.next_number
        self.next_number = number + 2 if number + 2 < TAG_LIMIT else TAG_FIRST
        return number

    cdef int number_order(self, int target, Order *order) noexcept:
        order.number = self.draw_number()
        if self.alone[target] and self.ordered[target] == self.flushed[target]:
            order.flags |= FLAG_FLUSHES
            order.settles = self.ordered[target] + 1
        return 0

    cdef int receive_answer(self, int target, const Order *order) except -1:
        cdef Request answer
        if order.flags & FLAG_FLUSHES:
            answer = pml.irecv_object(bytearray, target, order.number + 1, self.window.communicator)
            answer.operation = WIN_FLUSH
            self.leave_unheard([(target, answer, order.settles)])
        return 0

    cdef object describe(self, Order *order, Access access):
        """Enter the target's datatype; returns its description, or None where a code says it all."""
        cdef Typemap typemap = access.target_type
        order.displacement = access.displacement
        if typemap.basic >= 0 and typemap is predefined(typemap.basic):
            order.basic = typemap.basic
            order.count = access.target_count
            return None
        if typemap.basic >= 0 and typemap.contiguous:
            order.basic = typemap.basic
            order.count = access.target_count * (typemap.size // basics[typemap.basic].size)
            return None
        order.basic = -1
        order.count = access.target_count
        return flatten(typemap)

    cdef int send_order(self, int target, Order *order, bytes description, size_t address, Py_ssize_t count,
                        Typemap typemap) except -1:
        """Send an order, with its data unless it goes apart."""
        cdef Py_ssize_t place = sizeof(Order), length
        cdef char *start
        cdef Request request
        if description is not None:
            order.description = <int> len(description)
            place += padded(len(description))
        length = place + (0 if order.flags & FLAG_APART else order.length)
        message = bytearray(length)
        start = PyByteArray_AS_STRING(message)
        memcpy(start, order, sizeof(Order))
        if description is not None:
            memcpy(start + sizeof(Order), <char *> description, len(description))
        if typemap is not None and length > place:
            pack_all(<char *> address, count, typemap, start + place)
        request = pml.isend(<size_t> start, length, predefined(BASIC_BYTE), target, TAG_ORDER, MODE_STANDARD,
                            self.window.communicator)
        if not request.complete:
            request.buffer = message
            self.keep(target, request)
        return 0

    cdef Request send_with_data(self, Access access, Order *order):
        """Send an order and the origin's data; returns what is to be waited for before that may change, or None."""
        cdef Request request
        cdef bytes description = self.describe(order, access)
        self.number_order(access.target, order)
        order.length = access.origin_count * access.origin_type.size
        if order.length <= self.inline_limit:
            self.send_order(access.target, order, description, access.origin_address, access.origin_count, access.origin_type)
            self.ordered[access.target] += 1
            return None
        order.flags |= FLAG_APART
        self.send_order(access.target, order, description, 0, 0, None)
        self.ordered[access.target] += 1
        request = pml.isend(access.origin_address, access.origin_count, access.origin_type, access.target, order.number,
                            MODE_STANDARD, self.window.communicator)
        if request.complete:
            return None
        request.buffer = access.owner
        self.keep(access.target, request)
        return request

    cdef int keep(self, int target, Request request) except -1:
        cdef list requests = self.pending[target]
        cdef Request kept
        if len(requests) >= self.look_at[target]:
            requests[:] = [kept for kept in requests if not (<Request> kept).complete or (<Request> kept).error is not None]
            self.look_at[target] = FIRST_LOOK + 2 * <int> len(requests)
        requests.append(request)
        return 0

    cdef Request promise(self, Access access, Request request):
        """The program's request for one of our own, which may be None."""
        cdef Request promised
        if not access.requested or request is None:
            return None
        if request.complete:
            if request.error is not None:
                raise request.error
            return None
        promised = Request()
        promised.begin()
        promised.operation = request.operation
        promised.peer = access.target
        promised.communicator = self.window.communicator
        request.watch(complete_program_request, promised)
        return promised

    # -- questions and answers ----------------------------------------------------------------------------------------

    cdef Request ask(self, int target, int kind, int flags, int operation):
        """Send an order that is answered when it, and all before it, has been carried out."""
        cdef Order order
        cdef Request answer
        memset(&order, 0, sizeof(order))
        order.kind = kind
        order.flags = flags
        order.basic = -1
        order.number = self.draw_number()
        if target == self.rank:
            answer = Request()
            answer.begin()
            answer.communicator = self.window.communicator
            answer.peer = target
            answer.operation = operation
            self.service.serve_own(&order, answer)
            return answer
        answer = pml.irecv_object(bytearray, target, order.number + 1, self.window.communicator)
        answer.operation = operation
        self.send_order(target, &order, None, 0, 0, None)
        return answer

    cdef int tell(self, int target, int kind) except -1:
        """Send an order that has no answer."""
        cdef Order order
        memset(&order, 0, sizeof(order))
        order.kind = kind
        order.basic = -1
        if target == self.rank:
            return self.service.serve_own(&order, None)
        return self.send_order(target, &order, None, 0, 0, None)

    def tell_each(self, ranks, int kind):
        """The same to several; the first error when all that live have it."""
        self.for_each(ranks, lambda rank: self.tell(rank, kind))

    cdef int check_answer(self, int target, Request answer) except -1:
        """Wait for an answer; raises what went wrong at the target."""
        if not answer.complete:
            wait(answer)
        if answer.error is not None:
            raise answer.error
        if answer.buffer:
            code, _, words = bytes(answer.buffer).decode().partition(" ")
            raise MPIError(int(code), words)
        return 0

    cdef int finish_pending(self, int target) except -1:
        """Wait until accesses to a target are complete at this side."""
        cdef list requests = self.pending[target]
        cdef Request request
        error = None
        while requests:
            request = requests[len(requests) - 1]
            if not request.complete:
                request.operation = WIN_FLUSH
                wait(request)
            if requests and requests[len(requests) - 1] is request:
                requests.pop()
            elif request in requests:            # another thread has added some while this one slept
                requests.remove(request)
            if request.error is not None and error is None:
                error = request.error
        self.look_at[target] = FIRST_LOOK
        if error is not None:
            raise error
        return 0

    def complete_at(self, targets, bint local):
        """Complete accesses at this side, and at the targets unless `local`."""
        cdef int target
        cdef int64_t ordered
        cdef list answers
        if local:
            self.hear_all(targets, [])
            return
        answers = self.take_unheard(targets)
        settling = {target: settled for target, _, settled in answers}
        try:
            for target in targets:
                ordered = self.ordered[target]
                if ordered != self.flushed[target]:
                    self.alone[target] = ordered == self.flushed[target] + 1
                    self.flushed[target] = ordered
                if max(self.settled[target], <int64_t> settling.get(target, 0)) < ordered:
                    answers.append((target, self.ask(target, KIND_FLUSH, 0, WIN_FLUSH), ordered))
        except BaseException:
            self.leave_unheard(answers)
            raise
        self.hear_all(targets, answers)

    cdef list take_unheard(self, object targets):
        """Answers of these targets that nobody waits for."""
        cdef list taken = []
        if self.unheard:
            for target in targets:
                taken += self.unheard.pop(target, ())
        return taken

    cdef int leave_unheard(self, list answers) except -1:
        for answer in answers:
            self.unheard.setdefault(answer[0], []).append(answer)
        return 0

    def hear_all(self, targets, list answers):
        """Wait for accesses to the targets to be complete at this side, and for every answer, then raise the first error.

        Who is interrupted hears the rest the next time: what an answer says is said once.

        Parameters:
            answers: target, answer, and how many of the accesses that it was ordered are then settled.
        """
        cdef int target
        first = None
        answers.reverse()
        try:
            for target in targets:
                if self.pending[target]:
                    try:
                        self.finish_pending(target)
                    except MPIError as error:
                        first = first or error
            while answers:
                target, answer, ordered = answers[len(answers) - 1]
                try:
                    self.check_answer(target, answer)
                except MPIError as error:
                    first = first or error
                self.settled[target] = max(self.settled[target], <int64_t> ordered)
                answers.pop()
        except BaseException:
            self.leave_unheard(answers[::-1])
            raise
        if first is not None:
            raise first
