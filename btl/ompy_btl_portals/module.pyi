from ompy_puma.process import Process

from ompy.core.proc import Proc
from ompy.mca.btl import Btl, Endpoint

interface: int

class PortalsEndpoint(Endpoint):
    node: int
    def __init__(self, btl: Btl, proc: Proc) -> None: ...

class Messages(Process): ...

class PortalsBtl(Btl):
    carrier: Btl
    sent: int
    received: int
    put_bytes: int
    got_bytes: int
    def __init__(self, carrier: Btl, rank: int, heap_size: int = 1048576, regions: int = 65536) -> None: ...
    def carrier_lost(self, btl: Btl, proc: Proc, error: BaseException) -> None: ...
