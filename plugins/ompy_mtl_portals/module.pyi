from ompy.mca.bml import Bml
from ompy.mca.mtl import Mtl
from ompy_mtl_portals.engine import Engine

interface: int

class Listener(Engine): ...

class PortalsMtl(Mtl):
    engine: Listener
    def __init__(self, bml: Bml, node: int, heap: int = 16777216, short_limit: int = 16384, requests: int = 131072) -> None: ...
