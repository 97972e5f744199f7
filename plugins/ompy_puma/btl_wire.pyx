# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""The job's byte transports as a wire.  See `btl_wire.pxd`."""
from libc.stdint cimport uint32_t, uint64_t

from ompy.core.constants cimport OK, OUT_OF_RESOURCE
from ompy.core.errors import ERR_OTHER, MPIError
from ompy.core.owner cimport enter, leave
from ompy.core.proc cimport Proc, table
from ompy.mca.bml cimport Bml, PeerRoutes, Route
from ompy.mca.btl cimport FLAG_GET, FLAG_IN_ORDER, FLAG_NEEDS_REGISTRATION, Btl, Descriptor, Endpoint, Receiver
from ompy_puma.kernel cimport QKernel
from ompy_puma.link cimport Link, Wire


cdef class BtlReceiver(Receiver):
    """Takes the wire's active messages."""
    cdef QKernel kernel

    cdef int arrive(self, Btl btl, Endpoint endpoint, const char *data, size_t length) except -1:
        return self.kernel.arrive(data, length)


cdef class BtlWire(Wire):
    """Every process of the job is a node.

    Parameters:
        bml: leads to the BTLs.
        private: the BML is not the job's: its routes are kept here, and not where the job's BML keeps its own.
    """

    def __init__(self, Bml bml not None, bint private=False):
        self.bml = bml
        self.private = private

    def listen(self, QKernel kernel not None):
        """Have what the BTLs bring for this tag handed to the kernel."""
        cdef BtlReceiver receiver = BtlReceiver()
        receiver.kernel = kernel
        self.receiver = receiver
        self.bml.register(TAG_PORTALS, receiver)

    cdef Link link(self, uint32_t node):
        cdef Proc proc
        if node >= <uint32_t> len(table):
            raise MPIError(ERR_OTHER, f"portals: this job has nodes 0 to {len(table) - 1}, not {node}")
        proc = table.at(node)
        if proc.failure is not None:
            raise proc.failure
        if self.private:
            return BtlLink(node, self.bml.add_proc(proc), self.kernel)
        if proc.routes is None:
            proc.routes = self.bml.add_proc(proc)
        return BtlLink(node, proc.routes, self.kernel)


cdef class BtlLink(Link):
    """One direction to one process of the job.

    Parameters:
        node: its number.
        routes: the ways to it; packets keep their order on the first that does, which is the only one used.
        kernel: told of fetches that are over.
    """
    cdef Route route
    cdef Route reader                            # by which its memory can be read, or None
    cdef QKernel kernel
    cdef bint registers
    cdef object broken                           # what the BTL raised for a packet, without which the order is lost, or None
    cdef bint reported

    def __init__(self, uint32_t node, PeerRoutes routes not None, QKernel kernel not None):
        cdef Route route
        self.node = node
        self.kernel = kernel
        for route in (*routes.eager, *routes.send):
            if self.route is None and route.btl.flags & FLAG_IN_ORDER:
                self.route = route
        if self.route is None:
            names = ", ".join(route.btl.name for route in routes.send)
            raise MPIError(ERR_OTHER, f"portals need a btl that keeps messages in order; of those that reach node {node} "
                                      f"({names}) none does: allow another one with --mca btl")
        for route in routes.rdma:
            if self.reader is None and route.btl.flags & FLAG_GET:
                self.reader = route
        self.packet_size = self.route.btl.max_send_size
        self.can_fetch = self.reader is not None
        self.eager_size = self.route.btl.eager_limit if self.can_fetch else self.packet_size
        if self.can_fetch:
            self.fetch_limit = self.reader.btl.get_limit
            self.registers = self.reader.btl.flags & FLAG_NEEDS_REGISTRATION

    cdef int transmit(self, const char *header, size_t header_size, const char *body, size_t body_size) except -1:
        if self.broken is not None:
            return OUT_OF_RESOURCE
        try:
            return self.route.btl.sendi(self.route.endpoint, header, header_size, body, body_size, TAG_PORTALS)
        except Exception as error:
            self.broken = error
            return OUT_OF_RESOURCE

    cdef int report(self) except -1:
        if self.broken is not None and not self.reported:
            self.reported = True
            words = f"contact with node {self.node} is over: its packets keep their order, and btl {self.route.btl.name} " \
                    f"raised {type(self.broken).__name__} for one: {self.broken}"
            self.route.btl.report_error(table.at(self.node), MPIError(ERR_OTHER, words))
        return 0

    cdef bytes offer(self, const void *address, uint64_t length):
        return self.reader.btl.register_mem(self.reader.endpoint, <size_t> address, length) if self.registers else None

    cdef int withdraw(self, bytes handle) except -1:
        return self.reader.btl.deregister_mem(handle)

    cdef bint call_back(self, const void *address, uint64_t length) except -1:
        return self.reader.btl.withdraw(self.reader.endpoint, <size_t> address, length)

    cdef int restore(self, const void *address, uint64_t length) except -1:
        return self.reader.btl.restore(self.reader.endpoint, <size_t> address, length)

    cdef int fetch(self, char *local, uint64_t remote, uint64_t length, bytes handle, uint64_t slot) except -1:
        cdef Btl btl = self.reader.btl
        cdef Descriptor descriptor = Descriptor.__new__(Descriptor, btl, 0)
        cdef int taken
        cdef bint asked = False
        descriptor.local_address = <size_t> local
        descriptor.remote_address = remote
        descriptor.remote_handle = handle
        descriptor.size = length
        descriptor.length = slot
        descriptor.callback = fetch_over
        try:
            if self.registers:
                descriptor.local_handle = btl.register_mem(self.reader.endpoint, <size_t> local, length)
            descriptor.context = (self, descriptor.local_handle)
            descriptor.in_flight = asked = True
            taken = btl.get(self.reader.endpoint, descriptor)
        except Exception:
            taken = ERR_OTHER
        if taken == OK or (asked and not descriptor.in_flight):
            return OK
        descriptor.in_flight = False
        if descriptor.local_handle is not None:
            btl.deregister_mem(descriptor.local_handle)
        if taken == OUT_OF_RESOURCE:
            return taken
        self.kernel.fetched(slot, taken)
        return OK


cdef int fetch_over(object context, Descriptor descriptor, int status) except -1:
    cdef BtlLink link
    link, handle = context
    if handle is not None:
        descriptor.btl.deregister_mem(handle)
    return link.kernel.fetched(descriptor.length, status)


cdef list kernels = []                           # (bml, kernel) of this process


cpdef QKernel kernel_over(Bml bml, uint32_t node, bint private=False):
    """The kernel of this process over a job's byte transports.

    Parameters:
        bml: leads to the BTLs.
        node: this process's rank in its job.
        private: the BML is not the job's own.
    """
    cdef BtlWire wire
    cdef QKernel kernel
    enter()                                      # two threads that want the first one get the same
    try:
        for known, kernel in kernels:
            if known is bml:
                return kernel
        wire = BtlWire(bml, private)
        kernel = QKernel(node, wire)
        wire.listen(kernel)
        kernels.append((bml, kernel))
        return kernel
    finally:
        leave()


cpdef int forget_kernel(QKernel kernel) except -1:
    """The BTLs are about to close: the next `kernel_over` makes a new one."""
    kernels[:] = [known for known in kernels if known[1] is not kernel]
    return 0
