from ompy_puma.process import Process

from ompy.mca.bml import Bml
from ompy_mtl_portals.context import PortalContext

class Engine(Process):
    bml: Bml
    nodes: int
    short_limit: int
    unexpected: int
    pulled: int
    discarded: int
    stalls: int
    def __init__(self, bml: Bml, node: int, heap_size: int, short_limit: int, requests: int) -> None: ...
    def answer(self, node: int, context: PortalContext) -> None: ...
    def owners(self, portal: int) -> list[object]: ...
