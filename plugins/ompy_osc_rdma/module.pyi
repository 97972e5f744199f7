from ompy.core.window import Window
from ompy.mca.bml import Bml
from ompy_osc_rdma.accesses import Accesses

interface: int

class RdmaWindow(Accesses):
    def __init__(self, window: Window, bml: Bml, native: bool) -> None: ...
