from ompy.core.communicator import Communicator
from ompy.mca.coll import CollModule
from ompy.mca.coll_rules import Algorithm
from ompy_coll_han.settings import HanSettings

interface: int

class HanModule(CollModule):
    settings: HanSettings
    hosts: list[int]
    def __init__(self, settings: HanSettings, hosts: list[int], first_calls: int) -> None: ...
    def explain(
        self, function: int, comm: Communicator, nbytes: int, commutative: bool = True
    ) -> list[tuple[Algorithm, bool, str]]: ...
