from ompy.core.proc import Proc
from ompy.mca.btl import Btl, Endpoint

class Assembly: ...

class GdnEndpoint(Endpoint):
    tile: int
    def __init__(self, btl: Btl, proc: Proc, tile: int) -> None: ...
