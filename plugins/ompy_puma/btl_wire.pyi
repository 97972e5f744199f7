from ompy.mca.bml import Bml, PeerRoutes
from ompy.mca.btl import Receiver
from ompy_puma.kernel import QKernel
from ompy_puma.link import Link, Wire

class BtlReceiver(Receiver): ...

class BtlWire(Wire):
    bml: Bml
    def __init__(self, bml: Bml, private: bool = False) -> None: ...
    def listen(self, kernel: QKernel) -> None: ...

class BtlLink(Link):
    def __init__(self, node: int, routes: PeerRoutes, kernel: QKernel) -> None: ...
