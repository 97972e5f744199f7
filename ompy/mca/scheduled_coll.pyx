# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""Base class of the collective components that write schedules.  What it is for is in `scheduled_coll.pxd`."""
from cpython.mem cimport PyMem_Malloc

from ompy.core.basic cimport BASIC_BYTE
from ompy.core.communicator cimport Communicator
from ompy.core.request cimport Request
from ompy.core.schedule cimport Schedule, blank_schedule, recycle
from ompy.core.typemap cimport Typemap, predefined
from ompy.mca.coll cimport (
    ALLGATHER, ALLGATHERV, ALLREDUCE, ALLTOALL, BCAST, EXSCAN, FUNCTION_COUNT, GATHER, NEIGHBOR_ALLGATHER, REDUCE,
    REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, SCAN, SCATTER, CollectiveCall, CollModule,
)
from ompy.mca.coll_layout cimport Layout, address_of, count_of, regular, type_of

from ompy.core.board import OPERATIONS
from ompy.mca.frameworks import FUNCTIONS

cdef Typemap byte = predefined(BASIC_BYTE)

# What the job board calls each function.
cdef int operations[FUNCTION_COUNT]
for function, name in enumerate(FUNCTIONS):
    operations[function] = OPERATIONS.index(name.capitalize())


cdef Py_ssize_t *packed(Py_ssize_t *counts, int blocks) except NULL:
    """Displacements of blocks that lie one after the other."""
    cdef Py_ssize_t *displacements = <Py_ssize_t *> PyMem_Malloc(max(blocks, 1) * sizeof(Py_ssize_t))
    cdef int block
    if displacements == NULL:
        raise MemoryError()
    displacements[0] = 0
    for block in range(1, blocks):
        displacements[block] = displacements[block - 1] + counts[block - 1]
    return displacements


cdef int place_blocks(int function, CollectiveCall call, Communicator comm) except -1:
    """Displacements where the call has none.  Parts of a reduction need none, and are as many as the own group has ranks."""
    cdef bint around = function >= NEIGHBOR_ALLGATHER
    if function == REDUCE_SCATTER or function == REDUCE_SCATTER_BLOCK:
        return 0
    if call.send_counts != NULL and call.send_displacements == NULL and call.send_types is None:
        blocks = len(comm.attributes["topology"].out_neighbors) if around else comm.remote_size
        call.send_displacements = packed(call.send_counts, blocks)
    if call.recv_counts != NULL and call.recv_displacements == NULL and call.recv_types is None:
        blocks = len(comm.attributes["topology"].in_neighbors) if around else comm.remote_size
        call.recv_displacements = packed(call.recv_counts, blocks)
    return 0


cdef class ScheduledColl(CollModule):
    """The collectives of one communicator, written as schedules."""

    cdef int write(self, Schedule schedule, int function, CollectiveCall call, Communicator comm) except -1:
        raise NotImplementedError(f"coll {self.component} writes no schedule of {FUNCTIONS[function]}")

    cpdef int run(self, int function, CollectiveCall call, Communicator comm) except -1:
        """Carry the collective out; returns when this rank's part is done."""
        cdef Schedule schedule = blank_schedule(comm, operations[function])
        self.fill(schedule, function, call, comm)
        schedule.tag = comm.collective_tag()
        schedule.run()
        return recycle(schedule)

    cpdef Request start(self, int function, CollectiveCall call, Communicator comm):
        """Start the collective; the progress engine advances it."""
        cdef Schedule schedule = blank_schedule(comm, operations[function], False)
        self.fill(schedule, function, call, comm)
        schedule.tag = comm.collective_tag()
        schedule.start()
        return schedule

    cpdef Request init(self, int function, CollectiveCall call, Communicator comm):
        """The collective as a persistent request, inactive."""
        cdef Schedule schedule = blank_schedule(comm, operations[function], False)
        self.fill(schedule, function, call, comm)
        schedule.persist()
        return schedule

    cdef int fill(self, Schedule schedule, int function, CollectiveCall call, Communicator comm) except -1:
        place_blocks(function, call, comm)
        schedule.buffer = call
        return self.write(schedule, function, call, comm)


cdef Py_ssize_t block_bytes(int function, CollectiveCall call, Communicator comm):
    cdef Py_ssize_t total = 0
    cdef int rank
    if function == BCAST:
        return call.send_count * call.send_type.size if call.send_type is not None else 0
    if function == GATHER:
        if comm.rank == call.root:
            return call.recv_count * call.recv_type.size
        return call.send_count * call.send_type.size
    if function == SCATTER:
        if comm.rank == call.root:
            return call.send_count * call.send_type.size
        return call.recv_count * call.recv_type.size
    if function == REDUCE:
        if call.send_in_place:
            return call.recv_count * call.recv_type.size
        return call.send_count * call.send_type.size
    if function in (ALLGATHER, ALLTOALL, ALLREDUCE, REDUCE_SCATTER_BLOCK, SCAN, EXSCAN):
        return call.recv_count * call.recv_type.size
    if function == ALLGATHERV or function == REDUCE_SCATTER:
        for rank in range(comm.size):
            total += call.recv_counts[rank]
        return total * call.recv_type.size // comm.size
    return 0


cdef Layout set_aside(Schedule schedule, Layout *blocks, int count):
    cdef Layout aside
    cdef Py_ssize_t total = 0, nbytes
    cdef int block
    for block in range(count):
        total += count_of(blocks, block) * type_of(blocks, block).size
    aside = regular(schedule.scratch(total, byte), total // max(count, 1), byte)
    if blocks.counts != NULL:
        # Beside the data: they live as long as the schedule.
        aside.counts = <Py_ssize_t *> schedule.scratch(count * <Py_ssize_t> sizeof(Py_ssize_t), byte)
        aside.displacements = <Py_ssize_t *> schedule.scratch(count * <Py_ssize_t> sizeof(Py_ssize_t), byte)
    total = 0
    for block in range(count):
        nbytes = count_of(blocks, block) * type_of(blocks, block).size
        if blocks.counts != NULL:
            aside.counts[block] = nbytes
            aside.displacements[block] = total
        schedule.copy(address_of(blocks, block), count_of(blocks, block), type_of(blocks, block),
                      aside.address + total, nbytes, byte)
        total += nbytes
    return aside
