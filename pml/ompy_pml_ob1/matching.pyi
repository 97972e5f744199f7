from ompy.core.communicator import Communicator
from ompy.core.request import Request

class Matching:
    communicator: Communicator
    posted_count: int
    unexpected_count: int
    def __init__(self, communicator: Communicator) -> None: ...
    def posted_from(self, source: int) -> list[Request]: ...
    def dump(self) -> dict[str, list[tuple[int, ...]]]: ...
