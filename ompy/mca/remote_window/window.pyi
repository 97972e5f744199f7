from ompy.core.window import Window
from ompy.mca.bml import Bml
from ompy.mca.remote_window.accesses import Accesses

class RemoteWindow(Accesses):
    def __init__(self, component: str, window: Window, bml: Bml) -> None: ...
