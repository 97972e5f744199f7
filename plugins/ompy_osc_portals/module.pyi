from ompy.core.window import Window
from ompy.mca.bml import Bml
from ompy.mca.remote_window.window import RemoteWindow

interface: int

class PortalsWindow(RemoteWindow):
    def __init__(self, window: Window, bml: Bml, node: int, nodes: int, regions: int) -> None: ...
    def reach(self) -> str: ...
