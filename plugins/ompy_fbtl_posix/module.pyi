from ompy.core.file import Access, File
from ompy.mca.fbtl import FbtlModule

interface: int

def statistics() -> dict[str, int]: ...

class Posix(FbtlModule):
    def __init__(self, file: File, distance: int, shortest: int, times: int) -> None: ...
    def complain(self, access: Access, number: int) -> None: ...
