from ompy.core.file import File
from ompy.mca.sharedfp import SharedfpModule

interface: int

class SharedMemory(SharedfpModule):
    def __init__(self, file: File) -> None: ...
