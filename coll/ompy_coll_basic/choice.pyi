from ompy.core.communicator import Communicator
from ompy_coll_basic.algorithms import Algorithm
from ompy_coll_basic.builder import Builder

class Candidate:
    algorithm: Algorithm
    to_bytes: int
    forced: bool
    def __init__(self, algorithm: Algorithm, builder: Builder, forced: bool = False) -> None: ...
    def when(self, crossover: int) -> str: ...

class Choice:
    function: int
    crossover: int
    candidates: list[Candidate]
    def __init__(self, function: int, comm: Communicator, crossover: int, forced: str) -> None: ...
    def explain(self, nbytes: int) -> list[tuple[Algorithm, bool, str]]: ...

def family(name: str) -> str: ...
