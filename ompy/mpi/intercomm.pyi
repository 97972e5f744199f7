"""Inter-communicators (MPI-4.1, 7.6)."""

from typing import Self

from ompy.mpi.comm import Comm
from ompy.mpi.errhandler import Errhandler
from ompy.mpi.group import Group
from ompy.mpi.info import Info
from ompy.mpi.intracomm import Intracomm

class Intercomm(Comm):
    def __new__(cls, comm: Comm | None = ...) -> Self: ...
    @classmethod
    def Create_from_groups(
        cls,
        local_group: Group,
        local_leader: int,
        remote_group: Group,
        remote_leader: int,
        stringtag: str = ...,
        info: Info | None = ...,
        errhandler: Errhandler | None = ...,
    ) -> Self: ...
    def Get_remote_group(self) -> Group: ...
    def Get_remote_size(self) -> int: ...
    @property
    def remote_group(self) -> Group: ...
    @property
    def remote_size(self) -> int: ...
    def Merge(self, high: bool = ...) -> Intracomm: ...
