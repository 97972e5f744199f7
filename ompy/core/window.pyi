from collections.abc import Sequence
from typing import Any

from ompy.core.communicator import Communicator

class Window:
    communicator: Communicator
    flavor: int
    model: int
    base: int
    size: int
    unit: int
    module: Any
    parent: Any
    memory: Any
    attributes: dict[Any, Any]
    name: str
    freed: bool
    def __init__(
        self,
        communicator: Communicator,
        flavor: int,
        sizes: Sequence[int],
        units: Sequence[int],
        addresses: Sequence[int],
        memory: object = None,
    ) -> None: ...
    def segment(self, rank: int) -> tuple[int, int, int]: ...
    def mark_freed(self) -> None: ...
