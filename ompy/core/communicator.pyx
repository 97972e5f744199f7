# cython: language_level=3, boundscheck=False, wraparound=False, binding=False
# distutils: extra_compile_args=-Os
"""Communicators as PMLs and collectives see them."""
cimport cython

from ompy.core cimport proc as procs
from ompy.core.constants cimport TAG_COLLECTIVE_FIRST, TAG_COLLECTIVE_LAST, TAG_PERSISTENT, TAGS
from ompy.core.proc cimport failures, table

from ompy.core.errors import MPIError


cdef class Communicator:
    """A group and a context (MPI-4.1, 7.2).

    Parameters:
        context: the same number in every member, unique while the communicator lives.
        group: the local group; this process is in it.
        remote_group: of an inter-communicator, else None.
        name: for people.
    """

    def __init__(self, uint64_t context, Group group not None, Group remote_group=None, str name=""):
        fill_in(self, context, group, remote_group, name)

    cdef object failure(self):
        cdef Proc proc
        if failures == 0:
            return None
        if self.whole is not None:
            return self.whole.failure()
        for proc in table.known():
            if proc.failure is not None and (self.group.rank_of(proc.index) >= 0 or self.remote_group.rank_of(proc.index) >= 0):
                return self.named(proc.failure)
        return None

    def named(self, error):
        """A process's failure as this communicator's."""
        name = self.name or f"communicator {self.context:#x}"
        return MPIError(error.code, f"{name}: {error.detail}") if isinstance(error, MPIError) else error

    cdef int collective_tag(self):
        cdef int tag = self.next_collective_tag
        self.next_collective_tag = tag - 1 if tag > TAG_COLLECTIVE_LAST else TAG_COLLECTIVE_FIRST
        return tag

    cdef int persistent_tag(self):
        cdef int tag = self.next_persistent_tag
        self.next_persistent_tag = tag - 1 if tag > TAG_PERSISTENT - TAGS + 1 else TAG_PERSISTENT
        return tag

    def take_collective_tag(self):
        """A tag of the library's own for the next collective call, for components in plain Python."""
        return self.collective_tag()

    def shares_host(self, bint job_does):
        """Whether all members are known to be on this host.

        Parameters:
            job_does: whether those of this process's job are.
        """
        if self.placement == TOGETHER:
            return True
        return self.all_local() if self.spans_jobs else job_does

    def all_local(self):
        """The same, by what each member has published: a part of a job on several hosts may be on one."""
        members = {*self.group.indices(), *self.remote_group.indices()}
        return all([procs.table.at(index).is_local for index in members])

    def mark_freed(self):
        """No new operation may begin here; pending ones complete (MPI-4.1, 7.4.3)."""
        self.freed = True

    def __repr__(self):
        kind = "inter" if self.is_inter else "intra"
        return f"<{kind}-communicator {self.name or hex(self.context)} rank {self.rank} of {self.size}>"


cdef void fill_in(Communicator made, uint64_t context, Group group, Group remote_group, str name):
    made.context = context
    made.group = group
    made.is_inter = remote_group is not None
    made.remote_group = group if remote_group is None else remote_group
    made.spans_jobs = group.spans_jobs or made.remote_group.spans_jobs
    made.rank = group.rank
    made.size = group.size
    made.remote_size = made.remote_group.size
    made.attributes = {}
    made.name = name
    made.next_collective_tag = TAG_COLLECTIVE_FIRST
    made.next_persistent_tag = TAG_PERSISTENT


cdef Communicator new_communicator(uint64_t context, Group group, Group remote_group, str name):
    cdef Communicator made = Communicator.__new__(Communicator)
    fill_in(made, context, group, remote_group, name)
    return made


@cython.no_gc_clear
cdef class Hold:
    """Keeps a communicator able to carry messages.

    Parameters:
        communicator: which.
    """

    def __cinit__(self, Communicator communicator not None):
        self.communicator = communicator
        communicator.under_way += 1

    def __dealloc__(self):
        self.communicator.under_way -= 1
