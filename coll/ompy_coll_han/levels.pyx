# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, binding=False
# distutils: extra_compile_args=-Os
"""The levels of a communicator; `levels.pxd` has the picture."""
from cpython.mem cimport PyMem_Free, PyMem_Malloc

from ompy.core.communicator cimport APART, TOGETHER, Communicator

from ompy.mca import parts


cdef class Levels:
    """Who is where, and the communicators of both levels."""

    def __dealloc__(self):
        PyMem_Free(self.host_of)

    cdef int let_go(self) except -1:
        """The communicator is gone, or could not be divided."""
        cdef Communicator low = self.low, up = self.up
        self.low = self.up = None
        if up is not None:
            parts.let_go(up)
        if low is not None:
            parts.let_go(low)
        return 0


cdef Levels make_levels(Communicator comm, list hosts):
    cdef Levels levels
    cdef list members = []
    cdef dict numbers = {}
    cdef int rank, host, place = 0
    for rank in range(comm.size):
        host = numbers.setdefault(hosts[rank], len(numbers))
        if host == len(members):
            members.append([])
        (<list> members[host]).append(rank)
    if len(members) == 1 or len(members) == comm.size:
        return None
    levels = Levels.__new__(Levels)
    levels.hosts = <int> len(members)
    levels.host_of = <int *> PyMem_Malloc((3 * comm.size + levels.hosts + 1) * sizeof(int))
    if levels.host_of == NULL:
        raise MemoryError()
    levels.place_of = levels.host_of + comm.size
    levels.rank_at = levels.place_of + comm.size
    levels.first = levels.rank_at + comm.size
    levels.in_order = True
    for host in range(levels.hosts):
        levels.first[host] = place
        for rank in members[host]:
            levels.host_of[rank] = host
            levels.place_of[rank] = place
            levels.rank_at[place] = rank
            levels.in_order = levels.in_order and place == rank
            place += 1
    levels.first[levels.hosts] = place
    levels.host = levels.host_of[comm.rank]
    try:
        levels.low = parts.part(comm, levels.hosts, levels.host, members[levels.host], TOGETHER)
        levels.up = parts.part(comm, 1, 0, [ranks[0] for ranks in members], APART)
    except BaseException:
        levels.let_go()
        raise
    name = comm.name or f"communicator {comm.context:#x}"
    levels.low.name = f"{name} on this host"
    if levels.up is not None:
        levels.up.name = f"{name} between hosts"
    return levels
