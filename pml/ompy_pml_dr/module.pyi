from ompy.mca.btl import Btl
from ompy.mca.framed_btl import FramedBtl
from ompy_pml_dr.helper import Helper

class ReliableBtl(FramedBtl):
    def __init__(
        self,
        inner: Btl,
        job: str,
        rank: int,
        size: int,
        helper: Helper | None = None,
        *,
        packet_size: int = 65536,
        window: int = 64,
        window_bytes: int = 4194304,
        ack_delay: float = 1.0,
        timeout: float = 50.0,
        timeout_min: float = 10.0,
        timeout_max: float = 1000.0,
        retry_limit: int = 300,
    ) -> None: ...
