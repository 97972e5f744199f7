from ompy.core.window import Window
from ompy.mca.osc import OscModule

class Epochs(OscModule):
    def __init__(self, component: str, window: Window) -> None: ...
