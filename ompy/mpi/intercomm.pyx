# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=True, binding=False, auto_pickle=False
# distutils: extra_compile_args=-Os
"""Inter-communicators: two groups that talk to each other (MPI-4.1, 7.6)."""

from ompy.core.signals cimport keep_a_while, raise_kept_a_while
from ompy.mpi.comm cimport Comm, classes, set_up
from ompy.mpi.errhandler cimport Errhandler
from ompy.mpi.group cimport Group, checked, new_group
from ompy.mpi.info cimport Info

from ompy.core.errors import MPIError
from ompy.mpi.raising import hand_over
from ompy.runtime import communicators, intercommunicators

__all__ = ["Intercomm"]


cdef class Intercomm(Comm):
    """A communicator between two groups: ranks named in its methods are those of the remote group (MPI-4.1, 7.6)."""

    def __cinit__(self, Comm comm=None):
        if self.comm is not None and not self.comm.is_inter:
            raise TypeError("expecting an inter-communicator")

    @classmethod
    def Create_from_groups(cls, Group local_group not None, int local_leader, Group remote_group not None,
                           int remote_leader, str stringtag="org.mpi4py", Info info=None, Errhandler errhandler=None):
        """An inter-communicator between two groups, without a parent; COMM_NULL where one is empty (MPI-4.1, 7.6.2).

        Parameters:
            local_group, remote_group: the two groups, which share no process.
            local_leader, remote_leader: ranks in them of the processes that meet.
            stringtag: keeps concurrent calls apart.
            errhandler: of the new communicator; default ERRORS_RETURN.
        """
        cdef Intercomm made = cls.__new__(cls)
        try:
            made.comm = communicators.from_groups(checked(local_group, "local_group"), local_leader,
                                                  checked(remote_group, "remote_group"), remote_leader, stringtag)
            if made.comm is not None:
                set_up(made.comm, local_group, info, errhandler)
        except MPIError as error:
            hand_over(error, None)
        return made

    def Get_remote_group(self) -> Group:
        """The remote group (MPI-4.1, 7.6.1)."""
        if self.comm is None or self.comm.freed:
            self.refuse_null()
        return new_group(Group, self.comm.remote_group, self.comm.attributes.get("session"))

    def Get_remote_size(self) -> int:
        """Number of processes in the remote group (MPI-4.1, 7.6.1)."""
        if self.comm is None or self.comm.freed:
            self.refuse_null()
        return self.comm.remote_size

    @property
    def remote_group(self) -> Group:
        """The remote group (MPI-4.1, 7.6.1)."""
        return self.Get_remote_group()

    @property
    def remote_size(self) -> int:
        """Number of processes in the remote group (MPI-4.1, 7.6.1)."""
        return self.Get_remote_size()

    def Merge(self, bint high=False):
        """An intra-communicator of both groups (MPI-4.1, 7.6.2).

        Parameters:
            high: of the group that comes second; the same in all processes of a group.
        """
        keep_a_while()
        try:
            return self.new_handle(intercommunicators.merge(self.live(), high), classes["intra"], None)
        except MPIError as error:
            hand_over(error, self.comm)
        finally:
            raise_kept_a_while()


classes["inter"] = Intercomm
