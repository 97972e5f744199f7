from ompy.mca.bml import Bml
from ompy.mca.mtl import Mtl
from ompy.mca.pml import Pml

interface: int

class Cm(Pml):
    mtl: Mtl
    bml: Bml | None
    def __init__(self, mtl: Mtl, bml: Bml | None = None) -> None: ...
