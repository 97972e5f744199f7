# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""One-sided communication over the messages of the chosen PML.  See `header.pxd` for what goes over the wire."""
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.string cimport memcpy, memset

from ompy.core.basic cimport BASIC_BYTE, basics
from ompy.core.board cimport WIN_FENCE, WIN_FLUSH, WIN_FREE, WIN_LOCK, WIN_START, WIN_WAIT
from ompy.core.constants cimport MODE_STANDARD
from ompy.core.convertor cimport copy_typed, pack_all
from ompy.core.doorbell cimport full_fence
from ompy.core.flattening cimport flatten
from ompy.core.progress cimport progress, wait
from ompy.core.request cimport Request
from ompy.core.typemap cimport Typemap, predefined
from ompy.core.window cimport (
    ASSERT_NOCHECK, ASSERT_NOPRECEDE, ASSERT_NOSUCCEED, FLAVOR_DYNAMIC, LOCK_EXCLUSIVE, LOCK_SHARED, Window,
)
from ompy.mca.coll cimport BARRIER, CollectiveCall, CollModule, CollTable
from ompy.mca.osc cimport INTERFACE, Access, OscModule
from ompy.mca.pml cimport pml
from ompy_osc_pt2pt.header cimport (
    FLAG_APART, FLAG_SHARED, KIND_ACCUMULATE, KIND_COMPARE_AND_SWAP, KIND_COMPLETE, KIND_FLUSH, KIND_GET,
    KIND_GET_ACCUMULATE, KIND_LOCK, KIND_POST, KIND_PUT, KIND_UNLOCK, TAG_FIRST, TAG_LIMIT, TAG_ORDER, padded,
)
from ompy_osc_pt2pt.service cimport Service, combine, operation_code, swap_if_equal

from ompy.core.errors import (
    ERR_ARG, ERR_LOCKTYPE, ERR_OP, ERR_RMA_ATTACH, ERR_RMA_FLAVOR, ERR_RMA_RANGE, ERR_RMA_SYNC, ERR_TYPE, MPIError,
)

interface = INTERFACE

# A target's accesses under way, when they are first looked through for those that are complete.
cdef enum:
    FIRST_LOOK = 64


cdef int kept_promise(object context, Request request) except -1:
    """The hook on a request of our own that stands behind one of the program's."""
    cdef Request promised = <Request> context
    if request.error is not None:
        return promised.fail(request.error)
    return promised.finish()


cdef class Pt2pt(OscModule):
    """One window over messages.

    Parameters:
        window: which.
        inline_limit: bytes of data that travel with their order; more go as a message of their own.
    """

    def __init__(self, Window window not None, Py_ssize_t inline_limit=4096):
        self.component = "pt2pt"
        self.window = window
        self.inline_limit = inline_limit
        self.rank = window.communicator.rank
        self.ranks = window.communicator.size
        self.next_number = TAG_FIRST
        self.pending = [[] for _ in range(self.ranks)]
        self.unchecked = set()
        self.look_at = <int *> PyMem_Calloc(self.ranks, sizeof(int))
        self.dirty = <char *> PyMem_Calloc(self.ranks, 1)
        self.locked = <char *> PyMem_Calloc(self.ranks, 1)
        if self.look_at == NULL or self.dirty == NULL or self.locked == NULL:
            raise MemoryError()
        for target in range(self.ranks):
            self.look_at[<int> target] = FIRST_LOOK
        self.service = Service(window)

    def __dealloc__(self):
        PyMem_Free(self.look_at)
        PyMem_Free(self.dirty)
        PyMem_Free(self.locked)

    cpdef int open(self) except -1:
        """Take orders from now on."""
        return self.service.open()

    # -- what is allowed ----------------------------------------------------------------------------------------------

    cdef int check_epoch(self, int target) except -1:
        if self.fenced or self.locked_all or self.locked[target]:
            return 0
        if self.started is not None and target in self.started:
            return 0
        raise MPIError(ERR_RMA_SYNC, f"no epoch is open towards rank {target}: call Fence, Start, Lock or Lock_all first")

    cdef int check(self, Access access, Py_ssize_t nbytes) except -1:
        """Epoch, amount and range; `nbytes` are the origin's."""
        cdef Py_ssize_t there = access.target_count * access.target_type.size
        self.check_epoch(access.target)
        if nbytes != there:
            raise MPIError(ERR_ARG, f"origin and target differ: {nbytes} bytes of data here, {there} bytes "
                                    f"({access.target_count} elements) at rank {access.target}")
        return self.window.check_range(access.target, access.displacement, access.target_count, access.target_type)

    cdef int check_target(self, int target) except -1:
        if not (self.locked_all or self.locked[target]):
            raise MPIError(ERR_RMA_SYNC, f"rank {target} is not locked: flushing is for epochs of Lock and Lock_all")
        return 0

    # -- orders -------------------------------------------------------------------------------------------------------

    cdef int draw_number(self) noexcept:
        cdef int number = self.next_number
        self.next_number = number + 2 if number + 2 < TAG_LIMIT else TAG_FIRST
        return number

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
        order.number = self.draw_number()
        order.length = access.origin_count * access.origin_type.size
        self.dirty[access.target] = True
        if order.length <= self.inline_limit:
            self.send_order(access.target, order, description, access.origin_address, access.origin_count, access.origin_type)
            return None
        order.flags |= FLAG_APART
        self.send_order(access.target, order, description, 0, 0, None)
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
        request.hook = kept_promise
        request.hook_context = promised
        return promised

    # -- accesses -----------------------------------------------------------------------------------------------------

    cpdef Request put(self, Access access):
        """Write to the target's memory; a short put is complete here at once."""
        cdef Order order
        cdef Py_ssize_t nbytes = access.origin_count * access.origin_type.size
        self.check(access, nbytes)
        if nbytes == 0:
            return None
        if access.target == self.rank:
            copy_typed(<char *> access.origin_address, access.origin_count, access.origin_type,
                       self.service.locate(access.displacement, access.target_count, access.target_type),
                       access.target_count, access.target_type)
            return None
        memset(&order, 0, sizeof(order))
        order.kind = KIND_PUT
        return self.promise(access, self.send_with_data(access, &order))

    cpdef Request get(self, Access access):
        """Read the target's memory, straight into the program's."""
        cdef Order order
        cdef Request request
        cdef Py_ssize_t nbytes = access.origin_count * access.origin_type.size
        self.check(access, nbytes)
        if nbytes == 0:
            return None
        if access.target == self.rank:
            copy_typed(self.service.locate(access.displacement, access.target_count, access.target_type),
                       access.target_count, access.target_type,
                       <char *> access.origin_address, access.origin_count, access.origin_type)
            return None
        memset(&order, 0, sizeof(order))
        order.kind = KIND_GET
        description = self.describe(&order, access)
        order.number = self.draw_number()
        request = pml.irecv(access.origin_address, access.origin_count, access.origin_type, access.target, order.number + 1,
                            self.window.communicator)
        request.buffer = access.owner
        self.send_order(access.target, &order, description, 0, 0, None)
        self.keep(access.target, request)
        # What a dynamic target has not attached is told with the next answer.
        self.dirty[access.target] |= self.window.flavor == FLAVOR_DYNAMIC
        return self.promise(access, request)

    cpdef Request accumulate(self, Access access):
        """Combine the origin's data into the target's memory."""
        cdef int code = operation_code(access.operation)
        cdef Py_ssize_t nbytes = access.origin_count * access.origin_type.size
        self.check(access, nbytes)
        if nbytes == 0:
            return None
        self.check_operation(access)
        if access.target == self.rank:
            return self.own_accumulate(access, code)
        return self.promise(access, self.order_accumulate(access, KIND_ACCUMULATE))

    cdef Request order_accumulate(self, Access access, int kind):
        cdef Order order
        memset(&order, 0, sizeof(order))
        order.kind = kind
        order.operation = operation_code(access.operation)
        return self.send_with_data(access, &order)

    cpdef Request get_accumulate(self, Access access):
        """Combine, and fetch what was there before; with NO_OP the origin's side is not looked at."""
        cdef Order order
        cdef Request request
        cdef int code = operation_code(access.operation)
        cdef bint reads = access.operation.name == "NO_OP"
        cdef Py_ssize_t nbytes = access.result_count * access.result_type.size
        self.check(access, nbytes)
        if not reads:
            self.check(access, access.origin_count * access.origin_type.size)
        if nbytes == 0:
            return None
        if not reads:
            self.check_operation(access)
        if access.target == self.rank:
            place = <size_t> self.service.locate(access.displacement, access.target_count, access.target_type)
            # Origin and result may not overlap, so the order of the two copies is free.
            copy_typed(<char *> <size_t> place, access.target_count, access.target_type,
                       <char *> access.result_address, access.result_count, access.result_type)
            return None if reads else self.own_accumulate(access, code)
        memset(&order, 0, sizeof(order))
        order.kind = KIND_GET_ACCUMULATE
        order.operation = code
        if not reads:
            # The number is drawn when the order is sent, and the answer can't come before it.
            self.send_with_data(access, &order)
        else:
            description = self.describe(&order, access)
            order.number = self.draw_number()
            self.send_order(access.target, &order, description, 0, 0, None)
        return self.promise(access, self.fetching(access, order.number, nbytes))

    cdef Request fetching(self, Access access, int number, Py_ssize_t nbytes):
        cdef Request request = pml.irecv(access.result_address, access.result_count, access.result_type, access.target,
                                         number + 1, self.window.communicator)
        request.buffer = access.owner
        self.keep(access.target, request)
        self.dirty[access.target] = True
        return request

    cpdef Request compare_and_swap(self, Access access):
        """Replace one element if it equals another, and fetch what was there."""
        cdef Order order
        cdef Py_ssize_t nbytes = access.origin_type.size
        cdef char *place
        access.target_count = access.result_count = 1
        access.target_type = access.result_type = access.origin_type
        self.check(access, nbytes)
        pair = bytearray(2 * nbytes)
        pack_all(<char *> access.compare_address, 1, access.origin_type, PyByteArray_AS_STRING(pair))
        pack_all(<char *> access.origin_address, 1, access.origin_type, PyByteArray_AS_STRING(pair) + nbytes)
        if access.target == self.rank:
            place = self.service.locate(access.displacement, 1, access.origin_type)
            copy_typed(place, 1, access.origin_type, <char *> access.result_address, 1, access.origin_type)
            swap_if_equal(PyByteArray_AS_STRING(pair), PyByteArray_AS_STRING(pair) + nbytes, place, access.origin_type)
            return None
        memset(&order, 0, sizeof(order))
        order.kind = KIND_COMPARE_AND_SWAP
        description = self.describe(&order, access)
        order.number = self.draw_number()
        order.length = 2 * nbytes
        self.send_order(access.target, &order, description, <size_t> PyByteArray_AS_STRING(pair), 2 * nbytes,
                        predefined(BASIC_BYTE))
        return self.promise(access, self.fetching(access, order.number, nbytes))

    cdef Request own_accumulate(self, Access access, int code):
        cdef char *place = self.service.locate(access.displacement, access.target_count, access.target_type)
        packed = bytearray(access.origin_count * access.origin_type.size)
        pack_all(<char *> access.origin_address, access.origin_count, access.origin_type, PyByteArray_AS_STRING(packed))
        combine(code, PyByteArray_AS_STRING(packed), place, access.target_count, access.target_type)
        return None

    def check_operation(self, Access access not None):
        """ERR_OP or ERR_TYPE unless the operation makes sense for the two types (MPI-4.1, 12.3.4)."""
        if not access.operation.defined_on(access.target_type):
            raise MPIError(ERR_OP, f"op: {access.operation.name} is not defined on the target's datatype")
        if access.origin_type.basic != access.target_type.basic:
            raise MPIError(ERR_TYPE, "origin and target of an accumulate must be of one and the same predefined datatype")

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

    cdef int heed(self, int target, Request answer) except -1:
        """Wait for an answer; raises what went wrong at the target."""
        if not answer.complete:
            wait(answer)
        if answer.error is not None:
            raise answer.error
        if answer.buffer:
            raise MPIError(ERR_RMA_RANGE, bytes(answer.buffer).decode())
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
            # Other threads may have added some while this one slept.
            if request in requests:
                requests.remove(request)
            if request.error is not None and error is None:
                error = request.error
        self.look_at[target] = FIRST_LOOK
        if error is not None:
            raise error
        return 0

    cpdef int flush(self, int target, bint local) except -1:
        """Complete accesses to a target, or to all."""
        cdef int each
        cdef list answers = []
        if target >= 0:
            self.check_target(target)
        elif not self.locked_all and not any([self.locked[each] for each in range(self.ranks)]):
            raise MPIError(ERR_RMA_SYNC, "no rank is locked: flushing is for epochs of Lock and Lock_all")
        self.complete_at(range(self.ranks) if target < 0 else (target,), local)
        return 0

    def complete_at(self, targets, bint local):
        """Complete accesses at this side, and at the targets unless `local`."""
        cdef int target
        cdef list answers = []
        if not local:
            for target in targets:
                if self.dirty[target]:
                    self.dirty[target] = False
                    answers.append((target, self.ask(target, KIND_FLUSH, 0, WIN_FLUSH)))
        for target in targets:
            if self.pending[target]:
                self.finish_pending(target)
        self.heed_all(answers)

    def heed_all(self, list answers):
        """Wait for every answer, then raise the first error."""
        first = None
        for target, answer in answers:
            try:
                self.heed(target, answer)
            except MPIError as error:
                first = first or error
        if first is not None:
            raise first

    # -- fence --------------------------------------------------------------------------------------------------------

    cpdef int fence(self, int assertion) except -1:
        """Accesses are complete everywhere, then all ranks meet."""
        if self.started is not None or self.locked_all:
            raise MPIError(ERR_RMA_SYNC, "Fence within an epoch of Start or Lock_all: Complete or Unlock_all it first")
        if not assertion & ASSERT_NOPRECEDE:
            self.complete_at(range(self.ranks), False)
        self.fenced = not assertion & ASSERT_NOSUCCEED
        self.meet(WIN_FENCE)
        full_fence()
        return 0

    def meet(self, int operation):
        """All ranks of the window are here."""
        cdef CollectiveCall call = CollectiveCall.__new__(CollectiveCall)
        cdef CollTable table = self.window.communicator.coll
        cdef Request request = (<CollModule> table.nonblocking[<int> BARRIER]).start(BARRIER, call, self.window.communicator)
        request.operation = operation
        if not request.complete:
            wait(request)
        if request.error is not None:
            raise request.error

    # -- post, start, complete, wait ----------------------------------------------------------------------------------

    cpdef int post(self, list ranks, int assertion) except -1:
        """Open this process's memory to the ranks."""
        if self.exposure is not None:
            raise MPIError(ERR_RMA_SYNC, "Post again before Wait or a Test that said yes")
        full_fence()
        self.exposure = self.service.completes.need(ranks, WIN_WAIT)
        if not assertion & ASSERT_NOCHECK:
            for rank in ranks:
                self.tell(rank, KIND_POST)
        return 0

    cpdef int start(self, list ranks, int assertion) except -1:
        """Returns when every one of the ranks has posted."""
        cdef Request posted
        if self.started is not None:
            raise MPIError(ERR_RMA_SYNC, "Start again before Complete")
        if not assertion & ASSERT_NOCHECK:
            posted = self.service.posts.need(ranks, WIN_START)
            if not posted.complete:
                wait(posted)
            if posted.error is not None:
                raise posted.error
        self.fenced = False
        self.started = list(ranks)
        return 0

    cpdef int complete(self) except -1:
        """Accesses are complete here; each target learns when they are there."""
        cdef list ranks = self.started
        if ranks is None:
            raise MPIError(ERR_RMA_SYNC, "Complete without Start")
        self.started = None
        for rank in ranks:
            self.tell(rank, KIND_COMPLETE)
        self.complete_at(ranks, self.window.flavor != FLAVOR_DYNAMIC)
        for rank in ranks:
            self.dirty[<int> rank] = False
        return 0

    cpdef int wait(self) except -1:
        """Until all ranks of `post` have completed."""
        cdef Request exposure = self.exposure
        if exposure is None:
            raise MPIError(ERR_RMA_SYNC, "Wait without Post")
        if not exposure.complete:
            wait(exposure)
        self.exposure = None
        full_fence()
        if exposure.error is not None:
            raise exposure.error
        return 0

    cpdef bint test(self) except -1:
        """Whether all ranks of `post` have completed."""
        if self.exposure is None:
            raise MPIError(ERR_RMA_SYNC, "Test without Post")
        if not self.exposure.complete:
            progress()
            if not self.exposure.complete:
                return False
        self.wait()
        return True

    # -- locks --------------------------------------------------------------------------------------------------------

    cpdef int lock(self, int target, int kind, int assertion) except -1:
        """Returns when the target's memory is ours."""
        if kind != LOCK_EXCLUSIVE and kind != LOCK_SHARED:
            raise MPIError(ERR_LOCKTYPE, f"lock_type: LOCK_EXCLUSIVE or LOCK_SHARED expected, got {kind}")
        if self.locked[target] or self.locked_all:
            raise MPIError(ERR_RMA_SYNC, f"rank {target} is locked by this process already")
        if assertion & ASSERT_NOCHECK:
            self.unchecked.add(target)
        else:
            self.heed(target, self.ask(target, KIND_LOCK, FLAG_SHARED if kind == LOCK_SHARED else 0, WIN_LOCK))
        self.locked[target] = kind
        return 0

    cpdef int unlock(self, int target) except -1:
        """Accesses are complete at the target, then others may have it."""
        if not self.locked[target]:
            raise MPIError(ERR_RMA_SYNC, f"Unlock: this process has not locked rank {target}")
        self.locked[target] = 0
        if target in self.unchecked:
            self.unchecked.discard(target)
            self.complete_at((target,), False)
            return 0
        return self.release((target,))

    def release(self, targets):
        """Give locks back, and wait for what was done under them."""
        cdef int target
        cdef list answers = []
        full_fence()
        for target in targets:
            self.dirty[target] = False
            answers.append((target, self.ask(target, KIND_UNLOCK, 0, WIN_LOCK)))
        for target in targets:
            if self.pending[target]:
                self.finish_pending(target)
        self.heed_all(answers)
        return 0

    cpdef int lock_all(self, int assertion) except -1:
        """Returns when every rank's memory is shared with us."""
        cdef int target
        if self.locked_all or any([self.locked[target] for target in range(self.ranks)]):
            raise MPIError(ERR_RMA_SYNC, "Lock_all: this process holds locks of the window already")
        self.all_unchecked = assertion & ASSERT_NOCHECK
        if not self.all_unchecked:
            self.heed_all([(target, self.ask(target, KIND_LOCK, FLAG_SHARED, WIN_LOCK)) for target in range(self.ranks)])
        self.locked_all = True
        return 0

    cpdef int unlock_all(self) except -1:
        """Accesses are complete everywhere, and all locks given back."""
        if not self.locked_all:
            raise MPIError(ERR_RMA_SYNC, "Unlock_all without Lock_all")
        self.locked_all = False
        if self.all_unchecked:
            self.complete_at(range(self.ranks), False)
            return 0
        return self.release(range(self.ranks))

    cpdef int sync(self) except -1:
        """Public and private copy are one; only the processor's order of accesses is left to see to."""
        full_fence()
        progress()
        return 0

    # -- dynamic windows ----------------------------------------------------------------------------------------------

    cpdef int attach(self, size_t address, Py_ssize_t size) except -1:
        """Add memory to this process's part."""
        if self.window.flavor != FLAVOR_DYNAMIC:
            raise MPIError(ERR_RMA_FLAVOR, "Attach: a window of Create_dynamic expected")
        for start, nbytes in self.service.regions.items():
            if address < start + nbytes and start < address + size:
                raise MPIError(ERR_RMA_ATTACH, f"Attach: the {size} bytes at {address:#x} overlap the {nbytes} at {start:#x} "
                                               "that are attached")
        self.service.regions[address] = size
        return 0

    cpdef int detach(self, size_t address) except -1:
        """Take memory away again."""
        if self.window.flavor != FLAVOR_DYNAMIC:
            raise MPIError(ERR_RMA_FLAVOR, "Detach: a window of Create_dynamic expected")
        if address not in self.service.regions:
            raise MPIError(ERR_ARG, f"Detach: nothing is attached at {address:#x}")
        del self.service.regions[address]
        return 0

    cpdef int free(self) except -1:
        """All ranks meet: nobody will order anything of this one."""
        if self.exposure is not None or self.started is not None or self.locked_all:
            raise MPIError(ERR_RMA_SYNC, "Free within an epoch: end it first (Wait, Complete or Unlock_all)")
        self.complete_at(range(self.ranks), False)
        self.service.settle()
        self.meet(WIN_FREE)
        self.service.settle()
        return self.service.close()
