from ompy.core.window import Window
from ompy.mca.bml import Bml
from ompy.mca.remote_window.window import RemoteWindow

interface: int

class RdmaWindow(RemoteWindow):
    def __init__(self, window: Window, bml: Bml, native: bool) -> None: ...
