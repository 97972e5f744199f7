from ompy_raw.tile import Tile

from ompy.mca.btl import Btl
from ompy.mca.component import Context

interface: int

class GdnBtl(Btl):
    tile: Tile
    def __init__(self, context: Context) -> None: ...
