# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""coll/portals: blocking collectives built straight on portals.

    function                short vector                            long vector
    bcast                   tree                                    tree scatters, bucket allgathers
    gather, scatter         tree                                    tree, each message into a block that is ready
    allgather               tree gathers, tree broadcasts           bucket
    reduce                  tree                                    bucket reduce-scatters, tree gathers
    allreduce               tree reduces, tree broadcasts           bucket reduce-scatters, bucket allgathers
    reduce_scatter_block    tree reduces, tree scatters             bucket

An operation that does not commute takes the tree, in which operands meet in rank order.
"""
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdlib cimport calloc
from libc.stdlib cimport free as free_memory
from libc.string cimport memcpy

from ompy.core.board import OPERATIONS
from ompy.core.convertor cimport pack_all, unpack_all
from ompy.mca.coll import FUNCTIONS
from ompy.mca.coll cimport (
    ALLGATHER, ALLREDUCE, BARRIER, BCAST, FUNCTION_COUNT, GATHER, INTERFACE, REDUCE, REDUCE_SCATTER_BLOCK, SCATTER,
)

from ompy_coll_portals cimport bucket, tree
from ompy_coll_portals.exchange cimport exchange_for

interface = INTERFACE

# What the job board calls each function.
cdef int operations[FUNCTION_COUNT]
for function, name in enumerate(FUNCTIONS):
    operations[function] = OPERATIONS.index(name.capitalize())

# Parts of one collective; `tree.barrier` takes two.
cdef enum:
    FIRST = 1
    SECOND = 2
    MEETING = 4


class Portals:
    """The one algorithm of this component, for those who list algorithms."""

    name = "portals"
    summary = "a minimum spanning tree for short vectors, buckets round a ring for long ones"


cdef class Packed:
    """Typed memory as contiguous bytes: the memory itself, or a copy."""
    cdef char *data
    cdef char *made
    cdef size_t address
    cdef Py_ssize_t count
    cdef Typemap typemap

    def __dealloc__(self):
        PyMem_Free(self.made)

    cdef int pack(self) except -1:
        """Fill the copy from the program's memory."""
        if self.made != NULL and self.typemap is not None:
            pack_all(<char *> self.address, self.count, self.typemap, self.made)
        return 0

    cdef int unpack(self) except -1:
        """Put the copy into the program's memory."""
        if self.made != NULL and self.typemap is not None:
            unpack_all(self.made, self.count * self.typemap.size, <char *> self.address, self.count, self.typemap)
        return 0


cdef Packed packed(size_t address, Py_ssize_t count, Typemap typemap):
    cdef Packed found = Packed.__new__(Packed)
    found.address = address
    found.count = count
    found.typemap = typemap
    found.data = <char *> address
    return found if typemap.contiguous else copied(found, count * typemap.size)


cdef Packed copied(Packed found, uint64_t size):
    found.made = found.data = <char *> PyMem_Malloc(size + 1)
    if found.made == NULL:
        raise MemoryError(f"no memory for a vector of {size} bytes")
    return found


cdef Packed scratch(uint64_t size):
    return copied(Packed.__new__(Packed), size)


cdef class PortalsModule(CollModule):
    """The collectives of one communicator.

    Parameters:
        bml: leads to the BTLs that the portals' kernel rides on.
        node: this process's rank in the job.
        short_limit: bytes; longer vectors take buckets.
        drift: collectives that a rank may be ahead of another.
    """

    def __init__(self, Bml bml not None, uint32_t node, uint64_t short_limit, int drift):
        super().__init__("portals")
        self.bml = bml
        self.node = node
        self.short_limit = short_limit
        self.drift = max(drift, 1)

    def __dealloc__(self):
        free_memory(self.offsets)

    cpdef int run(self, int function, CollectiveCall call, Communicator comm) except -1:
        """Carry the collective out; returns when this rank's part is done."""
        if not self.serves(function, call):
            return self.hand_on(function, call, comm)
        if self.exchange is None:
            self.set_up(comm)
        self.exchange.sequence += 1
        self.exchange.shown.operation = operations[function]
        self.exchange.ahead += 1
        if function == BCAST:
            self.bcast(call)
        elif function == GATHER:
            self.gather(call)
        elif function == SCATTER:
            self.scatter(call)
        elif function == REDUCE:
            self.reduce(call, False)
        else:
            # No rank gets out of these before all are in.
            self.exchange.ahead = 0
            if function == BARRIER:
                return tree.barrier(self.exchange, MEETING)
            if function == ALLGATHER:
                return self.allgather(call)
            if function == ALLREDUCE:
                return self.reduce(call, True)
            return self.reduce_scatter_block(call)
        if self.exchange.ahead >= self.drift:
            self.exchange.ahead = 0
            tree.barrier(self.exchange, MEETING)
        return 0

    cdef bint serves(self, int function, CollectiveCall call) except -1:
        """The same answer on every rank: it depends on what MPI wants to be equal there."""
        cdef Typemap typemap
        if function in (REDUCE, ALLREDUCE, REDUCE_SCATTER_BLOCK):
            typemap = call.recv_type if call.send_in_place or function == REDUCE_SCATTER_BLOCK else call.send_type
            return typemap.basic >= 0 and typemap.contiguous and call.operation.defined_on(typemap)
        return True

    cdef int set_up(self, Communicator comm) except -1:
        """Lay the portals out, and begin when all ranks have done so."""
        self.offsets = <uint64_t *> calloc(comm.size + 1, sizeof(uint64_t))
        if self.offsets == NULL:
            raise MemoryError(f"no memory for the offsets of {comm.size} blocks")
        self.exchange = exchange_for(comm, self.bml, self.node, self.short_limit, self.drift)
        return self.hand_on(BARRIER, CollectiveCall(), comm)

    cpdef int free(self) except -1:
        """The communicator is gone."""
        if self.exchange is not None:
            self.exchange.close()
            self.exchange = None
        return 0

    def explain(self, int function, Communicator comm not None, Py_ssize_t nbytes, bint commutative=True):
        """[(algorithm, whether it would serve, when it is taken)]: this component has one for each function."""
        return [(Portals, True, f"trees up to {self.short_limit} bytes, buckets above")]

    # -- blocks ---------------------------------------------------------------------------------------------------

    cdef uint64_t equal_blocks(self, uint64_t block) noexcept:
        """One of so many bytes for each rank; returns the length of all."""
        cdef int rank
        for rank in range(self.exchange.comm.size + 1):
            self.offsets[rank] = rank * block
        return self.offsets[self.exchange.comm.size]

    cdef uint64_t shared_out(self, Py_ssize_t count, Py_ssize_t unit) noexcept:
        """A vector's elements, of `unit` bytes, as evenly as can be; returns the length of all."""
        cdef int rank, size = self.exchange.comm.size
        for rank in range(size + 1):
            self.offsets[rank] = (count // size * rank + min(<Py_ssize_t> rank, count % size)) * unit
        return self.offsets[size]

    # -- functions ------------------------------------------------------------------------------------------------

    cdef int bcast(self, CollectiveCall call) except -1:
        cdef Exchange exchange = self.exchange
        cdef Packed vector = packed(call.send_address, call.send_count, call.send_type)
        cdef uint64_t length = self.shared_out(call.send_count * call.send_type.size, 1)
        cdef bint is_root = exchange.comm.rank == call.root
        if is_root:
            vector.pack()
        if length <= self.short_limit:
            tree.bcast(exchange, call.root, FIRST, vector.data, length, False)
        else:
            tree.scatter(exchange, call.root, FIRST, vector.data, self.offsets, True)
            bucket.allgather(exchange, SECOND, vector.data, self.offsets)
        if not is_root:
            vector.unpack()
        return 0

    cdef int gather(self, CollectiveCall call) except -1:
        cdef Exchange exchange = self.exchange
        cdef int rank = exchange.comm.rank
        cdef bint is_root = rank == call.root
        cdef uint64_t block = <uint64_t> (call.recv_count * call.recv_type.size if is_root
                                          else call.send_count * call.send_type.size)
        cdef uint64_t length = self.equal_blocks(block)
        cdef Packed vector
        if is_root:
            vector = packed(call.recv_address, call.recv_count * exchange.comm.size, call.recv_type)
        else:
            vector = scratch(length)
        if is_root and call.send_in_place:
            vector.pack()
        else:
            pack_all(<char *> call.send_address, call.send_count, call.send_type, vector.data + self.offsets[rank])
        tree.gather(exchange, call.root, FIRST, vector.data, self.offsets, length > self.short_limit)
        if is_root:
            vector.unpack()
        return 0

    cdef int scatter(self, CollectiveCall call) except -1:
        cdef Exchange exchange = self.exchange
        cdef int rank = exchange.comm.rank
        cdef bint is_root = rank == call.root
        cdef uint64_t block = <uint64_t> (call.send_count * call.send_type.size if is_root
                                          else call.recv_count * call.recv_type.size)
        cdef uint64_t length = self.equal_blocks(block)
        cdef Packed vector
        if is_root:
            vector = packed(call.send_address, call.send_count * exchange.comm.size, call.send_type)
            vector.pack()
        else:
            vector = scratch(length)
        tree.scatter(exchange, call.root, FIRST, vector.data, self.offsets, length > self.short_limit)
        if not (is_root and call.recv_in_place):
            unpack_all(vector.data + self.offsets[rank], block, <char *> call.recv_address, call.recv_count, call.recv_type)
        return 0

    cdef int allgather(self, CollectiveCall call) except -1:
        cdef Exchange exchange = self.exchange
        cdef int rank = exchange.comm.rank
        cdef uint64_t length = self.equal_blocks(<uint64_t> (call.recv_count * call.recv_type.size))
        cdef Packed vector = packed(call.recv_address, call.recv_count * exchange.comm.size, call.recv_type)
        if call.send_in_place:
            vector.pack()
        else:
            pack_all(<char *> call.send_address, call.send_count, call.send_type, vector.data + self.offsets[rank])
        if length <= self.short_limit:
            tree.gather(exchange, 0, FIRST, vector.data, self.offsets, False)
            tree.bcast(exchange, 0, SECOND, vector.data, length, False)
        else:
            bucket.allgather(exchange, FIRST, vector.data, self.offsets)
        return vector.unpack()

    cdef int reduce(self, CollectiveCall call, bint everywhere) except -1:
        cdef Exchange exchange = self.exchange
        cdef size_t source = call.recv_address if call.send_in_place else call.send_address
        cdef Py_ssize_t count = call.recv_count if call.send_in_place else call.send_count
        cdef Typemap typemap = call.recv_type if call.send_in_place else call.send_type
        cdef uint64_t length = self.shared_out(count, typemap.size)
        cdef int root = 0 if everywhere else call.root
        cdef bint is_long = length > self.short_limit
        cdef Packed operand = scratch(length), spare = scratch(length)
        cdef char *result = operand.data
        memcpy(operand.data, <char *> source, length)
        if is_long and call.operation.commutative:
            bucket.reduce_scatter(exchange, FIRST, operand.data, spare.data, self.offsets, typemap, call.operation)
            if everywhere:
                bucket.allgather(exchange, SECOND, operand.data, self.offsets)
            else:
                tree.gather(exchange, root, SECOND, operand.data, self.offsets, True)
        else:
            result = tree.reduce(exchange, root, FIRST, operand.data, spare.data, count, typemap, call.operation, is_long)
            if everywhere:
                tree.bcast(exchange, root, SECOND, result, length, is_long)
        if everywhere or exchange.comm.rank == root:
            memcpy(<char *> call.recv_address, result, length)
        return 0

    cdef int reduce_scatter_block(self, CollectiveCall call) except -1:
        cdef Exchange exchange = self.exchange
        cdef int rank = exchange.comm.rank, size = exchange.comm.size
        cdef Typemap typemap = call.recv_type
        cdef uint64_t block = <uint64_t> (call.recv_count * typemap.size)
        cdef uint64_t length = self.equal_blocks(block)
        cdef bint is_long = length > self.short_limit
        cdef Packed operand = scratch(length), spare = scratch(length)
        cdef char *result = operand.data
        memcpy(operand.data, <char *> (call.recv_address if call.send_in_place else call.send_address), length)
        if is_long and call.operation.commutative:
            bucket.reduce_scatter(exchange, FIRST, operand.data, spare.data, self.offsets, typemap, call.operation)
        else:
            result = tree.reduce(exchange, 0, FIRST, operand.data, spare.data, call.recv_count * size, typemap,
                                 call.operation, is_long)
            tree.scatter(exchange, 0, SECOND, result, self.offsets, is_long)
        memcpy(<char *> call.recv_address, result + self.offsets[rank], block)
        return 0
