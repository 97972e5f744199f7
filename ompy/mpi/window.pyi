"""Windows (MPI-4.1, chapter 12): the null handle."""

from typing import Any, NoReturn, Self

from ompy.mpi.handle import Handle
from ompy.mpi.info import Info

WIN_NULL: Win

class Win(Handle):
    def __new__(cls, win: Win | None = ...) -> Self: ...
    @classmethod
    def Create(cls, memory: Any, disp_unit: int = ..., info: Info | None = ..., comm: Any = ...) -> NoReturn: ...
    @classmethod
    def Allocate(cls, size: int, disp_unit: int = ..., info: Info | None = ..., comm: Any = ...) -> NoReturn: ...
    @classmethod
    def Allocate_shared(cls, size: int, disp_unit: int = ..., info: Info | None = ..., comm: Any = ...) -> NoReturn: ...
    @classmethod
    def Create_dynamic(cls, info: Info | None = ..., comm: Any = ...) -> NoReturn: ...
