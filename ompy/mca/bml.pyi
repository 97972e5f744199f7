from collections.abc import Callable

from ompy.core.proc import Proc
from ompy.mca.btl import Btl, Endpoint, Receiver

interface: int

class Route:
    btl: Btl
    endpoint: Endpoint
    weight: float
    def __init__(self, btl: Btl, endpoint: Endpoint, weight: float = 1.0) -> None: ...

class PeerRoutes:
    proc: Proc
    eager: list[Route]
    send: list[Route]
    rdma: list[Route]
    verdicts: list[tuple[str, bool, str]]
    first: Route | None
    def __init__(
        self, proc: Proc, eager: list[Route], send: list[Route], rdma: list[Route], verdicts: list[tuple[str, bool, str]]
    ) -> None: ...

class Bml:
    btls: list[Btl]
    def wrap(self, around: Callable[[Btl], Btl]) -> int: ...
    def add_proc(self, proc: Proc) -> PeerRoutes: ...
    def del_proc(self, proc: Proc) -> int: ...
    def register(self, tag: int, receiver: Receiver) -> int: ...
    def register_error(self, handler: Callable[[Btl, Proc, BaseException], object]) -> int: ...
    def drop_route(self, proc: Proc, btl: Btl) -> int: ...
    def finalize(self) -> int: ...
