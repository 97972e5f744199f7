from ompy.core.communicator import Communicator
from ompy.mca.coll_rules import Algorithm
from ompy.mca.scheduled_coll import ScheduledColl
from ompy_coll_tuned.settings import TunedSettings

interface: int

class TunedModule(ScheduledColl):
    settings: TunedSettings
    def __init__(self, settings: TunedSettings) -> None: ...
    def explain(
        self, function: int, comm: Communicator, nbytes: int, commutative: bool = True
    ) -> list[tuple[Algorithm, bool, str]]: ...
