from ompy.mca.btl import Btl
from ompy.mca.btl_wrapper import Wrapper

class FramedBtl(Wrapper):
    job: int
    rank: int
    def __init__(self, inner: Btl, job: str, rank: int, size: int) -> None: ...
    def own_statistics(self) -> dict[str, int]: ...
