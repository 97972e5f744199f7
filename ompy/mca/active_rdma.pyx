# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Put, get and atomics for a BTL that has none.  See `active_rdma.pxd`."""
from collections import deque

from cpython.bytearray cimport PyByteArray_AS_STRING
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy, memset

from ompy.core.constants cimport OK, OUT_OF_RESOURCE
from ompy.core.convertor cimport Run, gather_blocks, scatter_blocks
from ompy.core.copying cimport copy_bytes
from ompy.core.progress_source cimport register_source, unregister_source
from ompy.mca.btl cimport (
    FLAG_ATOMICS, FLAG_GET, FLAG_PUT, FLAG_SEND, TAG_OSC, Btl, Descriptor, Endpoint, Receiver, atomic_names, carry_out_atomic,
)

from ompy.core.errors import ERR_PROC_FAILED, ERR_RMA_RANGE, MPIError

cdef enum:
    # Rounds of progress after which it is looked whether those who are to answer have gone.
    PATIENCE = 256
    # Handles are the name alone.
    HANDLE_SIZE = 8

cdef dict layers = {}
cdef dict regions = {}
cdef dict registers = {}
cdef uint64_t names = 0


cdef ActiveRdma around(Btl inner):
    cdef ActiveRdma layer = layers.get(inner)
    if layer is None:
        layer = layers[inner] = ActiveRdma(inner)
        register_source(layer)
    layer.users += 1
    return layer


cdef int let_go(ActiveRdma layer) except -1:
    layer.users -= 1
    if layer.users == 0:
        unregister_source(layer)
        del layers[layer.inner]
    return 0


cdef uint64_t open_region(uint64_t address, uint64_t size) except 0:
    global names
    names += 1
    regions[names] = (address, size)
    return names


cdef int close_region(uint64_t name) except -1:
    del regions[name]
    return 0


cdef uint64_t open_register(object register) except 0:
    global names
    names += 1
    registers[names] = register
    return names


cdef int close_register(uint64_t name) except -1:
    del registers[name]
    return 0


cdef char *place_of(const Order *order):
    """Where the bytes are; NULL unless they lie in a region of ours."""
    cdef uint64_t address, size
    region = regions.get(order.region)
    if region is None or order.size < 0:
        return NULL
    address, size = region
    if order.address < address or order.address - address > size or <uint64_t> order.size > size - (order.address - address):
        return NULL
    return <char *> order.address


cdef int64_t bytes_of_runs(const Order *order, const char *data, size_t length) except -2:
    """Of all blocks; -1 unless they lie in the region."""
    cdef uint64_t address, size, start, reach
    cdef int64_t nbytes = 0
    cdef Run run
    cdef int64_t number
    region = regions.get(order.region)
    if region is None or order.operand < 0 or <uint64_t> order.operand > length // sizeof(Run):
        return -1
    address, size = region
    for number in range(order.operand):
        memcpy(&run, data + number * sizeof(Run), sizeof(Run))
        start = <uint64_t> run.place - address
        if run.length <= 0 or run.count <= 0 or <uint64_t> run.length > size or start > size - run.length:
            return -1
        if run.stride and run.count > 1:
            # How many strides there is room for, upwards or downwards.
            reach = (size - run.length - start) // <uint64_t> run.stride if run.stride > 0 else start // <uint64_t> -run.stride
            if <uint64_t> (run.count - 1) > reach:
                return -1
        nbytes += run.length * run.count
    return nbytes


cdef void move_runs(const char *runs, size_t size, char *blocks, bint scatter) noexcept nogil:
    cdef const char *end = runs + size
    cdef Run run
    while runs < end:
        memcpy(&run, runs, sizeof(Run))
        if scatter:
            scatter_blocks(blocks, run.place, run.length, run.count, run.stride)
        else:
            gather_blocks(blocks, run.place, run.length, run.count, run.stride)
        blocks += run.length * run.count
        runs += sizeof(Run)


cdef bint has_answers(void *context) noexcept nogil:
    return (<int *> context)[0]


cdef class Servant(Receiver):
    """Takes what comes over one inner BTL."""
    cdef ActiveRdma layer

    cdef int arrive(self, Btl btl, Endpoint endpoint, const char *data, size_t length) except -1:
        return self.layer.arrived(endpoint, data, length)


cdef class ActiveRdma(Btl):
    """Remote memory access over the active messages of a BTL.

    Parameters:
        inner: carries them.
    """

    def __init__(self, Btl inner not None):
        cdef Servant servant = Servant()
        self.name = inner.name
        self.inner = inner
        self.flags = FLAG_SEND | FLAG_PUT | FLAG_GET | FLAG_ATOMICS
        self.put_limit = self.get_limit = inner.max_send_size - sizeof(Order)
        self.accesses = {}
        self.answers = deque()
        servant.layer = self
        self.ready = has_answers
        self.ready_context = &self.waiting
        inner.register(TAG_OSC, servant)

    # -- the origin's side ------------------------------------------------------------------------------------------------

    cdef int order(self, Endpoint endpoint, Descriptor descriptor, Order *order, const void *body, size_t size) except -1:
        cdef int taken
        self.numbers += 1
        order.number = self.numbers
        order.size = <int> descriptor.size
        order.address = descriptor.remote_address
        memcpy(&order.region, <char *> descriptor.remote_handle, HANDLE_SIZE)
        taken = self.inner.sendi(endpoint, <char *> order, sizeof(Order), <const char *> body, size, TAG_OSC)
        if taken == OK:
            descriptor.in_flight = True
            self.accesses[order.number] = (descriptor, endpoint)
        return taken

    cpdef int put(self, Endpoint endpoint, Descriptor descriptor) except -1:
        """Complete when the target has said so: then it is there."""
        cdef Order order
        memset(&order, 0, sizeof(Order))
        order.kind = PUT
        return self.order(endpoint, descriptor, &order, <void *> descriptor.local_address, descriptor.size)

    cpdef int get(self, Endpoint endpoint, Descriptor descriptor) except -1:
        """Complete when the data have come."""
        cdef Order order
        memset(&order, 0, sizeof(Order))
        order.kind = GET
        return self.order(endpoint, descriptor, &order, NULL, 0)

    cdef int scatter(self, Endpoint endpoint, Descriptor descriptor, size_t count) except -1:
        cdef Order order
        memset(&order, 0, sizeof(Order))
        order.kind = SCATTER
        order.operand = <int64_t> count
        return self.order(endpoint, descriptor, &order, <void *> descriptor.local_address, descriptor.size)

    cdef int gather(self, Endpoint endpoint, Descriptor descriptor, size_t count) except -1:
        cdef Order order
        memset(&order, 0, sizeof(Order))
        order.kind = GATHER
        order.operand = <int64_t> count
        return self.order(endpoint, descriptor, &order, <void *> descriptor.remote_address, count * sizeof(Run))

    cpdef int atomic(self, Endpoint endpoint, Descriptor descriptor, str operation, object operand,
                     object compare) except -1:
        """Complete when the old value has come."""
        cdef Order order
        memset(&order, 0, sizeof(Order))
        order.kind = ATOMIC
        order.operation = atomic_names.index(operation)
        order.operand = operand
        order.compare = compare
        return self.order(endpoint, descriptor, &order, NULL, 0)

    cdef int ask(self, Endpoint endpoint, Descriptor descriptor) except -1:
        """Complete when the answer has come."""
        cdef Order order
        memset(&order, 0, sizeof(Order))
        order.kind = ASK
        return self.order(endpoint, descriptor, &order, NULL, 0)

    cpdef int flush(self, Endpoint endpoint) except -1:
        """What has been answered is there."""
        for _, other in self.accesses.values():
            if endpoint is None or other is endpoint:
                return OUT_OF_RESOURCE
        return OK

    cdef int greet(self, Endpoint endpoint) except -1:
        cdef Order order
        memset(&order, 0, sizeof(Order))
        order.kind = HELLO
        return self.answer(endpoint, &order, NULL, 0)

    cdef int conclude(self, const Order *order, const char *data, size_t length) except -1:
        cdef Descriptor descriptor
        access = self.accesses.pop(order.number, None)
        if access is None:
            return 0                             # its target was taken for dead
        descriptor = access[0]
        if order.status == 0:
            if order.kind == DATA:
                copy_bytes(<char *> descriptor.local_address, data, min(length, descriptor.size))
            elif order.operation and descriptor.size == 8:
                (<int64_t *> descriptor.local_address)[0] = order.operand
            elif order.operation:
                memcpy(<char *> descriptor.local_address, &order.operand, descriptor.size)
        descriptor.complete(order.status)
        return 0

    # -- the target's -----------------------------------------------------------------------------------------------------

    cdef int arrived(self, Endpoint endpoint, const char *data, size_t length) except -1:
        cdef Order order
        cdef char *place
        if length < sizeof(Order):
            return 0
        memcpy(&order, data, sizeof(Order))
        data += sizeof(Order)
        length -= sizeof(Order)
        if order.kind == DONE or order.kind == DATA:
            return self.conclude(&order, data, length)
        if order.kind == HELLO:
            return 0
        if order.kind == ASK:
            return self.look_up(endpoint, &order)
        if order.kind == SCATTER or order.kind == GATHER:
            return self.carry_runs(endpoint, &order, data, length)
        place = place_of(&order)
        order.status = 0 if place != NULL else ERR_RMA_RANGE
        if order.kind == PUT:
            if place != NULL and length == <size_t> order.size:
                copy_bytes(place, data, length)
            order.operation = 0
        elif order.kind == GET:
            order.kind = DATA
            return self.answer(endpoint, &order, place, order.size if place != NULL else 0)
        elif order.kind == ATOMIC and place != NULL:
            try:
                carry_out_atomic(place, order.size, atomic_names[order.operation], order.operand, order.compare,
                                 &order.operand)
            except (MPIError, IndexError):
                order.status = ERR_RMA_RANGE
            order.operation = 1
        order.kind = DONE
        return self.answer(endpoint, &order, NULL, 0)

    cdef int carry_runs(self, Endpoint endpoint, Order *order, const char *data, size_t length) except -1:
        """All of them, or none where a block does not lie in the region."""
        cdef bint scatter = order.kind == SCATTER
        cdef int64_t nbytes = bytes_of_runs(order, data, length)
        cdef size_t runs = <size_t> order.operand * sizeof(Run)
        cdef bytearray gathered
        order.operation = 0
        order.kind = DONE if scatter else DATA
        if nbytes < 0 or <size_t> nbytes != (length - runs if scatter else <size_t> order.size):
            order.status = ERR_RMA_RANGE
            return self.answer(endpoint, order, NULL, 0)
        if scatter:
            move_runs(data, runs, <char *> data + runs, True)
            return self.answer(endpoint, order, NULL, 0)
        gathered = bytearray(nbytes)
        move_runs(data, runs, PyByteArray_AS_STRING(gathered), False)
        return self.answer(endpoint, order, PyByteArray_AS_STRING(gathered), nbytes)

    cdef int look_up(self, Endpoint endpoint, Order *order) except -1:
        cdef bytes entry = b""
        register = registers.get(order.region)
        order.kind = DATA
        if register is None:
            order.status = ERR_RMA_RANGE
        else:
            entry = register.entry(order.address)
        return self.answer(endpoint, order, <char *> entry, len(entry))

    cdef int answer(self, Endpoint endpoint, Order *order, const char *data, size_t length) except -1:
        if endpoint is None:
            return 0
        if not self.answers and self.tell(endpoint, <char *> order, sizeof(Order), data, length) == OK:
            return 0
        self.answers.append((endpoint, (<char *> order)[:sizeof(Order)] + (data[:length] if length else b"")))
        self.waiting = 1
        return 0

    cdef int tell(self, Endpoint endpoint, const char *head, size_t head_size, const char *data, size_t length) except -1:
        """OK too where who asked has gone: that is for those who wait for it."""
        try:
            return self.inner.sendi(endpoint, head, head_size, data, length, TAG_OSC)
        except MPIError as error:
            if error.code != ERR_PROC_FAILED:
                raise
            return OK

    cpdef int progress(self) except -1:
        cdef Endpoint endpoint
        cdef bytes text
        cdef int events = 0
        while self.answers:
            endpoint, text = self.answers[0]
            if self.tell(endpoint, <char *> text, len(text), NULL, 0) != OK:
                break
            self.answers.popleft()
            events += 1
        self.waiting = 1 if self.answers else 0
        self.rounds += 1
        if self.accesses and self.rounds % PATIENCE == 0:
            events += self.give_up_the_dead()
        return events

    def give_up_the_dead(self) -> int:
        lost = [number for number, (_, endpoint) in self.accesses.items() if (<Endpoint> endpoint).proc.failure is not None]
        for number in lost:
            (<Descriptor> self.accesses.pop(number)[0]).complete(ERR_PROC_FAILED)
        return len(lost)

    cpdef bint may_sleep(self) except -1:
        return not self.answers
