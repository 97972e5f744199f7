"""Who this process is, and who others are."""

from typing import Any

from ompy.core.communicator import Communicator
from ompy.mca.rte import Rte

rte: Rte
own: Communicator

def begin(instance: Any) -> None: ...
def world_communicator() -> Communicator | None: ...
