from ompy.core.window import Window
from ompy.mca.osc import OscModule

class Orders(OscModule):
    def __init__(self, window: Window, inline_limit: int = 4096) -> None: ...
