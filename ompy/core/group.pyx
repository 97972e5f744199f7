# cython: language_level=3, boundscheck=False, wraparound=False, binding=False
# distutils: extra_compile_args=-Os
"""Ordered sets of processes."""
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.limits cimport INT_MAX

from ompy.core cimport proc as procs
from ompy.core.constants cimport UNDEFINED
from ompy.core.errors import ERR_RANK, MPIError


cdef int this_process = 0
# The table begins with the processes of this one's job.
cdef int job_size = INT_MAX


def set_this_process(int index, int size=INT_MAX):
    """Tell groups which table index is this process, and how many its job has: the runtime does so at start."""
    global this_process, job_size
    this_process = index
    job_size = size


cdef class Group:
    """An ordered set of processes, immutable (MPI-4.1, 7.2.1)."""

    def __dealloc__(self):
        PyMem_Free(self.members)

    cdef Proc proc(self, int rank):
        return procs.table.at(self.members[rank])

    cpdef int rank_of(self, int index):
        """The rank here of the process with this table index, or MPI_UNDEFINED."""
        cdef int rank
        if 0 <= index < self.size and self.members[index] == index:
            return index
        for rank in range(self.size):
            if self.members[rank] == index:
                return rank
        return UNDEFINED

    def indices(self):
        """Table indices of the members, in rank order."""
        return [self.members[rank] for rank in range(self.size)]

    def member(self, int rank):
        """The Proc of a rank.  Errors: ERR_RANK."""
        if not 0 <= rank < self.size:
            raise MPIError(ERR_RANK, f"rank {rank} is not in 0..{self.size - 1}")
        return self.proc(rank)


cpdef Group make_group(object indices):
    """A group of the processes with these table indices, in this order.

    Errors: ERR_RANK when an index is repeated.
    """
    cdef Group group = Group.__new__(Group)
    cdef int rank = 0
    group.size = len(indices)
    if not isinstance(indices, range) and len(set(indices)) != group.size:
        raise MPIError(ERR_RANK, "a process can be in a group only once")
    group.members = <int *> PyMem_Malloc(max(group.size, 1) * sizeof(int))
    if group.members == NULL:
        raise MemoryError()
    group.rank = UNDEFINED
    for index in indices:
        group.members[rank] = index
        if group.members[rank] == this_process:
            group.rank = rank
        if group.members[rank] >= job_size:
            group.spans_jobs = True
        rank += 1
    return group


cdef Group subgroup(Group group, int size, const int *ranks):
    cdef Group made
    cdef int rank
    cdef bint same = size == group.size
    for rank in range(size):
        same = same and ranks[rank] == rank
    if same:
        return group
    made = Group.__new__(Group)
    made.members = <int *> PyMem_Malloc(max(size, 1) * sizeof(int))
    if made.members == NULL:
        raise MemoryError()
    made.size = size
    made.rank = UNDEFINED
    for rank in range(size):
        made.members[rank] = group.members[ranks[rank]]
        if made.members[rank] == this_process:
            made.rank = rank
        if made.members[rank] >= job_size:
            made.spans_jobs = True
    return made
