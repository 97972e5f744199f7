from ompy.core.window import Window
from ompy_osc_sm.accesses import Accesses

interface: int

class SmWindow(Accesses):
    def __init__(self, window: Window, spins: int, crowded: bool, patience: float) -> None: ...
