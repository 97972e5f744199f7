# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
# cython: auto_pickle=False
"""Partitioned communication (MPI-4.1, chapter 4)."""

from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.string cimport memset

from ompy.core.basic cimport BASIC_INT64_T
from ompy.core.board cimport IRECV, ISEND
from ompy.core.constants cimport MODE_STANDARD, TAG_CHANNEL, TAG_PARTITIONED, TAGS
from ompy.core.progress cimport progress
from ompy.core.typemap cimport predefined
from ompy.mca.pml cimport pml

from ompy.core.errors import ERR_ARG, ERR_REQUEST, MPIError

cdef Typemap number_type = predefined(BASIC_INT64_T)


cdef int agreement_tag(int tag) noexcept:
    return TAG_PARTITIONED - tag


# The numbers of channels come round.
cdef int channel_tag(int64_t channel) noexcept:
    return <int> (TAG_CHANNEL - channel % TAGS)


cdef PartitionedRequest new_partitioned(int partitions, bint sends):
    cdef PartitionedRequest request = PartitionedRequest.__new__(PartitionedRequest)
    request.persistent = True
    request.partitions = partitions
    request.sends = sends
    request.operation = ISEND if sends else IRECV
    if sends:
        request.is_ready = <unsigned char *> PyMem_Calloc(<size_t> max(partitions, 1), 1)
        if request.is_ready == NULL:
            raise MemoryError
    return request


cdef PartitionedRequest new_channel(int partitions, bint sends, size_t address, Py_ssize_t count, Typemap typemap, int peer,
                                    int tag, Communicator comm):
    cdef PartitionedRequest request = new_partitioned(partitions, sends)
    request.agree(address, count, typemap, peer, tag, comm)
    return request


cdef int channel_is_known(object context, Request agreement) except -1:
    cdef PartitionedRequest request = <PartitionedRequest> context
    if request.due:
        request.send_all()
    return 0


cdef int transfer_is_over(object context, Request transfer) except -1:
    cdef PartitionedRequest request = <PartitionedRequest> context
    transfer.retire()
    request.status = transfer.status
    if not request.sends:
        request.status.tag = request.tag         # not that of the channel
    if transfer.error is not None:
        return request.fail(transfer.error)
    return request.finish()


cdef class PartitionedRequest(Request):
    """A partitioned send or receive."""

    def __dealloc__(self):
        PyMem_Free(self.is_ready)

    cdef int agree(self, size_t address, Py_ssize_t count, Typemap typemap, int peer, int tag, Communicator comm) except -1:
        self.address = address
        self.count = count
        self.typemap = typemap
        self.nbytes = count * typemap.size
        self.peer = peer
        self.tag = tag
        self.communicator = comm
        if self.sends:
            self.agreement = pml.irecv(<size_t> &self.channel, 1, number_type, peer, agreement_tag(tag), comm)
        else:
            self.channel = comm.attributes.get("channels", 0)
            comm.attributes["channels"] = self.channel + 1
            self.run_on(pml.irecv_init(address, count, typemap, peer, channel_tag(self.channel), comm))
            self.agreement = pml.isend(<size_t> &self.channel, 1, number_type, peer, agreement_tag(tag), MODE_STANDARD, comm)
        if not self.agreement.complete:
            self.agreement.buffer = self
            if self.sends:
                self.agreement.watch(channel_is_known, self)
        return 0

    cdef int run_on(self, Request transfer) except -1:
        self.transfer = transfer
        transfer.watch(transfer_is_over, self)
        return 0

    cdef int send_all(self) except -1:
        """All is ready: send it, or have it sent once the channel is known."""
        self.due = not self.agreement.complete
        if self.due:
            return 0
        if self.agreement.error is not None:
            return self.fail(self.agreement.error)
        if self.transfer is None:
            self.run_on(pml.isend_init(self.address, self.count, self.typemap, self.peer, channel_tag(self.channel),
                                       MODE_STANDARD, self.communicator))
        return self.transfer.start()

    cpdef int start(self) except -1:
        self.begin()
        if self.agreement is None:
            return self.finish()
        if not self.sends:
            return self.transfer.start()
        self.missing = self.partitions
        memset(self.is_ready, 0, <size_t> self.partitions)
        return self.send_all() if self.missing == 0 else 0

    cpdef int cancel(self) except -1:
        if self.transfer is not None and self.transfer.active:
            self.transfer.cancel()
        return 0

    cpdef int release(self) except -1:
        if self.transfer is not None and not self.active:
            self.transfer.unwatch(self)
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
        if low > high:
            raise MPIError(ERR_ARG, f"partition_low: at most partition_high, {high}, expected, got {low}")
        for partition in range(low, high + 1):
            if self.is_ready[partition]:
                raise MPIError(ERR_ARG, f"partition: {partition} is ready already")
        memset(self.is_ready + low, 1, <size_t> (high + 1 - low))
        self.missing -= high + 1 - low
        if self.missing == 0 and self.agreement is not None:
            self.send_all()
        return 0

    cdef bint arrived(self, int partition) except -1:
        self.check(partition)
        if self.sends:
            raise MPIError(ERR_REQUEST, "Parrived: a partitioned receive expected")
        if self.active and not self.complete:
            progress()
        return self.complete or not self.active
