from collections.abc import Callable
from typing import Any

from ompy.core.circle import Circle

class Proc:
    index: int
    rank: int
    job: str
    is_self: bool
    is_local: bool
    host: str
    pid: int
    card: dict[str, bytes]
    circle: Circle | None
    number: int
    routes: Any
    pml: Any
    failure: BaseException | None
    def __init__(
        self,
        index: int,
        rank: int,
        job: str,
        host: str,
        pid: int,
        is_self: bool,
        is_local: bool,
        card: dict[str, bytes],
        circle: Circle | None = None,
        number: int = -1,
    ) -> None: ...
    def fail(self, error: BaseException) -> int: ...

class ProcTable:
    def set_resolver(self, resolver: Callable[[int], Proc] | None) -> None: ...
    def extend(self, count: int) -> int: ...
    def reaches(self, index: int) -> bool: ...
    def known(self) -> list[Proc]: ...
    def forget(self, index: int) -> int: ...
    def leave(self) -> int: ...
    def clear(self) -> int: ...
    def get(self, index: int) -> Proc: ...
    def __len__(self) -> int: ...

def process_table() -> ProcTable: ...
