# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""A BTL whose messages say who sent them and prove that they are whole; see `framed_btl.pxd`."""
from libc.string cimport memcpy

from ompy.core.checksum cimport crc32c
from ompy.core.constants cimport OK
from ompy.core.errors import MPIError
from ompy.core.proc cimport Proc, table
from ompy.mca.btl cimport FLAG_SENDI, Btl, Descriptor, Endpoint
from ompy.mca.btl_wrapper cimport Wrapper, WrapperEndpoint


assert sizeof(Frame) == FRAME_SIZE


cdef uint32_t job_number(str name):
    cdef bytes text = name.encode()
    return crc32c(0, <const char *> text, len(text))


cdef inline uint64_t identity(uint32_t job, int32_t rank) noexcept:
    return (<uint64_t> job << 32) | <uint32_t> rank


cdef class FramedBtl(Wrapper):
    """Base of BTLs that put a frame before each message.

    Parameters:
        inner: the BTL that carries the messages.
        job, rank, size: this process's place in its job.
    """

    def __init__(self, Btl inner not None, str job not None, int rank, int size):
        Wrapper.__init__(self, inner)
        self.job = job_number(job)
        self.rank = rank
        self.size = size
        self.peers = {}
        self.flags |= FLAG_SENDI
        self.max_send_size = inner.max_send_size - sizeof(Frame)
        self.eager_limit = min(inner.eager_limit, inner.max_send_size) - sizeof(Frame)
        self.ready = NULL

    # -- peers

    cpdef list add_procs(self, list procs):
        """One endpoint a process, whatever the inner BTL does when it is asked again."""
        cdef Proc proc
        cdef uint64_t name
        answers = Wrapper.add_procs(self, procs)
        for index, proc in enumerate(procs):
            if isinstance(answers[index], WrapperEndpoint):
                name = identity(job_number(proc.job), proc.rank)
                known = self.peers.setdefault(name, answers[index])
                self.endpoints[(<WrapperEndpoint> answers[index]).inner] = known
                answers[index] = known
        return answers

    cpdef int del_procs(self, list endpoints) except -1:
        cdef Endpoint endpoint
        for endpoint in endpoints:
            self.peers.pop(identity(job_number(endpoint.proc.job), endpoint.proc.rank), None)
        return Wrapper.del_procs(self, endpoints)

    cdef WrapperEndpoint peer(self, uint32_t job, int32_t rank):
        cdef Proc proc
        cdef uint64_t name = identity(job, rank)
        known = self.peers.get(name)
        if known is None:
            for proc in table.known():
                if proc.rank == rank and job_number(proc.job) == job:
                    self.add_procs([proc])
            if name not in self.peers and job == self.job and 0 <= rank < self.size:
                try:
                    self.add_procs([table.at(rank)])
                except MPIError:
                    return None                  # this process is leaving, and meets nobody any more
            known = self.peers.get(name)
        return known

    # -- messages

    cpdef Descriptor alloc(self, Endpoint endpoint, size_t size):
        return Btl.alloc(self, endpoint, size)

    cpdef Descriptor prepare_src(self, Endpoint endpoint, size_t address, size_t header_size, size_t size):
        cdef Descriptor descriptor = Btl.alloc(self, endpoint, header_size)
        descriptor.payload = <char *> address
        descriptor.payload_length = size
        return descriptor

    cpdef int send(self, Endpoint endpoint, Descriptor descriptor, int tag) except -1:
        cdef int taken = self.sendi(endpoint, descriptor.data, descriptor.length, descriptor.payload,
                                    descriptor.payload_length, tag)
        if taken == OK:
            descriptor.in_flight = True
            descriptor.complete()
        return taken

    cdef void seal(self, Frame *frame) noexcept:
        frame.job = self.job
        frame.source = self.rank
        frame.frame_checksum = crc32c(0, <char *> frame + sizeof(uint32_t), sizeof(Frame) - sizeof(uint32_t))

    cdef int arrived(self, int tag, WrapperEndpoint endpoint, const char *data, size_t length) except -1:
        cdef Frame frame
        if length < sizeof(Frame):
            return self.refuse(endpoint, length)
        memcpy(&frame, data, sizeof(Frame))
        if frame.frame_checksum != crc32c(0, data + sizeof(uint32_t), sizeof(Frame) - sizeof(uint32_t)):
            return self.refuse(endpoint, length)
        if endpoint is None:
            endpoint = self.peer(frame.job, frame.source)
            if endpoint is None:
                return 0
        if frame.data_checksum != crc32c(0, data + sizeof(Frame), length - sizeof(Frame)):
            return self.refuse(endpoint, length)
        return self.accept(tag, endpoint, &frame, data + sizeof(Frame), length - sizeof(Frame))

    cdef int accept(self, int tag, WrapperEndpoint endpoint, const Frame *frame, const char *data,
                    size_t length) except -1:
        raise NotImplementedError

    cdef int refuse(self, WrapperEndpoint endpoint, size_t length) except -1:
        raise NotImplementedError

    cpdef dict own_statistics(self):
        """Counters of this layer alone, by name."""
        return {}

    cpdef dict statistics(self):
        """The inner BTL's counters, and those of this layer."""
        return {**self.inner.statistics(), **self.own_statistics()}

    # -- progress: the inner BTL has its own

    cpdef int progress(self) except -1:
        return 0

    cpdef int descriptor(self) except -2:
        return -1

    cpdef bint may_sleep(self) except -1:
        return True
