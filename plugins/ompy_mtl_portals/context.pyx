# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Communicators in 13 bits; see `context.pxd`."""
from collections import deque

from libc.stdlib cimport calloc, free

from ompy.core.errors import ERR_INTERN, ERR_OTHER, MPIError

from ompy_mtl_portals.wire cimport CONTEXTS, LARGEST_GROUP

# Numbers of the communicators that every process starts with, by the low bits of their contexts.
cdef int FIRST_FREE = 3


cdef class PortalContext:
    def __cinit__(self, Communicator communicator not None, int number):
        cdef int rank
        self.communicator = communicator
        self.number = number
        self.waiting = {}
        self.theirs = <uint16_t *> calloc(max(communicator.remote_size, 1), sizeof(uint16_t))
        if self.theirs == NULL:
            raise MemoryError("no memory for a communicator's peers")
        if number < FIRST_FREE:
            for rank in range(communicator.remote_size):
                self.theirs[rank] = number
        elif not communicator.is_inter:
            self.theirs[communicator.rank] = number

    def __dealloc__(self):
        free(self.theirs)


cdef class ContextTable:
    def __init__(self):
        self.numbered = [None] * FIRST_FREE
        self.named = {}
        self.early = {}
        self.spare = deque()
        self.next = FIRST_FREE

    cdef PortalContext add(self, Communicator comm):
        cdef PortalContext made
        cdef int number
        if comm.context in self.named:
            raise MPIError(ERR_INTERN, f"context {comm.context:#x} is in use twice")
        if max(comm.size, comm.remote_size) > LARGEST_GROUP:
            raise MPIError(ERR_OTHER, f"mtl portals has 16 bits for a rank: {comm!r} has {max(comm.size, comm.remote_size)} "
                                      f"processes, at most {LARGEST_GROUP} are possible; use --mca pml ob1")
        if comm.context & 0xFFFFFFFFFFFF < FIRST_FREE:
            number = comm.context & 0xFFFF       # MPI_COMM_WORLD and MPI_COMM_SELF
        elif self.next < CONTEXTS:
            number = self.next
            self.next += 1
            self.numbered.append(None)
        elif self.spare:
            number = self.spare.popleft()
        else:
            raise MPIError(ERR_OTHER, f"mtl portals has 13 bits for a communicator: this process has {CONTEXTS - 1} of them "
                                      f"already; free some, or use --mca pml ob1")
        made = PortalContext(comm, number)
        self.numbered[number] = made
        self.named[comm.context] = made
        return made

    cdef int drop(self, PortalContext context) except -1:
        if self.named.pop(context.communicator.context, None) is None:
            return 0
        self.numbered[context.number] = None
        if context.number >= FIRST_FREE:
            self.spare.append(context.number)
        return 0

    cdef int number_for(self, uint64_t context, int node) except -1:
        cdef PortalContext found = self.named.get(context)
        if found is not None:
            return found.number
        self.early.setdefault(context, []).append(node)
        return 0
