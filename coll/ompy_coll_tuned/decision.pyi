from collections.abc import Sequence

from ompy.core.communicator import Communicator
from ompy.mca.coll_rules import Algorithm, Rule
from ompy_coll_tuned.algorithm import Builder

class Candidate:
    algorithm: Algorithm
    from_bytes: int
    ordered: bool
    ordered_one: Candidate | None
    words: str
    def __init__(self, chosen: Algorithm, builder: Builder, rule: Rule) -> None: ...

class Decision:
    function: int
    source: str
    candidates: list[Candidate]
    def __init__(self, function: int, comm: Communicator, rules: Sequence[Rule], source: str) -> None: ...
    def explain(self, nbytes: int, commutative: bool = True) -> list[tuple[Algorithm, bool, str]]: ...

def family(name: str) -> str: ...
