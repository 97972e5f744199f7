from ompy.core.proc import Proc
from ompy_pml_dr.path import Path

class Channel:
    proc: Proc
    paths: list[Path]
    def __init__(self, proc: Proc) -> None: ...
