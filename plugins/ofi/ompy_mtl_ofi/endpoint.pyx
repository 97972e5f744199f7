# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# cython: auto_pickle=False
"""An endpoint of libfabric's; see `endpoint.pxd`."""
import os

from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from ompy.core.constants cimport OK, OUT_OF_RESOURCE
from ompy.core.errors import ERR_OTHER, MPIError

from ompy_mtl_ofi.fabric cimport (
    CANCELLED, COMMAND_ENABLE, COMMAND_GET_WAIT, ENDPOINT_RELIABLE_DATAGRAM, ERROR_AVAILABLE, FORMAT_TAGGED,
    INTERFACE_VERSION, MODE_CONTEXT, MODE_CONTEXT2, NO_MEMORY, RECEIVE, REMOTE, RESOURCES_ARE_MANAGED, SEND_AFTER_SEND,
    TAGGED, THREADS_TAKE_TURNS, TRANSMIT, TRY_AGAIN, UNSPECIFIED, WAIT_DESCRIPTOR, WAIT_NONE, fi_av_attr, fi_cq_attr,
    fi_cq_err_entry, fi_cq_tagged_entry,
)

cdef extern from "<dlfcn.h>" nogil:
    void *dlopen(const char *name, int flags)
    void *dlsym(void *handle, const char *name)
    const char *dlerror()
    int RTLD_NOW
    int RTLD_LOCAL

cdef enum:
    ENTRIES = 32                    # completions that are read at a time
    LOOKS_IN_VAIN = 8               # between two of those at the descriptor
    LONGEST_ADDRESS = 1024
    MOST_COMPLETIONS = 65536
    FEWEST_TAG_BITS = 48            # two for the protocol, 32 for MPI's tag, the rest for communicators


# Providers that take messages in their queue for others than they are: by version of libfabric, from and before.
# shm: wildcards of a receive do not count for messages that have come before it.
WRONG = {"shm": (1 << 16 | 17, 1 << 16 | 19)}


class Unavailable(Exception):
    """Why there is no endpoint, in words for people."""


cdef class Library:
    """libfabric.

    Parameters:
        name: of the shared object, or its path.

    Errors: Unavailable.
    """

    def __init__(self, str name not None):
        cdef bytes encoded = os.fsencode(name)
        self.handle = dlopen(encoded, RTLD_NOW | RTLD_LOCAL)
        if self.handle == NULL:
            raise Unavailable(dlerror().decode("utf-8", "replace"))
        for symbol in (b"fi_getinfo", b"fi_freeinfo", b"fi_dupinfo", b"fi_fabric", b"fi_strerror", b"fi_version"):
            if dlsym(self.handle, symbol) == NULL:
                raise Unavailable(f"{name} has no {symbol.decode()}: it is not libfabric")
        self.getinfo = <int (*)(unsigned int, const char *, const char *, uint64_t, fi_info *, fi_info **) noexcept> dlsym(
            self.handle, b"fi_getinfo")
        self.freeinfo = <void (*)(fi_info *) noexcept> dlsym(self.handle, b"fi_freeinfo")
        self.dupinfo = <fi_info *(*)(const fi_info *) noexcept> dlsym(self.handle, b"fi_dupinfo")
        self.fabric = <int (*)(void *, fid_fabric **, void *) noexcept> dlsym(self.handle, b"fi_fabric")
        self.strerror = <const char *(*)(int) noexcept> dlsym(self.handle, b"fi_strerror")
        self.version = <unsigned int (*)() noexcept> dlsym(self.handle, b"fi_version")

    cdef str explain(self, int number):
        return (<bytes> self.strerror(number)).decode("utf-8", "replace")


cdef class Endpoint(ProgressSource):
    """An endpoint of the first provider that can serve, in libfabric's order.

    Parameters:
        library: to open it with.
        room: bytes of each operation's own memory.
        elsewhere: some peers are on other hosts.
        only, never: names of providers that may be taken, all where none are named, and that may not.
        device: the only one (fi_info(1): `domain`) that is taken; empty for any.

    Errors: Unavailable.
    """

    def __init__(self, Library library not None, uint64_t room, *, bint elsewhere, only=(), never=(), str device=""):
        self.library = library
        self.process = os.getpid()
        self.room = room
        self.slabs = []
        self.waiter = -1
        self.choose(elsewhere, frozenset(only), frozenset(never), device)
        try:
            self.open()
        except BaseException:
            self.close()
            raise

    # -- opening and closing --------------------------------------------------------------------------------------

    def choose(self, bint elsewhere, only not None, never not None, str device):
        """Ask what there is, and keep the first that will do."""
        cdef fi_info *hints = self.library.dupinfo(NULL)
        cdef fi_info *found = NULL
        cdef fi_info *offer
        cdef int status
        if hints == NULL:
            raise MemoryError("no memory to ask libfabric for its providers")
        hints.caps = TAGGED | RECEIVE | TRANSMIT | (REMOTE if elsewhere else 0)
        hints.mode = MODE_CONTEXT | MODE_CONTEXT2
        hints.ep_attr.type = ENDPOINT_RELIABLE_DATAGRAM
        hints.domain_attr.threading = THREADS_TAKE_TURNS
        hints.domain_attr.resource_mgmt = RESOURCES_ARE_MANAGED
        hints.tx_attr.msg_order = hints.rx_attr.msg_order = SEND_AFTER_SEND
        status = self.library.getinfo(INTERFACE_VERSION, NULL, NULL, 0, hints, &found)
        self.library.freeinfo(hints)
        if status:
            raise Unavailable(f"libfabric has no provider of tagged messages here: {self.library.explain(-status)}")
        version = self.library.version()
        names = []
        offer = found
        while offer != NULL and self.info == NULL:
            name = offer.fabric_attr.prov_name.decode("utf-8", "replace")
            parts = {name, *name.split(";")}
            wanted = not parts & never and (not only or parts & only) and offer.ep_attr.msg_prefix_size == 0
            first, after = WRONG.get(name, (0, 0))
            if first <= version < after:
                name += f" (of libfabric {version >> 16}.{version & 0xFFFF}, which mismatches messages)"
                wanted = False
            if wanted and device and device != offer.domain_attr.name.decode("utf-8", "replace"):
                wanted = False
            if wanted and 64 - leading_zeros(offer.ep_attr.mem_tag_format) >= FEWEST_TAG_BITS:
                self.info = self.library.dupinfo(offer)
            names.append(name)
            offer = offer.next
        self.library.freeinfo(found)
        if self.info == NULL:
            raise Unavailable(f"of libfabric's providers here, {', '.join(dict.fromkeys(names))}, none may serve: see "
                              f"mtl_ofi_provider_include, mtl_ofi_provider_exclude, mtl_ofi_device")

    def open(self):
        """The objects, each from the one before."""
        cdef fi_av_attr vector
        cdef fi_cq_attr queue
        cdef char address[LONGEST_ADDRESS]
        cdef size_t length = LONGEST_ADDRESS
        self.provider = self.info.fabric_attr.prov_name.decode("utf-8", "replace")
        self.inject_size = self.info.tx_attr.inject_size
        self.largest = max(<uint64_t> self.info.ep_attr.max_msg_size, self.room)
        self.receives = self.info.rx_attr.size
        self.tag_bits = 64 - leading_zeros(self.info.ep_attr.mem_tag_format)
        if self.info.ep_attr.max_msg_size < self.room:
            raise Unavailable(f"{self.provider} carries no message of {self.room} bytes: set mtl_ofi_eager_limit lower")
        self.check("fabric", self.library.fabric(self.info.fabric_attr, &self.fabric, NULL))
        self.check("domain", self.fabric.ops.domain(self.fabric, self.info, &self.domain, NULL))
        memset(&vector, 0, sizeof(vector))
        vector.type = self.info.domain_attr.av_type
        self.check("address vector", self.domain.ops.av_open(self.domain, &vector, &self.addresses, NULL))
        memset(&queue, 0, sizeof(queue))
        queue.size = min(self.info.tx_attr.size + self.info.rx_attr.size, <size_t> MOST_COMPLETIONS)
        queue.format = FORMAT_TAGGED
        queue.wait_obj = WAIT_DESCRIPTOR
        if self.domain.ops.cq_open(self.domain, &queue, &self.completions, NULL) == 0:
            if self.completions.fid.ops.control(&self.completions.fid, COMMAND_GET_WAIT, &self.waiter):
                self.waiter = -1
        else:
            queue.wait_obj = WAIT_NONE
            self.check("completion queue", self.domain.ops.cq_open(self.domain, &queue, &self.completions, NULL))
        self.check("endpoint", self.domain.ops.endpoint(self.domain, self.info, &self.ep, NULL))
        self.check("endpoint", self.ep.fid.ops.bind(&self.ep.fid, &self.addresses.fid, 0))
        self.check("endpoint", self.ep.fid.ops.bind(&self.ep.fid, &self.completions.fid, TRANSMIT | RECEIVE))
        self.check("endpoint", self.ep.fid.ops.control(&self.ep.fid, COMMAND_ENABLE, NULL))
        self.check("address", self.ep.cm.getname(&self.ep.fid, address, &length))
        self.name = address[:length]

    def check(self, str what not None, int status):
        """Errors: Unavailable where the status is not zero."""
        if status:
            raise Unavailable(f"{self.provider} can't open its {what}: {self.library.explain(-status)}")

    cpdef int close(self) except -1:
        """Give everything back, the last first; a child made by fork leaves it to its parent."""
        if self.process != os.getpid():
            return 0
        if self.ep != NULL:
            self.ep.fid.ops.close(&self.ep.fid)
        if self.completions != NULL:
            self.completions.fid.ops.close(&self.completions.fid)
        if self.addresses != NULL:
            self.addresses.fid.ops.close(&self.addresses.fid)
        if self.domain != NULL:
            self.domain.fid.ops.close(&self.domain.fid)
        if self.fabric != NULL:
            self.fabric.fid.ops.close(&self.fabric.fid)
        if self.info != NULL:
            self.library.freeinfo(self.info)
        self.ep = NULL
        self.completions = NULL
        self.addresses = NULL
        self.domain = NULL
        self.fabric = NULL
        self.info = NULL
        self.waiter = -1
        self.release_operations()
        return 0

    def release_operations(self):
        """The provider has let go of all of them."""
        cdef Operation *operation
        cdef int index
        slabs, self.slabs = self.slabs, []
        self.spare = NULL
        self.count = 0
        for address, memory in slabs:
            operation = <Operation *> <size_t> address
            for index in range(SLAB):
                if operation[index].owner != NULL:
                    Py_DECREF(<object> operation[index].owner)
            free(operation)
            free(<void *> <size_t> memory)

    def __dealloc__(self):
        free(self.events)

    cdef uint64_t insert(self, bytes address) except? 0xFFFFFFFFFFFFFFFF:
        """The handle of a peer's address."""
        cdef uint64_t handle = UNSPECIFIED
        cdef int made = self.addresses.ops.insert(self.addresses, <const char *> address, 1, &handle, 0, NULL)
        if made != 1:
            raise MPIError(ERR_OTHER, f"{self.provider} does not take a peer's address"
                                      f"{': ' + self.library.explain(-made) if made < 0 else ''}")
        return handle

    def remove(self, uint64_t handle):
        """Nobody is reached there any more."""
        if self.addresses != NULL:
            self.addresses.ops.remove(self.addresses, &handle, 1, 0)

    # -- operations -----------------------------------------------------------------------------------------------

    cdef Operation *take(self, int kind, object owner) except NULL:
        cdef Operation *operation = self.spare
        if operation == NULL:
            self.make_operations()
            operation = self.spare
        self.spare = operation.next
        operation.next = NULL
        operation.kind = kind
        operation.data = operation.room
        operation.owner = NULL
        if owner is not None:
            Py_INCREF(owner)
            operation.owner = <void *> owner
        return operation

    def make_operations(self):
        """Some more of them.  Their rooms lie apart, and take memory only when something is in them."""
        cdef Operation *made = <Operation *> calloc(SLAB, sizeof(Operation))
        cdef char *rooms = <char *> malloc(SLAB * self.room)
        cdef int index
        if made == NULL or rooms == NULL:
            free(made)
            free(rooms)
            raise MemoryError(f"no memory for {SLAB} operations of {self.room} bytes")
        self.slabs.append((<size_t> made, <size_t> rooms))
        for index in range(SLAB):
            made[index].room = rooms + index * self.room
            made[index].next = self.spare
            self.spare = &made[index]

    cdef int give(self, Operation *operation) except -1:
        cdef void *owner = operation.owner
        operation.owner = NULL
        operation.next = self.spare
        self.spare = operation
        if owner != NULL:
            Py_DECREF(<object> owner)
        return 0

    cdef int send(self, Operation *operation) noexcept:
        cdef ssize_t status = self.ep.tagged.send(self.ep, operation.data, operation.length, NULL, operation.address,
                                                  operation.tag, operation)
        if status == 0:
            self.sending += 1
            return OK
        return OUT_OF_RESOURCE if status == -TRY_AGAIN else <int> status

    cdef int inject(self, const char *data, uint64_t length, uint64_t address, uint64_t tag) noexcept:
        cdef ssize_t status = self.ep.tagged.inject(self.ep, data, length, address, tag)
        return OUT_OF_RESOURCE if status == -TRY_AGAIN else <int> status

    cdef int receive(self, Operation *operation, uint64_t ignore) noexcept:
        cdef ssize_t status = self.ep.tagged.recv(self.ep, <void *> operation.data, operation.length, NULL, UNSPECIFIED,
                                                  operation.tag, ignore, operation)
        # Some say that they have no memory where their queue is full.
        return OUT_OF_RESOURCE if status in (-TRY_AGAIN, -NO_MEMORY) else <int> status

    # -- events ---------------------------------------------------------------------------------------------------

    cdef bint take_back(self, Operation *operation) except -1:
        cdef int index
        cdef Event *event
        self.ep.ops.cancel(&self.ep.fid, operation)
        self.read()
        for index in range(self.count):
            event = &self.events[(self.first + index) % self.size]
            if event.operation == operation:
                if event.error != CANCELLED:
                    return False
                event.operation = NULL
                return True
        return False

    cdef int read(self) except -1:
        cdef fi_cq_tagged_entry entries[ENTRIES]
        cdef fi_cq_err_entry failed
        cdef ssize_t found
        cdef int index
        while True:
            found = self.completions.ops.read(self.completions, entries, ENTRIES)
            if found == -ERROR_AVAILABLE:
                memset(&failed, 0, sizeof(failed))
                if self.completions.ops.readerr(self.completions, &failed, 0) < 1:
                    break
                self.note(failed.op_context, 0, failed.tag, failed.err)
                continue
            if found <= 0:
                break
            for index in range(found):
                self.note(entries[index].op_context, entries[index].len, entries[index].tag, 0)
            if found < ENTRIES:
                break
        if self.count == 0 and self.waiter >= 0:
            self.vain += 1
            if self.vain % LOOKS_IN_VAIN == 0:
                self.is_quiet()                  # or else a descriptor that was readable once stays so
        return self.count

    cdef int note(self, void *operation, uint64_t length, uint64_t tag, int error) except -1:
        cdef Event *larger
        cdef int index
        if operation == NULL:
            return 0
        if self.count == self.size:
            larger = <Event *> malloc((2 * self.size + ENTRIES) * sizeof(Event))
            if larger == NULL:
                raise MemoryError("no memory for what libfabric has completed")
            for index in range(self.count):
                larger[index] = self.events[(self.first + index) % self.size]
            free(self.events)
            self.events = larger
            self.first = 0
            self.size = 2 * self.size + ENTRIES
        self.events[(self.first + self.count) % self.size] = Event(<Operation *> operation, length, tag, error)
        self.count += 1
        return 0

    cdef bint next_event(self, Event *event) noexcept:
        while self.count:
            event[0] = self.events[self.first]
            self.first = (self.first + 1) % self.size
            self.count -= 1
            if event.operation != NULL:
                return True
        return False

    cpdef int descriptor(self) except -2:
        """Becomes readable when something has come, where the provider has such a thing."""
        return self.waiter

    cpdef bint may_sleep(self) except -1:
        """The descriptor tells only of what comes after it was asked whether one may wait for it."""
        return self.count == 0 and self.is_quiet()

    cdef bint is_quiet(self) noexcept:
        cdef fid *awaited = &self.completions.fid
        return self.waiter >= 0 and self.fabric.ops.trywait(self.fabric, &awaited, 1) == 0


cdef inline int leading_zeros(uint64_t word) noexcept:
    cdef int count = 0
    while count < 64 and not word >> (63 - count) & 1:
        count += 1
    return count
