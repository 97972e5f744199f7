from collections.abc import Callable
from typing import Any

from ompy.core.communicator import Communicator
from ompy.core.lane import Lane
from ompy.core.request import Request
from ompy.core.typemap import Typemap
from ompy.core.view import View

MODE_CREATE: int
MODE_RDONLY: int
MODE_WRONLY: int
MODE_RDWR: int
MODE_DELETE_ON_CLOSE: int
MODE_UNIQUE_OPEN: int
MODE_EXCL: int
MODE_APPEND: int
MODE_SEQUENTIAL: int
SEEK_SET: int
SEEK_CUR: int
SEEK_END: int
EXPLICIT: int
INDIVIDUAL: int
SHARED: int

class Access:
    address: int
    count: int
    typemap: Typemap
    owner: Any
    writing: bool
    collective: bool
    detached: bool
    pointer: int
    offset: int
    view: View
    position: int
    nbytes: int
    settle: Callable[[int], int] | None
    problem: BaseException | None
    def refuse(self, problem: BaseException) -> int: ...

class Turn:
    def __init__(self, path: str) -> None: ...
    def acquire(self) -> int: ...
    def release(self) -> int: ...
    def __enter__(self) -> Turn: ...
    def __exit__(self, *raised: object) -> None: ...

class File:
    communicator: Communicator
    path: str
    mode: int
    alone: bool
    hints: Any
    view: View
    atomic: bool
    descriptor: int
    readable: bool
    handle: Any
    module: Any
    parts: dict[str, Any]
    verdicts: list[tuple[str, str, int | None, bool, str]]
    attributes: dict[Any, Any]
    pending: int
    split: tuple[int, Any] | None
    freed: bool
    turn: Turn
    def __init__(self, communicator: Communicator, path: str, mode: int, hints: object, view: View) -> None: ...
    def settle(self) -> int: ...
    def mark_freed(self) -> None: ...

class FileRequest(Request):
    file: File
    access: Access
    def __init__(self, file: File, access: Access, work: Callable[[Access], int]) -> None: ...
    taken: bool
    def put_on(self, lane: Lane) -> None: ...
    def carry_out(self) -> None: ...
