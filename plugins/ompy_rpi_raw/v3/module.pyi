from ompy.mca.component import Context
from ompy_rpi_raw.module import RawRpi

interface: int
STATES: tuple[str, ...]

class RawV3(RawRpi):
    def __init__(self, context: Context) -> None: ...
    @property
    def handler_state(self) -> str: ...
