from collections.abc import Callable
from typing import Any

from ompy.mca.btl import Btl
from ompy.mca.rte import Rte

interface: int

class TcpBtl(Btl):
    def __init__(self, rte: Rte, value: Callable[[str], Any]) -> None: ...
    def descriptors(self) -> list[int]: ...
