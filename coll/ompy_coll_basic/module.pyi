from collections.abc import Mapping

from ompy.core.communicator import Communicator
from ompy.mca.scheduled_coll import ScheduledColl
from ompy_coll_basic.algorithms import Algorithm

interface: int

class BasicModule(ScheduledColl):
    crossover: int
    forced: Mapping[str, str]
    def __init__(self, comm: Communicator, crossover: int, forced: Mapping[str, str]) -> None: ...
    def explain(
        self, function: int, comm: Communicator, nbytes: int, commutative: bool = True
    ) -> list[tuple[Algorithm, bool, str]]: ...
