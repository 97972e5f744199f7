# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# cython: auto_pickle=False
"""Partitioned communication (MPI-4.1, chapter 4)."""

from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.string cimport memset

from ompy.core.constants cimport TAG_COLLECTIVE_LAST
from ompy.core.progress cimport progress

from ompy.core.errors import ERR_ARG, ERR_REQUEST, MPIError


cdef int partitioned_tag(int tag) noexcept:
    # The tags below those of collectives and of agreements are a quarter of the program's: tags that differ by 2^29 share
    # one.
    return TAG_COLLECTIVE_LAST - 1 - (1 << 29) - (tag & 0x1fffffff)


cdef PartitionedRequest new_partitioned(int partitions, Request transfer, bint sends):
    cdef PartitionedRequest request = PartitionedRequest.__new__(PartitionedRequest)
    request.persistent = True
    request.partitions = partitions
    request.transfer = transfer
    request.sends = sends
    if sends:
        request.is_ready = <unsigned char *> PyMem_Calloc(<size_t> max(partitions, 1), 1)
        if request.is_ready == NULL:
            raise MemoryError
    if transfer is not None:
        request.operation = transfer.operation
        request.peer = transfer.peer
        request.tag = transfer.tag
        request.nbytes = transfer.nbytes
        request.communicator = transfer.communicator
        transfer.hook = transfer_is_over
        transfer.hook_context = request
    return request


cdef int transfer_is_over(object context, Request transfer) except -1:
    cdef PartitionedRequest request = <PartitionedRequest> context
    transfer.retire()
    if transfer.error is not None:
        return request.fail(transfer.error)
    request.status = transfer.status
    return request.finish()


cdef class PartitionedRequest(Request):
    """A partitioned send or receive."""

    def __dealloc__(self):
        PyMem_Free(self.is_ready)

    cpdef int start(self) except -1:
        self.begin()
        self.missing = self.partitions if self.sends else 0
        if self.sends:
            memset(self.is_ready, 0, <size_t> self.partitions)
        if self.transfer is None:
            return self.finish()
        if self.missing == 0:
            self.transfer.start()
        return 0

    cpdef int cancel(self) except -1:
        if self.transfer is not None and self.transfer.active:
            self.transfer.cancel()
        return 0

    cpdef int release(self) except -1:
        if self.transfer is not None and not self.active:
            self.transfer.hook = NULL
            self.transfer.hook_context = None
            self.transfer.release()
            self.transfer = None
        return 0

    cdef int check(self, int partition) except -1:
        if partition < 0 or partition >= self.partitions:
            raise MPIError(ERR_ARG, f"partition: 0 to {self.partitions - 1} expected, not {partition}")
        return 0

    cdef int ready(self, int low, int high) except -1:
        cdef int partition
        if not self.sends or not self.active:
            raise MPIError(ERR_REQUEST, "Pready: a partitioned send that was started expected")
        self.check(low)
        self.check(high)
        for partition in range(low, high + 1):
            if self.is_ready[partition]:
                raise MPIError(ERR_ARG, f"partition: {partition} is ready already")
            self.is_ready[partition] = 1
            self.missing -= 1
        if self.missing == 0 and self.transfer is not None:
            self.transfer.start()
        return 0

    cdef bint arrived(self, int partition) except -1:
        self.check(partition)
        if self.sends:
            raise MPIError(ERR_REQUEST, "Parrived: a partitioned receive expected")
        if self.active and not self.complete:
            progress()
        return self.complete or not self.active
