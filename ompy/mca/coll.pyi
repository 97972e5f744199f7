from collections.abc import Callable, Sequence
from typing import Any

from ompy.core.communicator import Communicator
from ompy.core.operation import Operation
from ompy.core.request import Request
from ompy.core.typemap import Typemap

interface: int
FUNCTIONS: tuple[str, ...]

class CollectiveCall:
    send_address: int
    recv_address: int
    send_count: int
    recv_count: int
    send_type: Typemap | None
    recv_type: Typemap | None
    send_types: list[Typemap] | None
    recv_types: list[Typemap] | None
    operation: Operation | None
    root: int
    send_in_place: bool
    recv_in_place: bool
    send_owner: Any
    recv_owner: Any
    def set_vectors(
        self,
        send_counts: Sequence[int] | None = None,
        send_displacements: Sequence[int] | None = None,
        recv_counts: Sequence[int] | None = None,
        recv_displacements: Sequence[int] | None = None,
    ) -> None: ...

class CollModule:
    component: str
    def __init__(self, component: str) -> None: ...
    def run(self, function: int, call: CollectiveCall, comm: Communicator) -> int: ...
    def start(self, function: int, call: CollectiveCall, comm: Communicator) -> Request: ...
    def init(self, function: int, call: CollectiveCall, comm: Communicator) -> Request: ...
    def explain(
        self, function: int, comm: Communicator, nbytes: int, commutative: bool = True
    ) -> list[tuple[Any, bool, str]]: ...
    def free(self) -> int: ...
    def stand_before(self, function: int, module: CollModule) -> None: ...

class CollPlan:
    verdicts: list[tuple[str, str, int, bool, str]]
    def __init__(
        self,
        serving: list[list[int]],
        before: list[tuple[int, int, int]],
        verdicts: list[tuple[str, str, int, bool, str]],
    ) -> None: ...
    def keep(self, comm: Communicator, makers: list[Callable[[Communicator], CollModule]], told: dict[str, Any]) -> None: ...
    def table(self, modules: list[CollModule]) -> CollTable: ...

class CollTable:
    verdicts: list[tuple[str, str, int, bool, str]]
    def modules(self) -> list[CollModule]: ...
    def module(self, function: int) -> CollModule: ...

def ready(comm: Communicator) -> CollTable | None: ...
def forget_plans() -> None: ...
