from ompy.mca.btl import Btl
from ompy.mca.framed_btl import FramedBtl
from ompy_pml_dr.channels import Channels

class ReliableBtl(FramedBtl):
    channels: Channels
    def __init__(
        self,
        inner: Btl,
        job: str,
        rank: int,
        size: int,
        channels: Channels,
        *,
        packet_size: int = 65536,
        window: int = 64,
        window_bytes: int = 4194304,
    ) -> None: ...
