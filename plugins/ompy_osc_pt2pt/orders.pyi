from ompy.core.window import Window
from ompy.mca.epochs import Epochs

class Orders(Epochs):
    def __init__(self, window: Window, inline_limit: int = 4096) -> None: ...
