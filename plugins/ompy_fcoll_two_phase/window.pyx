# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""What the ranks of a file share while they move its bytes.  See `window.pxd`."""
from collections import Counter

from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

from ompy.core.communicator cimport Communicator
from ompy.mca.agreement cimport agree, gather, shared_memory
from ompy.mca.coll cimport BARRIER, CollectiveCall, CollTable
from ompy_fcoll_two_phase.fingerprint cimport Fingerprint

from ompy.core.errors import MPIError
from ompy.mca.agreement import gathered


def turns(hosts) -> list[tuple[int, int]]:
    """For each rank, how many of its host come before it, and the host: in this order one of each host follows the other."""
    seen = Counter()
    found = []
    for host in hosts:
        found.append((seen[host], host))
        seen[host] += 1
    return found


cdef class Window:
    """See `window.pxd`.

    Parameters:
        communicator: the file's.
        shared: all its ranks are on this host.
    """

    def __init__(self, Communicator communicator not None, bint shared):
        self.communicator = communicator
        self.shared = shared
        self.fingerprint = Fingerprint()
        self.rows = <Row *> malloc(communicator.size * sizeof(Row))
        if self.rows == NULL:
            raise MemoryError()

    def __dealloc__(self):
        free(self.rows)
        free(self.order)
        free(self.own)

    cdef int meet_hosts(self) except -1:
        cdef int size = self.communicator.size, rank
        if self.order != NULL:
            return 0
        if self.shared:
            hosts = [0] * size
        else:
            first = next(rank for rank in range(size) if self.communicator.peer(rank).is_local)
            hosts = [first for [first] in gathered(self.communicator, [first])]
        order = sorted(range(size), key=turns(hosts).__getitem__)
        self.order = <int *> malloc(size * sizeof(int))
        if self.order == NULL:
            raise MemoryError()
        for turn, rank in enumerate(order):
            self.order[turn] = rank
        self.turn = order.index(self.communicator.rank)
        self.worth = len(set(hosts)) if len(set(hosts)) > 1 else size
        return 0

    cdef bint has_room(self, Py_ssize_t size, Py_ssize_t part) noexcept:
        return size <= self.size and (self.shared or part <= self.part)

    cdef bint make_room(self, Py_ssize_t size, Py_ssize_t part) except -1:
        if self.has_room(size, part):
            return True
        self.close()
        problem = None
        if self.shared:
            try:
                self.segment = shared_memory(self.communicator, "ompy-two-phase", size + PAGE)
            except MPIError:
                return False
        else:
            # Parts are whole pages, and begin anywhere in one.
            self.own = <char *> malloc(part + 2 * PAGE)
            if self.own == NULL:
                problem = MemoryError()
        try:
            self.fingerprint.prepare(size + PAGE)
        except MemoryError as error:
            problem = error
        try:
            agree(self.communicator, problem, "no memory")
        except Exception:
            self.close()
            return False
        self.size, self.part = size, part
        return True

    cdef int gather_rows(self, const Row *mine) except -1:
        return gather(self.communicator, <const int64_t *> mine, <int64_t *> self.rows, sizeof(Row) // sizeof(int64_t))

    cdef int meet(self) except -1:
        cdef CollectiveCall call = CollectiveCall.__new__(CollectiveCall)
        return (<CollTable> self.communicator.coll).of(BARRIER).run(BARRIER, call, self.communicator)

    cdef int close(self) except -1:
        if self.segment is not None:
            self.segment.close()
            self.segment = None
        free(self.own)
        self.own = NULL
        self.size = self.part = 0
        return 0
