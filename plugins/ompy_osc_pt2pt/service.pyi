from ompy.core.window import Window
from ompy_osc_pt2pt.tally import Tally

class Service:
    gone: dict[int, BaseException]
    posts: Tally
    completes: Tally
    def __init__(self, window: Window) -> None: ...
