# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""What the collectives of both levels have in common."""
from cpython.mem cimport PyMem_Malloc

from ompy.core.basic cimport BASIC_BYTE
from ompy.core.typemap cimport predefined
from ompy.core.progress cimport wait
from ompy.core.request cimport Request
from ompy.mca.coll cimport BCAST, CollModule

cdef Typemap byte = predefined(BASIC_BYTE)


cdef class Steps:
    """Of one call, on one rank."""

    cdef int show(self, int operation) noexcept:
        self.levels.low.purpose = operation
        if self.levels.up is not None:
            self.levels.up.purpose = operation
        return 0

    cdef size_t memory(self, Py_ssize_t nbytes) except? 0:
        return self.schedule.scratch(nbytes, byte)

    cdef CollectiveCall call(self, int root):
        cdef CollectiveCall call = CollectiveCall.__new__(CollectiveCall)
        call.root = root
        call.send_owner = call.recv_owner = self.schedule
        return call

    cdef CollectiveCall message(self, size_t address, Py_ssize_t count, Typemap typemap, int root):
        return self.blocks(address, count, typemap, address, count, typemap, root)

    cdef int bcast(self, Communicator level, size_t address, Py_ssize_t count, Typemap typemap, int root) except -1:
        return 0 if level.size == 1 else carry_out(level, BCAST, self.message(address, count, typemap, root))

    cdef int hand_over(self, size_t address, Py_ssize_t count, Typemap typemap, int source, int target) except -1:
        if source != target and self.comm.rank == source:
            self.schedule.send(address, count, typemap, target)
            self.schedule.run()
        elif source != target and self.comm.rank == target:
            self.schedule.recv(address, count, typemap, source)
            self.schedule.run()
        return 0

    cdef CollectiveCall blocks(self, size_t send, Py_ssize_t send_count, Typemap send_type, size_t recv, Py_ssize_t recv_count,
                               Typemap recv_type, int root):
        cdef CollectiveCall call = self.call(root)
        call.send_address, call.send_count, call.send_type = send, send_count, send_type
        call.recv_address, call.recv_count, call.recv_type = recv, recv_count, recv_type
        return call

    cdef int share_out(self, CollectiveCall call, Py_ssize_t nbytes, bint sending) except -1:
        cdef Py_ssize_t *counts = <Py_ssize_t *> PyMem_Malloc(self.levels.hosts * sizeof(Py_ssize_t))
        cdef Py_ssize_t *displacements = <Py_ssize_t *> PyMem_Malloc(self.levels.hosts * sizeof(Py_ssize_t))
        cdef int host
        # The call frees them.
        if sending:
            call.send_counts, call.send_displacements = counts, displacements
        else:
            call.recv_counts, call.recv_displacements = counts, displacements
        if counts == NULL or displacements == NULL:
            raise MemoryError()
        for host in range(self.levels.hosts):
            counts[host] = self.levels.size_of(host) * nbytes
            displacements[host] = self.levels.first[host] * nbytes
        return 0


cdef class Pipeline:
    """Of one call, on a leader."""

    def __cinit__(self):
        self.requests = []

    cdef int begin(self, int function, CollectiveCall call) except -1:
        cdef CollModule module = (<CollTable> self.level.coll).nonblocking[function]
        self.requests.append(module.start(function, call, self.level))
        return 0

    cdef int finish_first(self) except -1:
        cdef Request request = self.requests.pop(0)
        wait(request)
        if request.error is not None:
            raise request.error
        return request.release()

    cdef int keep(self, int most) except -1:
        while len(self.requests) > most:
            self.finish_first()
        return 0
