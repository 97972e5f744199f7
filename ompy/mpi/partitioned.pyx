# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
# cython: auto_pickle=False
"""Partitioned communication (MPI-4.1, chapter 4).  See `partitioned.pxd`."""

from cpython.bytearray cimport PyByteArray_AS_STRING
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.string cimport memset

from ompy.core.basic cimport BASIC_BYTE, BASIC_INT64_T
from ompy.core.board cimport IRECV, ISEND
from ompy.core.constants cimport MODE_STANDARD, PROC_NULL, TAG_CHANNEL, TAG_PARTITIONED, TAGS
from ompy.core.convertor cimport pack_all
from ompy.core.progress cimport progress_or_yield
from ompy.core.typemap cimport predefined
from ompy.mca.pml cimport pml

from ompy.core.errors import ERR_ARG, ERR_REQUEST, MPIError
from ompy.mca.params import registry

cdef Typemap number_type = predefined(BASIC_INT64_T)
cdef Typemap byte_type = predefined(BASIC_BYTE)
cdef enum:
    MOST_PARTS = 64
    NUMBERS = 4                                  # in a Cut
    GONE = -1                                    # of `missing`: the part has been sent


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
    request.transfers = []
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


cdef int cut_is_known(object context, Request agreement) except -1:
    cdef PartitionedRequest request = <PartitionedRequest> context
    return request.begin_sending() if request.active and not request.complete else 0


cdef int part_is_over(object context, Request transfer) except -1:
    cdef PartitionedRequest request = <PartitionedRequest> context
    transfer.retire()
    request.status.source = transfer.status.source
    request.status.tag = request.tag             # not that of the channel
    request.status.cancelled |= transfer.status.cancelled
    request.status.nbytes += transfer.status.nbytes
    return request.over(transfer.error)


cdef class PartitionedRequest(Request):
    """A partitioned send or receive."""

    def __dealloc__(self):
        PyMem_Free(self.is_ready)
        PyMem_Free(self.missing)

    cdef int agree(self, size_t address, Py_ssize_t count, Typemap typemap, int peer, int tag, Communicator comm) except -1:
        cdef int64_t shortest
        self.address = address
        self.count = count
        self.typemap = typemap
        self.nbytes = count * typemap.size
        self.peer = peer
        self.tag = tag
        self.communicator = comm
        if self.sends:
            self.agreement = pml.irecv(<size_t> &self.cut, NUMBERS, number_type, peer, agreement_tag(tag), comm)
        else:
            self.cut.partitions = self.partitions
            self.cut.nbytes = self.nbytes
            shortest = <int64_t> registry.value("mpi_partition_size")
            self.cut.parts = max(1, min(self.nbytes // shortest, self.partitions, MOST_PARTS))
            self.cut.channel = comm.attributes.get("channels", 0)
            comm.attributes["channels"] = self.cut.channel + self.cut.parts
            self.open()
            self.agreement = pml.isend(<size_t> &self.cut, NUMBERS, number_type, peer, agreement_tag(tag), MODE_STANDARD, comm)
        if not self.agreement.complete:
            self.agreement.buffer = self
            if self.sends:
                self.agreement.watch(cut_is_known, self)
        return 0

    cdef int open(self) except -1:
        """Make the operation of each part; what the sender has beyond the receiver's memory goes with the last one."""
        cdef int64_t part, bound, size = self.typemap.size
        cdef list bounds = []
        for part in range(self.cut.parts + 1):
            bound = part * self.cut.partitions // self.cut.parts * (self.cut.nbytes // max(self.cut.partitions, 1))
            bounds.append(min(bound, self.nbytes))
        bounds[self.cut.parts] = self.nbytes
        if size and any([bound % size for bound in bounds]):
            self.packed = bytearray(self.nbytes)
        for part in range(self.cut.parts):
            self.open_part(<int> part, bounds[part], bounds[part + 1])
        return 0

    cdef int open_part(self, int part, Py_ssize_t begin, Py_ssize_t end) except -1:
        cdef Request transfer
        cdef Typemap typemap = self.typemap if self.packed is None else byte_type
        cdef Py_ssize_t size = max(typemap.size, 1), count = (end - begin) // size
        cdef size_t address
        if self.packed is None:
            address = self.address + begin // size * typemap.extent
        else:
            address = <size_t> PyByteArray_AS_STRING(self.packed) + begin
        if self.sends:
            transfer = pml.isend_init(address, count, typemap, self.peer, channel_tag(self.cut.channel + part), MODE_STANDARD,
                                      self.communicator)
        else:
            transfer = pml.irecv_init(address, count, typemap, self.peer, channel_tag(self.cut.channel + part),
                                      self.communicator)
        transfer.watch(part_is_over, self)
        self.transfers.append(transfer)
        return 0

    cpdef int start(self) except -1:
        cdef Request transfer
        if self.released:
            raise MPIError(ERR_REQUEST, "the partitioned request was freed through another handle")
        self.begin()
        self.failed = None
        if self.agreement is None:
            if not self.sends:
                self.status.source = PROC_NULL
            return self.finish()
        if self.sends:
            memset(self.is_ready, 0, <size_t> self.partitions)
            return self.begin_sending() if self.agreement.complete else 0
        self.left = len(self.transfers)
        for transfer in self.transfers:
            try:
                transfer.start()
            except MPIError as error:
                self.over(error)
        return 0

    cdef int begin_sending(self) except -1:
        """The cut is known: send the parts that are ready."""
        cdef int partition, part
        if self.agreement.error is not None:
            return self.fail(self.agreement.error)
        if not self.transfers:
            self.missing = <int *> PyMem_Calloc(<size_t> self.cut.parts, sizeof(int))
            if self.missing == NULL:
                raise MemoryError
            self.open()
        # Nothing comes between here and the loop that sends, which may let other threads of the program be ready with more.
        self.left = <int> self.cut.parts
        memset(self.missing, 0, self.cut.parts * sizeof(int))
        for partition in range(self.partitions):
            if not self.is_ready[partition]:
                for part in range(self.first_part(partition), self.last_part(partition) + 1):
                    self.missing[part] += 1
        for part in range(<int> self.cut.parts):
            if self.missing[part] == 0:
                self.send_part(part)
        return 0

    cdef int first_part(self, int partition) noexcept:
        """Which has the partition's first byte; of those that are packed, which are sent when all are ready, each has it."""
        return 0 if self.packed is not None else self.part_of(partition * (self.nbytes // self.partitions))

    cdef int last_part(self, int partition) noexcept:
        """Which has its last byte; the last partition has what the receiver expects beyond what is sent."""
        if self.packed is not None or partition == self.partitions - 1:
            return <int> self.cut.parts - 1
        return self.part_of(max((partition + 1) * (self.nbytes // self.partitions) - 1, 0))

    cdef int part_of(self, int64_t offset) noexcept:
        cdef int64_t size = self.cut.nbytes // max(self.cut.partitions, 1)
        if size == 0 or offset >= self.cut.nbytes:
            return <int> self.cut.parts - 1
        return <int> (((offset // size + 1) * self.cut.parts - 1) // self.cut.partitions)

    cdef int mark(self, int partition) except -1:
        cdef int part
        for part in range(self.first_part(partition), self.last_part(partition) + 1):
            self.missing[part] -= 1
            if self.missing[part] == 0:
                self.send_part(part)
        return 0

    cdef int send_part(self, int part) except -1:
        self.missing[part] = GONE
        if part == 0 and self.packed is not None:
            pack_all(<char *> self.address, self.count, self.typemap, PyByteArray_AS_STRING(self.packed))
        try:
            (<Request> self.transfers[part]).start()
        except MPIError as error:
            self.over(error)
        return 0

    cdef int over(self, object error) except -1:
        """A part has ended, with an error or None."""
        if self.failed is None:
            self.failed = error
        self.left -= 1
        if self.left:
            return 0
        return self.finish() if self.failed is None else self.fail(self.failed)

    cpdef int cancel(self) except -1:
        cdef Request transfer
        for transfer in self.transfers:
            if transfer.active:
                transfer.cancel()
        return 0

    cpdef int release(self) except -1:
        cdef Request transfer
        if not self.active:
            self.released = True
            for transfer in self.transfers:
                transfer.unwatch(self)
                transfer.release()
            self.transfers = []
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
        if self.left == 0:                       # with nobody, or the cut is not known yet
            return 0
        for partition in range(low, high + 1):
            self.mark(partition)
        return 0

    cdef bint arrived(self, int partition) except -1:
        cdef Request transfer
        self.check(partition)
        if self.sends:
            raise MPIError(ERR_REQUEST, "Parrived: a partitioned receive expected")
        if not self.active or self.complete:
            return True
        transfer = self.transfers[self.part_of(partition * (self.nbytes // self.partitions))]
        if not transfer.complete:
            progress_or_yield()
        return transfer.complete
