from collections.abc import Callable
from typing import Any

from ompy.mca.rte import Rte
from ompy_btl_tcp.peers import Peers

interface: int

class TcpBtl(Peers):
    def __init__(self, rte: Rte, value: Callable[[str], Any]) -> None: ...
