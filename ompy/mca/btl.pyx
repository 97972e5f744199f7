# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Base classes of byte transfer layers.  The contract is in `btl.pxd`."""
from cpython.buffer cimport PyBUF_READ, PyBUF_WRITE
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.memoryview cimport PyMemoryView_FromMemory
cimport cython
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy

from ompy.core.atomic cimport atomic32, atomic64
from ompy.core.constants cimport OK, OUT_OF_RESOURCE
from ompy.core.copying cimport copy_bytes
from ompy.core.proc cimport Proc
from ompy.core.registration cimport RegistrationCache

from _functools import partial

from ompy.core.errors import ERR_ARG, ERR_INTERN, MPIError

interface = INTERFACE

SEND = FLAG_SEND
PUT = FLAG_PUT
GET = FLAG_GET
ATOMICS = FLAG_ATOMICS
IN_ORDER = FLAG_IN_ORDER
SENDI = FLAG_SENDI
NEEDS_REGISTRATION = FLAG_NEEDS_REGISTRATION
ASYNCHRONOUS = FLAG_ASYNCHRONOUS
RENEWAL = FLAG_RENEWAL
BACK_PRESSURE = OUT_OF_RESOURCE
TAKEN = OK
FREE_TAGS = range(16, TAG_COUNT)

# Spare descriptors kept by a BTL; what a burst made beyond that goes back to the allocator.
cdef int SPARE_DESCRIPTORS = 64


atomic_names = ("add", "and", "or", "xor", "swap", "min", "max", "cswap")
cdef dict atomic_codes = {name: code for code, name in enumerate(atomic_names)}


cdef int carry_out_atomic(void *word, size_t size, str operation, int64_t operand, int64_t compare, void *old) except -1:
    code = atomic_codes.get(operation)
    if code is None or (size != 4 and size != 8) or <size_t> word % size:
        raise MPIError(ERR_ARG, f"atomic: no {operation} on {size} bytes at {<size_t> word:#x}: one of "
                                f"{', '.join(atomic_names)} on 4 or 8 bytes expected, at a multiple of their number")
    if size == 8:
        (<int64_t *> old)[0] = atomic64(<int64_t *> word, code, operand, compare)
    else:
        (<int32_t *> old)[0] = <int32_t> atomic32(<int32_t *> word, code, operand, compare)
    return 0


cdef class Endpoint:
    """One peer as one BTL sees it."""

    def __init__(self, Btl btl, Proc proc):
        self.btl = btl
        self.proc = proc


cdef class Receiver:
    """Takes the active messages of one tag."""

    cdef int arrive(self, Btl btl, Endpoint endpoint, const char *data, size_t length) except -1:
        view = PyMemoryView_FromMemory(<char *> data, length, PyBUF_READ) if length else memoryview(b"")
        try:
            self.receive(btl, endpoint, view)
        finally:
            view.release()
        return 0

    cpdef int receive(self, Btl btl, Endpoint endpoint, object data) except -1:
        """Override in Python: `data` is a memoryview that is released when this returns."""
        raise NotImplementedError(f"{type(self).__name__} overrides neither arrive nor receive")


cdef class Descriptor:
    """A run of bytes on its way; see `btl.pxd`."""

    def __cinit__(self, Btl btl=None, size_t capacity=0):
        self.btl = btl
        self.capacity = capacity
        if capacity:
            self.data = <char *> PyMem_Malloc(capacity)
            if self.data == NULL:
                raise MemoryError(f"no memory for a descriptor of {capacity} bytes")

    def __dealloc__(self):
        PyMem_Free(self.data)

    cpdef int complete(self, int status=0) except -1:
        """The transfer is over: run the callback, exactly once, and give the descriptor back.

        Errors: ERR_INTERN when it was not in flight, which is a bug in the BTL.
        """
        cdef CompletionFunction callback = self.callback
        if not self.in_flight:
            raise MPIError(
                ERR_INTERN,
                f"btl {self.btl.name} completed a descriptor that was not in flight "
                "(clause 15 of ompy/mca/btl.pxd, completion)",
            )
        self.in_flight = False
        context = self.context
        if callback != NULL:
            callback(context, self, status)
        elif context is not None:
            context(self, status)
        self.btl.free(self)
        return 0

    @property
    def view(self):
        """The `length` bytes of header and payload to send, as a writable memoryview."""
        return PyMemoryView_FromMemory(self.data, self.length, PyBUF_WRITE) if self.length else memoryview(bytearray())

    @property
    def payload_view(self):
        """Bytes to send after `view`, still in the program's memory; empty when there are none."""
        if self.payload == NULL or self.payload_length == 0:
            return memoryview(b"")
        return PyMemoryView_FromMemory(self.payload, self.payload_length, PyBUF_READ)

    @property
    def local_view(self):
        """The local memory of a put or get."""
        if self.size == 0:
            return memoryview(bytearray())
        return PyMemoryView_FromMemory(<char *> self.local_address, self.size, PyBUF_WRITE)

    @property
    def total_length(self):
        """Bytes on the wire: header, copied payload and referenced payload."""
        return self.length + self.payload_length


@cython.freelist(8)
cdef class Parting:
    """What becomes of a message of the default `sendi`, whose sender keeps nothing of it."""
    cdef Endpoint endpoint
    cdef bint gone                               # the sender has been told that it was taken
    cdef int status

    cdef object error(self):
        cdef Proc proc = self.endpoint.proc
        name = self.endpoint.btl.name
        return MPIError(self.status, f"btl {name} could not deliver a message to rank {proc.rank} of {proc.job}")


cdef int parted(object context, Descriptor descriptor, int status) except -1:
    cdef Parting parting = <Parting> context
    parting.status = status
    if status != OK and parting.gone:
        parting.endpoint.btl.report_error(parting.endpoint.proc, parting.error())
    return 0


cdef class Btl(ProgressSource):
    """Base of byte transfer layers.  The smallest useful one overrides `add_procs`, `send` and `progress`."""

    def __cinit__(self, *args, **kwargs):
        self.receivers = [None] * TAG_COUNT
        self.spare_descriptors = []
        self.counters = {}
        self.name = type(self).__name__
        self.flags = FLAG_SEND
        self.eager_limit = 4096
        self.rndv_eager_limit = 4096
        self.max_send_size = 65536
        self.rdma_pipeline_send_length = 65536
        self.rdma_pipeline_frag_size = 1 << 20
        self.min_rdma_pipeline_size = 1 << 17
        self.put_alignment = 1
        self.get_alignment = 1
        self.latency = 100000
        self.bandwidth = 100

    cpdef bytes address(self):
        """What peers need to reach this process, published on its card."""
        return b""

    cpdef dict cards(self):
        """The entries of this process's card, by the names that peers look for: mostly `name` and `address()`."""
        return {self.name: self.address()}

    cpdef list add_procs(self, list procs):
        """An Endpoint for each process that can be reached, a reason (str) for each that can't."""
        raise NotImplementedError(f"btl {self.name} does not override add_procs")

    cpdef int del_procs(self, list endpoints) except -1:
        """Give back what these endpoints hold."""
        return 0

    cpdef int renew(self, Endpoint endpoint) except -1:
        """End what contact there is; the next message to the endpoint makes it anew."""
        raise NotImplementedError(f"btl {self.name} can't make contact anew")

    def serves_other_jobs(self):
        """Whether it can carry messages to and from processes that this one's job met (`Proc.circle`)."""
        return False

    def remark(self):
        """What people should know of all ways that it makes, as that they are encrypted; "": nothing."""
        return ""

    def admit(self, circle):
        """Members of the circle, who may be unknown yet, are about to connect."""

    def dismiss(self, circle):
        """Nobody is known from the circle any more: who shows its secret is a stranger."""

    cpdef int register(self, int tag, Receiver receiver) except -1:
        """Active messages of `tag` (0 to 255) go to `receiver` from now on."""
        self.receivers[tag] = receiver
        return 0

    cpdef int register_error(self, object handler) except -1:
        """`handler(btl, proc, exception)` is told of each broken peer."""
        self.error_handler = handler
        return 0

    cpdef int report_error(self, Proc proc, object error) except -1:
        """For BTLs: contact with `proc` is lost."""
        if self.error_handler is not None:
            self.error_handler(self, proc, error)
        return 0

    cpdef int release_registrations(self) except -1:
        """Deregister what is kept; called before `finalize`."""
        if self.registrations is not None:
            self.registrations.clear()
        return 0

    cpdef int finalize(self) except -1:
        """Leave nothing behind."""
        return 0

    cpdef dict statistics(self):
        """Counters by name."""
        cdef dict numbers = dict(self.counters)
        if self.registrations is not None:
            numbers["registrations"] = self.registrations.misses
            numbers["registrations_reused"] = self.registrations.hits
        return numbers

    cpdef Descriptor alloc(self, Endpoint endpoint, size_t size):
        """A descriptor with room for `size` bytes (at most `max_send_size`), or None when out of resources."""
        cdef Descriptor descriptor
        if self.spare_descriptors:
            descriptor = <Descriptor> self.spare_descriptors.pop()
            if descriptor.capacity >= size:
                descriptor.length = size
                return descriptor
        descriptor = Descriptor.__new__(Descriptor, self, max(size, self.eager_limit))
        descriptor.length = size
        return descriptor

    cpdef int free(self, Descriptor descriptor) except -1:
        """Take a descriptor back that is not in flight."""
        descriptor.callback = NULL
        descriptor.context = None
        descriptor.payload = NULL
        descriptor.payload_length = 0
        descriptor.local_handle = None
        descriptor.remote_handle = None
        if descriptor.capacity and len(self.spare_descriptors) < SPARE_DESCRIPTORS:
            self.spare_descriptors.append(descriptor)
        return 0

    cpdef Descriptor prepare_src(self, Endpoint endpoint, size_t address, size_t header_size, size_t size):
        """A descriptor for a header and `size` bytes of user memory; here they are copied."""
        cdef Descriptor descriptor = self.alloc(endpoint, header_size + size)
        if descriptor is not None and size:
            copy_bytes(descriptor.data + header_size, <const char *> address, size)
        return descriptor

    cpdef Descriptor prepare_dst(self, Endpoint endpoint, size_t address, size_t size):
        """A descriptor that names user memory for a peer's put, registered if this BTL wants that."""
        cdef Descriptor descriptor = Descriptor.__new__(Descriptor, self, 0)
        descriptor.local_address = address
        descriptor.size = size
        if self.flags & FLAG_NEEDS_REGISTRATION:
            descriptor.local_handle = self.hold_mem(endpoint, address, size)
        return descriptor

    cpdef int send(self, Endpoint endpoint, Descriptor descriptor, int tag) except -1:
        """Send header and payload as one active message; OUT_OF_RESOURCE when it was not taken."""
        raise NotImplementedError(f"btl {self.name} does not override send")

    cdef int sendi(self, Endpoint endpoint, const char *header, size_t header_size,
                   const char *payload, size_t payload_size, int tag) except -1:
        cdef Descriptor descriptor = self.alloc(endpoint, header_size + payload_size)
        cdef Parting parting
        cdef int taken
        if descriptor is None:
            return OUT_OF_RESOURCE
        if header_size:
            memcpy(descriptor.data, header, header_size)
        if payload_size:
            copy_bytes(descriptor.data + header_size, payload, payload_size)
        parting = Parting.__new__(Parting)
        parting.endpoint = endpoint
        descriptor.callback = parted
        descriptor.context = parting
        descriptor.in_flight = True
        taken = self.send(endpoint, descriptor, tag)
        if taken != OK:
            descriptor.in_flight = False
            self.free(descriptor)
        elif parting.status != OK:
            raise parting.error()
        parting.gone = True
        return taken

    def post(self, Endpoint endpoint not None, const unsigned char[::1] data, int tag, Py_ssize_t header_size=-1):
        """`sendi` for callers in Python: the bytes of `data`, at once; returns `TAKEN` or `BACK_PRESSURE`.

        Parameters:
            header_size: so many of them are the header and the others the payload; negative: all are.

        Errors: ValueError when the header would be longer than the data.
        """
        cdef size_t size = data.shape[0]
        cdef size_t head = size if header_size < 0 else header_size
        if head > size:
            raise ValueError(f"header_size: {size} bytes of data have no header of {header_size}")
        cdef const char *place = <const char *> &data[0] if size else NULL
        return self.sendi(endpoint, place if head else NULL, head, place + head if size > head else NULL, size - head, tag)

    cpdef bint exposes(self, Endpoint endpoint, size_t address, size_t size) except -1:
        """Whether the peer's `get` may read this memory; here, whenever there is `get` at all."""
        return True

    cpdef bint withdraw(self, Endpoint endpoint, size_t address, size_t size) except -1:
        """The peer's `get`s and `put`s there fail from now on; False: it can't be called back."""
        return False

    cpdef int restore(self, Endpoint endpoint, size_t address, size_t size) except -1:
        """What was withdrawn may be read and written again."""
        return 0

    cpdef int put(self, Endpoint endpoint, Descriptor descriptor) except -1:
        """Write `size` bytes at `local_address` to the peer's `remote_address`."""
        raise NotImplementedError(f"btl {self.name} has no put")

    cpdef int get(self, Endpoint endpoint, Descriptor descriptor) except -1:
        """Read `size` bytes at the peer's `remote_address` to `local_address`."""
        raise NotImplementedError(f"btl {self.name} has no get")

    cpdef int atomic(self, Endpoint endpoint, Descriptor descriptor, str operation, object operand,
                     object compare) except -1:
        """An atomic on 4 or 8 bytes of peer memory."""
        raise NotImplementedError(f"btl {self.name} has no atomics")

    cpdef bytes register_mem(self, Endpoint endpoint, size_t address, size_t size):
        """Make memory ready for put and get; the handle, unique while it lives, goes to the peer.

        Raises MPIError with ERR_NO_MEM when no more can be registered: what is kept unused is then given up, and if that is not
        enough, messages go another way.  `put` and `get` may, too.
        """
        return b""

    cpdef int deregister_mem(self, bytes handle) except -1:
        """The counterpart of `register_mem`."""
        return 0

    cpdef bytes hold_mem(self, Endpoint endpoint, size_t address, size_t size):
        """Handle of a registration, a kept or a new one, of memory that contains these `size` bytes, until `release_mem`."""
        if self.registrations is None:
            self.registrations = RegistrationCache(partial(self.register_mem, endpoint), self.deregister_mem,
                                                   self.registration_budget)
        return self.registrations.hold(address, size)

    cpdef int release_mem(self, bytes handle) except -1:
        """The counterpart of `hold_mem`."""
        return self.registrations.release(handle)

    cpdef int flush(self, Endpoint endpoint) except -1:
        """OK once every put and atomic is visible at the peer; OUT_OF_RESOURCE: ask again."""
        return OK

    cpdef int deliver_view(self, int tag, Endpoint endpoint, const unsigned char[::1] data) except -1:
        """For BTLs in Python: hand an arrived message, any contiguous buffer, to the receiver of its tag."""
        if self.receivers[tag] is None:
            raise MPIError(
                ERR_INTERN,
                f"btl {self.name} got a message with tag {tag}, which nobody registered (clause 12 of ompy/mca/btl.pxd, tag)",
            )
        return self.deliver(tag, endpoint, <const char *> &data[0] if data.shape[0] else NULL, data.shape[0])
