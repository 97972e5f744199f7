from typing import ClassVar

from ompy.mca.bml import Bml
from ompy.mca.coll import CollModule

interface: int

class Portals:
    name: ClassVar[str]
    summary: ClassVar[str]

class Packed: ...

class PortalsModule(CollModule):
    bml: Bml
    node: int
    short_limit: int
    drift: int
    def __init__(self, bml: Bml, node: int, short_limit: int, drift: int) -> None: ...
