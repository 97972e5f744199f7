from ompy_raw.tile import Tile

from ompy.mca.component import Context
from ompy.mca.rpi import Rpi

interface: int

class RawRpi(Rpi):
    tile: Tile
    messages_sent: int
    packets_sent: int
    messages_received: int
    messages_unexpected: int
    def __init__(self, name: str, context: Context, message_bytes: int) -> None: ...
