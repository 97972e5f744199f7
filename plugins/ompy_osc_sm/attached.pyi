from ompy.core.window import Window
from ompy_osc_sm.sharing import Sharing

class Attached(Sharing):
    def __init__(self, component: str, window: Window) -> None: ...
