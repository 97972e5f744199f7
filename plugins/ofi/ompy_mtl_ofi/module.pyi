from ompy.mca.mtl import Mtl
from ompy_mtl_ofi.engine import Engine

interface: int
layout: int

class OfiMtl(Mtl):
    engine: Engine
    def __init__(self, engine: Engine) -> None: ...
