from typing import Any

from ompy_mtl_ofi.endpoint import Endpoint, Library

class Peer: ...

class Engine(Endpoint):
    eager_limit: int
    piece: int
    unexpected: int
    pulled: int
    stalls: int
    swept: int
    def __init__(self, library: Library, world: int, eager_limit: int, piece: int, receives: int, **others: Any) -> None: ...
    def card(self) -> dict[str, bytes]: ...
    def is_idle(self) -> bool: ...
