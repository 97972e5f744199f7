# cython: language_level=3, boundscheck=False, wraparound=False, binding=False
# distutils: extra_compile_args=-Os
"""The processes that this one may talk to."""
from ompy.core.errors import ERR_OTHER, MPIError


cdef class Proc:
    """One process (Open MPI slides, "Process Naming"): never copied, compared by identity.

    Parameters:
        index: position in this process's table.
        rank: rank in the world of its job.
        job: name of its job.
        host, pid: where it runs.
        is_self, is_local: whether it is this process, or one on this host.
        card: what it published, component name -> bytes.
        circle, number: the circle that this process knows it from, and its number there.
    """

    def __init__(self, int index, int rank, str job, str host, int pid, bint is_self, bint is_local, dict card, circle=None,
                 int number=-1):
        self.index = index
        self.rank = rank
        self.job = job
        self.host = host
        self.pid = pid
        self.is_self = is_self
        self.is_local = is_local
        self.card = card
        self.circle = circle
        self.number = rank if number < 0 else number

    cpdef int fail(self, object error) except -1:
        """Contact with this process has ended."""
        global failures
        if self.failure is None:
            self.failure = error
            failures += 1
        return 0

    def __repr__(self):
        return f"<Proc rank {self.rank} of {self.job} (host {self.host}, pid {self.pid})>"


cdef class ProcTable:
    """Index -> Proc, each made by the resolver when somebody first asks for it."""

    def __init__(self):
        self.procs = []

    def set_resolver(self, resolver):
        """`resolver(index)` makes the Proc of an index; the runtime sets it at start, and None when the process leaves."""
        self.resolver = resolver

    cdef Proc at(self, int index):
        cdef Proc proc = <Proc> self.procs[index]
        if proc is None:
            if self.resolver is None:
                raise MPIError(ERR_OTHER, "this process is leaving its job: it meets no other process any more")
            proc = self.resolver(index)
            self.procs[index] = proc
        return proc

    cpdef int extend(self, int count) except -1:
        """Room for `count` more processes; returns the first new index."""
        cdef int first = len(self.procs)
        self.procs.extend([None] * count)
        return first

    def reaches(self, int index):
        """Whether the process is known, or can be asked for: not those that were never met once this process leaves."""
        return self.resolver is not None or self.procs[index] is not None

    cpdef list known(self):
        """The processes met so far."""
        return [proc for proc in self.procs if proc is not None]

    cpdef int forget(self, int index) except -1:
        """The process is disconnected: nobody finds it by this index any more, which is given to no other."""
        self.procs[index] = None
        return 0

    cpdef int leave(self) except -1:
        """All of them are forgotten, at finalisation: who asks for one is told so."""
        self.resolver = None
        self.procs = [None] * len(self.procs)
        return 0

    cpdef int clear(self) except -1:
        """There are none."""
        self.resolver = None
        self.procs = []
        return 0

    def get(self, int index):
        """The process of an index, made at first use.  Errors: IndexError."""
        if not 0 <= index < len(self.procs):
            raise IndexError(f"process index {index} is not in 0..{len(self.procs) - 1}")
        return self.at(index)

    def __len__(self):
        return len(self.procs)


table = ProcTable()
failures = 0


def process_table():
    """The table of this process."""
    return table
