from ompy.mca.component import Context
from ompy_rpi_raw.module import RawRpi

interface: int

class RawV2(RawRpi):
    def __init__(self, context: Context) -> None: ...
