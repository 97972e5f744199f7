# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""A BTL around another BTL; see `btl_wrapper.pxd`."""
from ompy.core.constants cimport OK
from ompy.core.proc cimport Proc
from ompy.mca.btl cimport FLAG_GET, FLAG_PUT, Btl, Descriptor, Endpoint, Receiver


cdef class WrapperEndpoint(Endpoint):
    """A peer as a wrapper sees it; `inner` is what the wrapped BTL knows it by."""

    def __init__(self, Btl btl, Proc proc, Endpoint inner):
        Endpoint.__init__(self, btl, proc)
        self.inner = inner


cdef class Relay(Receiver):
    """Stands at the inner BTL in the place of a receiver."""
    cdef Wrapper wrapper
    cdef int tag

    cdef int arrive(self, Btl btl, Endpoint endpoint, const char *data, size_t length) except -1:
        cdef WrapperEndpoint outer = None if endpoint is None else self.wrapper.endpoints.get(endpoint)
        return self.wrapper.arrived(self.tag, outer, data, length)


cdef class Wrapper(Btl):
    """Base of BTLs around another BTL, which by itself adds nothing.

    Parameters:
        inner: the BTL that carries everything, with its limits filled in.
    """

    def __init__(self, Btl inner not None):
        self.inner = inner
        self.endpoints = {}
        self.name = inner.name
        self.flags = inner.flags
        self.eager_limit = inner.eager_limit
        self.rndv_eager_limit = inner.rndv_eager_limit
        self.max_send_size = inner.max_send_size
        self.rdma_pipeline_send_length = inner.rdma_pipeline_send_length
        self.rdma_pipeline_frag_size = inner.rdma_pipeline_frag_size
        self.min_rdma_pipeline_size = inner.min_rdma_pipeline_size
        self.put_limit = inner.put_limit
        self.get_limit = inner.get_limit
        self.put_alignment = inner.put_alignment
        self.get_alignment = inner.get_alignment
        self.latency = inner.latency
        self.bandwidth = inner.bandwidth
        self.exclusivity = inner.exclusivity
        self.ready = inner.ready
        self.ready_context = inner.ready_context
        inner.register_error(self.inner_lost)

    def inner_lost(self, Btl btl, Proc proc, object error):
        """The inner BTL has lost a peer."""
        self.report_error(proc, error)

    # -- peers

    cpdef bytes address(self):
        return self.inner.address()

    cpdef dict cards(self):
        """Those of the inner BTL, which looks for them by its own name."""
        return self.inner.cards()

    cpdef WrapperEndpoint endpoint_of(self, Proc proc, Endpoint inner):
        """Make the endpoint for a peer."""
        return WrapperEndpoint(self, proc, inner)

    cpdef list add_procs(self, list procs):
        answers = self.inner.add_procs(procs)
        for index, answer in enumerate(answers):
            if isinstance(answer, Endpoint):
                if answer not in self.endpoints:
                    self.endpoints[answer] = self.endpoint_of(procs[index], answer)
                answers[index] = self.endpoints[answer]
        # It may have found out that it can't reach a peer's memory.
        self.flags &= self.inner.flags | ~(FLAG_PUT | FLAG_GET)
        return answers

    cpdef int del_procs(self, list endpoints) except -1:
        cdef WrapperEndpoint endpoint
        inner = []
        for endpoint in endpoints:
            if self.endpoints.pop(endpoint.inner, None) is not None:
                inner.append(endpoint.inner)
        return self.inner.del_procs(inner)

    cpdef int renew(self, Endpoint endpoint) except -1:
        return self.inner.renew((<WrapperEndpoint?> endpoint).inner)

    def serves_other_jobs(self):
        return self.inner.serves_other_jobs()

    def remark(self):
        return self.inner.remark()

    def admit(self, circle):
        self.inner.admit(circle)

    def dismiss(self, circle):
        self.inner.dismiss(circle)

    cpdef int finalize(self) except -1:
        self.endpoints.clear()
        return self.inner.finalize()

    cpdef dict statistics(self):
        """The inner BTL's, and this one's own."""
        return {**self.inner.statistics(), **self.counters}

    # -- messages

    cpdef int register(self, int tag, Receiver receiver) except -1:
        cdef Relay relay = Relay()
        Btl.register(self, tag, receiver)
        relay.wrapper = self
        relay.tag = tag
        return self.inner.register(tag, relay)

    cdef int arrived(self, int tag, WrapperEndpoint endpoint, const char *data, size_t length) except -1:
        return self.deliver(tag, endpoint, data, length)

    cpdef Descriptor alloc(self, Endpoint endpoint, size_t size):
        return self.inner.alloc((<WrapperEndpoint?> endpoint).inner, size)

    cpdef Descriptor prepare_src(self, Endpoint endpoint, size_t address, size_t header_size, size_t size):
        return self.inner.prepare_src((<WrapperEndpoint?> endpoint).inner, address, header_size, size)

    cpdef bint exposes(self, Endpoint endpoint, size_t address, size_t size) except -1:
        return self.inner.exposes((<WrapperEndpoint?> endpoint).inner, address, size)

    cpdef int free(self, Descriptor descriptor) except -1:
        if descriptor.btl is self:
            return Btl.free(self, descriptor)
        return self.inner.free(descriptor)

    cpdef int send(self, Endpoint endpoint, Descriptor descriptor, int tag) except -1:
        return self.inner.send((<WrapperEndpoint?> endpoint).inner, descriptor, tag)

    # -- remote memory

    cpdef bint withdraw(self, Endpoint endpoint, size_t address, size_t size) except -1:
        return self.inner.withdraw((<WrapperEndpoint?> endpoint).inner, address, size)

    cpdef int restore(self, Endpoint endpoint, size_t address, size_t size) except -1:
        return self.inner.restore((<WrapperEndpoint?> endpoint).inner, address, size)

    cpdef int put(self, Endpoint endpoint, Descriptor descriptor) except -1:
        return self.inner.put((<WrapperEndpoint?> endpoint).inner, descriptor)

    cpdef int get(self, Endpoint endpoint, Descriptor descriptor) except -1:
        return self.inner.get((<WrapperEndpoint?> endpoint).inner, descriptor)

    cpdef int access(self, WrapperEndpoint endpoint, bint is_put, Descriptor like, size_t local_address, bytes local_handle,
                     object over) except -1:
        """A put or get of the inner BTL's, like another one; OUT_OF_RESOURCE when it was not taken.

        Parameters:
            like: says how many bytes, and where in the peer.
            local_address, local_handle: where here, and its registration or None.
            over: called as `over(descriptor, status)`, once.
        """
        cdef Descriptor descriptor = Descriptor.__new__(Descriptor, self.inner, 0)
        cdef int taken
        descriptor.size = like.size
        descriptor.remote_address = like.remote_address
        descriptor.remote_handle = like.remote_handle
        descriptor.local_address = local_address
        descriptor.local_handle = local_handle
        descriptor.context = over
        descriptor.in_flight = True
        taken = self.inner.put(endpoint.inner, descriptor) if is_put else self.inner.get(endpoint.inner, descriptor)
        if taken != OK:
            descriptor.in_flight = False
        return taken

    cpdef int atomic(self, Endpoint endpoint, Descriptor descriptor, str operation, object operand,
                     object compare) except -1:
        return self.inner.atomic((<WrapperEndpoint?> endpoint).inner, descriptor, operation, operand, compare)

    cpdef bytes register_mem(self, Endpoint endpoint, size_t address, size_t size):
        return self.inner.register_mem((<WrapperEndpoint?> endpoint).inner, address, size)

    cpdef int deregister_mem(self, bytes handle) except -1:
        return self.inner.deregister_mem(handle)

    cpdef bytes hold_mem(self, Endpoint endpoint, size_t address, size_t size):
        return self.inner.hold_mem((<WrapperEndpoint?> endpoint).inner, address, size)

    cpdef int release_mem(self, bytes handle) except -1:
        return self.inner.release_mem(handle)

    cpdef int release_registrations(self) except -1:
        return self.inner.release_registrations()

    cpdef int flush(self, Endpoint endpoint) except -1:
        return self.inner.flush(None if endpoint is None else (<WrapperEndpoint?> endpoint).inner)

    # -- progress

    cpdef int progress(self) except -1:
        return self.inner.progress()

    cpdef int descriptor(self) except -2:
        return self.inner.descriptor()

    cpdef bint may_sleep(self) except -1:
        return self.inner.may_sleep()

    cpdef int look_at_peers(self) except -1:
        return self.inner.look_at_peers()
