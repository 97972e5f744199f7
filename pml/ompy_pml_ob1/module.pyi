from ompy.mca.bml import Bml
from ompy.mca.pml import Pml
from ompy_pml_ob1.engine import Engine

interface: int

class Ob1(Pml):
    bml: Bml
    engine: Engine
    def __init__(
        self,
        bml: Bml,
        send_pipeline_depth: int = 4,
        rdma_pipeline_depth: int = 4,
        use_get: bool = True,
        use_put: bool = True,
        checksum: bool = False,
        name: str = "ob1",
    ) -> None: ...
    def statistics(self) -> dict[str, int]: ...
