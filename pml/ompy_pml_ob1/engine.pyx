# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-falign-jumps -falign-labels
"""What ob1's requests share."""
from _collections import deque

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport uint32_t

from ompy.core.constants cimport OK, OUT_OF_RESOURCE
from ompy.core.errors import ERR_OTHER, MPIError
from ompy.core.message_request cimport MessageRequest
from ompy.core.progress_source cimport register_source, unregister_source
from ompy.mca.btl cimport TAG_PML

from ompy_pml_ob1.header cimport ROUTE_NAME


cdef class Transfer(MessageRequest):
    cdef int push(self) except -1:
        raise NotImplementedError

    cdef int advance(self) except -1:
        try:
            if self.push() == OUT_OF_RESOURCE:
                self.engine.retry(self)
        except Exception as error:
            if not self.complete:
                self.fail(error)
        return 0

    cdef int header_left(self, Transfer header, object error) except -1:
        return 0 if error is None or self.complete else self.fail(error)

    cdef bint is_behind(self, Matching matching, int peer, uint32_t sequence) noexcept:
        return False

    cdef int move_up(self) except -1:
        raise NotImplementedError

    def describe(self):
        """One line for people who ask what hangs."""
        return f"{type(self).__name__} peer {self.peer} tag {self.tag} {self.nbytes} bytes"


cdef class ControlMessage(Transfer):
    """A header that found no resources when it was to be sent."""
    cdef bytes packet
    cdef Transfer owner

    cdef int push(self) except -1:
        cdef Route route = self.routes.first
        cdef const char *data = self.packet
        if self.routes.proc.failure is None \
                and route.btl.sendi(route.endpoint, data, len(self.packet), NULL, 0, TAG_PML) != OK:
            return OUT_OF_RESOURCE
        self.owner.header_left(self, None)
        return OK

    cpdef int fail(self, object error) except -1:
        """The transfer's."""
        self.finish()
        return self.owner.header_left(self, error)


cdef class Engine(ProgressSource):
    """Names, first contact, control messages and retries of one process.

    Parameters:
        bml: leads to the BTLs.
        send_pipeline_depth: fragments of one message under way on one route.
        rdma_pipeline_depth: puts of one message under way.
        use_get, use_put: whether these protocols may be chosen at all.
        checksum: compare the checksums of what they moved.
        name: of the PML, the same on every rank.
    """

    def __init__(self, Bml bml not None, size_t send_pipeline_depth, size_t rdma_pipeline_depth, bint use_get,
                 bint use_put, bint checksum, str name):
        self.bml = bml
        self.send_pipeline_depth = send_pipeline_depth
        self.rdma_pipeline_depth = rdma_pipeline_depth
        self.use_get = use_get
        self.use_put = use_put
        self.checksum = checksum
        self.name = name
        self.slots = []
        self.free_slots = []
        self.withdrawn = []
        self.waiting = {}
        self.packer = Convertor()
        self.ready = never_ready

    def __dealloc__(self):
        PyMem_Free(self.scratch)

    cdef int register_transfer(self, Transfer transfer) except -1:
        cdef uint64_t slot
        self.generation += 1
        if self.free_slots:
            slot = self.free_slots.pop()
            self.slots[slot] = transfer
        else:
            slot = len(self.slots)
            self.slots.append(transfer)
        transfer.number = self.generation << 32 | slot
        return 0

    cdef int unregister_transfer(self, Transfer transfer) except -1:
        cdef uint64_t slot = <uint32_t> transfer.number
        self.slots[slot] = None
        self.free_slots.append(slot)
        transfer.number = 0
        return 0

    cdef Transfer enrolled(self, uint64_t number):
        cdef uint64_t slot = <uint32_t> number
        cdef Transfer transfer
        if slot >= <uint64_t> len(self.slots):
            return None
        transfer = self.slots[slot]
        return transfer if transfer is not None and transfer.number == number else None

    cdef PeerRoutes contact(self, Matching matching, int rank):
        cdef Proc proc
        cdef PeerRoutes routes
        if matching.peers[rank].routes != NULL and not matching.peers[rank].failed:
            return matching.routes(rank)
        proc = matching.communicator.peer(rank)
        if proc.failure is not None:
            raise proc.failure
        if proc.routes is None:
            pml = proc.card.get("pml", self.name.encode()).decode()
            if pml != self.name:
                raise MPIError(ERR_OTHER, f"this rank chose pml {self.name}, rank {proc.rank} of {proc.job} chose "
                                          f"{pml}: give every rank the same --mca pml")
            proc.routes = self.bml.add_proc(proc)
        routes = proc.routes
        matching.peers[rank].routes = <void *> routes
        return routes

    cdef bint holds_back(self, PeerRoutes routes) except -1:
        return self.has_waiting and routes in self.waiting

    cdef int retry(self, Transfer transfer) except -1:
        cdef object queue
        self.retries += 1
        if transfer.queued:
            return 0
        transfer.queued = True
        queue = self.waiting.get(transfer.routes)
        if queue is None:
            if not self.waiting:
                register_source(self)
            queue = self.waiting[transfer.routes] = deque()
            self.has_waiting = True
        if not queue or queue[0] is not transfer:
            queue.append(transfer)               # else it is being tried, and keeps its place
        return 0

    cdef int give_back(self, Matching matching, int peer, uint32_t sequence, PeerRoutes routes) except -1:
        cdef Transfer transfer
        cdef list behind = []
        for transfer in self.waiting.get(routes, ()):
            if transfer.is_behind(matching, peer, sequence):
                behind.append(transfer)
        if matching.peers[peer].next_sequence != <uint32_t> (sequence + 1 + <uint32_t> len(behind)):
            return 0                             # another thread's has left meanwhile
        for transfer in behind:
            transfer.move_up()
        matching.peers[peer].next_sequence = <uint32_t> (matching.peers[peer].next_sequence - 1)
        return 0

    cpdef int progress(self) except -1:
        """Try again what found no resources: what waits for one peer in its order, up to the first that finds none again."""
        cdef int events = 0
        for routes in list(self.waiting):
            events += self.try_again(self.waiting[routes])
            if not self.waiting[routes]:
                del self.waiting[routes]
        if not self.waiting:
            self.has_waiting = False
            unregister_source(self)
        return events

    cdef int try_again(self, object queue) except -1:
        cdef Transfer transfer
        cdef int taken
        cdef int events = 0
        while queue:
            transfer = queue[0]                  # it stays there: whatever is sent meanwhile comes after it
            transfer.queued = False
            taken = OK
            if not transfer.complete:
                try:
                    taken = transfer.push()
                except Exception as error:
                    transfer.fail(error)
            if taken == OUT_OF_RESOURCE or transfer.queued:
                transfer.queued = True
                break
            queue.popleft()
            events += 1
        return events

    cdef Transfer control(self, Transfer transfer, const char *header, size_t length):
        cdef Route route = transfer.routes.first
        cdef ControlMessage message
        if route.btl.sendi(route.endpoint, header, length, NULL, 0, TAG_PML) == OK:
            return None
        message = ControlMessage.__new__(ControlMessage)
        message.packet = header[:length]
        message.owner = transfer
        message.routes = transfer.routes
        self.retry(message)
        return message

    cdef char *take_scratch(self, size_t size) except NULL:
        cdef Scratch *scratch = self.scratch
        self.scratch = NULL
        if scratch == NULL or scratch.size < size:
            PyMem_Free(scratch)
            scratch = <Scratch *> PyMem_Malloc(sizeof(Scratch) + size)
            if scratch == NULL:
                raise MemoryError(f"no memory to pack {size} bytes")
            scratch.size = size
        return <char *> (scratch + 1)

    cdef void return_scratch(self, char *memory) noexcept:
        cdef Scratch *scratch = <Scratch *> memory - 1
        PyMem_Free(self.scratch)
        self.scratch = scratch

    cdef char *packed(self, char *address, Py_ssize_t count, Typemap typemap) except NULL:
        cdef char *scratch = self.take_scratch(count * typemap.size)
        self.packer.prepare(address, count, typemap)
        self.packer.pack(scratch, self.packer.total)
        return scratch

    def transfers(self):
        """Requests with a name on the wire and those waiting for resources."""
        waiting = [transfer for queue in self.waiting.values() for transfer in queue]
        return [transfer for transfer in (*self.slots, *waiting) if transfer is not None]

    def settled(self):
        """Whether everything that had to wait for resources is out."""
        return not self.waiting


cdef bint never_ready(void *context) noexcept nogil:
    # What waits here waits for a BTL to have room: that BTL's own `ready`, or the back-stop, ends the sleep.
    return False


cdef Route route_with(PeerRoutes routes, int flag):
    """The first route for remote memory access that has the capability, or None."""
    cdef Route route
    for route in routes.rdma:
        if route.btl.flags & flag:
            return route
    return None


cdef bytes route_name(Route route):
    return route.btl.name.encode()[:ROUTE_NAME]
