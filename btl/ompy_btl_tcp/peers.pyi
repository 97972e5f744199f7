from collections.abc import Callable
from typing import Any

from ompy.core.errors import MPIError
from ompy.core.proc import Proc
from ompy.mca.rte import Rte
from ompy_btl_tcp.poller import Poller

class Peers(Poller):
    def __init__(self, rte: Rte, value: Callable[[str], Any]) -> None: ...
    def descriptors(self) -> list[int]: ...

def reason_of(over: int) -> str: ...
def lost(proc: Proc, where: str, reason: str) -> MPIError: ...
