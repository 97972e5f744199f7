from ompy_puma.process import Process

from ompy.core.communicator import Communicator
from ompy.mca.bml import Bml

ENTRIES: int

class Station(Process): ...
class Sending: ...

class Exchange:
    comm: Communicator
    short_limit: int
    def __init__(self, comm: Communicator, bml: Bml, node: int, short_limit: int, drift: int) -> None: ...
    def close(self) -> None: ...
