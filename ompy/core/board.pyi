from ompy.core.request import Request

OPERATIONS: tuple[str, ...]
STATES: tuple[str, ...]
RECORD_BYTES: int

class Row:
    rank: int
    pid: int
    state: str
    operation: str
    peer: int
    tag: int
    context: int
    nbytes: int
    communicator: str
    waits: int
    seconds: float

class Board:
    size: int
    def __init__(self, descriptor: int, writable: bool = False) -> None: ...
    @staticmethod
    def attach(descriptor: int, rank: int) -> Board: ...
    def meet(self, finalizing: bool) -> None: ...
    def met(self) -> None: ...
    def leave(self) -> None: ...
    def row(self, rank: int) -> Row: ...
    def rows(self) -> list[Row]: ...

def show_wait(request: Request) -> None: ...
def show_running() -> None: ...
