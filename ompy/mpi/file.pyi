"""Files (MPI-4.1, chapter 14): the null handle."""

from typing import Any, NoReturn, Self

from ompy.mpi.handle import Handle
from ompy.mpi.info import Info

FILE_NULL: File
MODE_APPEND: int
MODE_CREATE: int
MODE_DELETE_ON_CLOSE: int
MODE_EXCL: int
MODE_RDONLY: int
MODE_RDWR: int
MODE_SEQUENTIAL: int
MODE_UNIQUE_OPEN: int
MODE_WRONLY: int

class File(Handle):
    def __new__(cls, file: File | None = ...) -> Self: ...
    @classmethod
    def Open(cls, comm: Any, filename: Any, amode: int = ..., info: Info | None = ...) -> NoReturn: ...
    @classmethod
    def Delete(cls, filename: Any, info: Info | None = ...) -> NoReturn: ...
