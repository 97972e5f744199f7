from ompy.core.file import File
from ompy.mca.fcoll import FcollModule

interface: int

class TwoPhase(FcollModule):
    def __init__(self, file: File, long_piece: int, read_twice: int, shared: bool) -> None: ...
