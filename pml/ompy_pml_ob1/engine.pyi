from ompy.core.progress_source import ProgressSource
from ompy.core.request import Request
from ompy.mca.bml import Bml

class Transfer(Request):
    def describe(self) -> str: ...

class Engine(ProgressSource):
    bml: Bml
    send_pipeline_depth: int
    rdma_pipeline_depth: int
    use_get: bool
    use_put: bool
    def transfers(self) -> list[Transfer]: ...
    def settled(self) -> bool: ...
