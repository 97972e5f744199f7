# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# cython: auto_pickle=False
"""Communicators as numbers of their sources; see `context.pxd`."""
from collections import deque

from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

from ompy.core.constants cimport ANY_SOURCE, ANY_TAG
from ompy.core.errors import ERR_INTERN, ERR_OTHER, MPIError
from ompy.mca.mtl cimport MtlRecv

# What the world's context is within its job (`ompy/runtime/instance.py`).
cdef uint64_t WORLD = 1
cdef uint64_t WITHIN_JOB = 0xFFFFFFF


cdef inline bint wants(int source_wanted, int tag_wanted, int source, int tag) noexcept:
    return source_wanted in (ANY_SOURCE, source) and (tag_wanted == tag or (tag_wanted == ANY_TAG and tag >= 0))


cdef class Arrival:
    def __dealloc__(self):
        free(self.body)


cdef class OfiContext:
    """A communicator.

    Parameters:
        communicator: which.
        base: our number of its source 0.
        bits: that number its sources.
        common: all members have the same base.
    """

    def __cinit__(self, Communicator communicator not None, uint32_t base, int bits, bint common):
        cdef int rank
        self.communicator = communicator
        self.base = base
        self.bits = bits
        self.waiting = {}
        self.posted = []
        self.arrived = []
        self.theirs = <uint32_t *> malloc(max(communicator.remote_size, 1) * sizeof(uint32_t))
        if self.theirs == NULL:
            raise MemoryError("no memory for a communicator's peers")
        for rank in range(communicator.remote_size):
            self.theirs[rank] = base if common else UNKNOWN
        if not communicator.is_inter:
            self.theirs[communicator.rank] = base

    def __dealloc__(self):
        free(self.theirs)

    cdef Py_ssize_t find(self, int source, int tag) noexcept:
        cdef Py_ssize_t index
        cdef Arrival arrival
        for index in range(len(self.arrived)):
            arrival = <Arrival> self.arrived[index]
            if wants(source, tag, arrival.source, arrival.tag):
                return index
        return -1

    cdef Py_ssize_t wanting(self, int source, int tag) noexcept:
        cdef Py_ssize_t index
        cdef MtlRecv request
        for index in range(len(self.posted)):
            request = <MtlRecv> self.posted[index]
            if wants(request.wanted_source, request.wanted_tag, source, tag):
                return index
        return -1


cdef class ContextTable:
    """The communicators of this process.

    Parameters:
        bits: of a tag for who sends, at most 31.
        world: processes of the job, whose numbers begin at 0.
    """

    def __init__(self, int bits, int world):
        self.numbers = <uint64_t> 1 << min(bits, 31)
        self.next = <uint64_t> 1 << width(world)
        self.named = {}
        self.blocks = {}
        self.spare = {}
        self.widths = set()
        self.early = {}

    cdef OfiContext add(self, Communicator comm):
        cdef int bits = width(comm.remote_size)
        cdef uint64_t size = <uint64_t> 1 << bits
        cdef uint64_t base = (self.next + size - 1) // size * size
        cdef bint common = comm.context & WITHIN_JOB == WORLD
        if comm.context in self.named:
            raise MPIError(ERR_INTERN, f"context {comm.context:#x} is in use twice")
        if common:
            base = 0
        elif base + size <= self.numbers:
            self.next = base + size
        elif self.spare.get(bits):
            base = self.spare[bits].popleft()
        else:
            raise MPIError(ERR_OTHER, f"mtl ofi has {self.numbers} numbers for the sources of all communicators, and none are "
                                      f"left for {comm!r}: free some, or use --mca pml ob1")
        made = OfiContext(comm, base, bits, common)
        self.named[comm.context] = made
        self.blocks[bits, base >> bits] = made
        self.widths.add(bits)
        return made

    cdef int drop(self, OfiContext context) except -1:
        if self.named.pop(context.communicator.context, None) is None:
            return 0
        del self.blocks[context.bits, context.base >> context.bits]
        if context.base:
            self.spare.setdefault(context.bits, deque()).append(context.base)
        return 0

    cdef OfiContext at(self, uint32_t who):
        cdef OfiContext found
        for bits in self.widths:
            found = self.blocks.get((bits, who >> <int> bits))
            if found is not None:
                return found if <int> (who - found.base) < found.communicator.remote_size else None
        return None


cdef inline int width(int count) noexcept:
    """Bits that number so many."""
    cdef int bits = 0
    while <int64_t> 1 << bits < count:
        bits += 1
    return bits
