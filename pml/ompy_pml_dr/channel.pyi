from ompy.core.proc import Proc
from ompy.mca.btl_wrapper import WrapperEndpoint

class PathRecord(WrapperEndpoint): ...

class Channel:
    proc: Proc
    paths: list[PathRecord]
    def __init__(self, proc: Proc) -> None: ...
