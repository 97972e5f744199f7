from collections.abc import Sequence

from ompy.mpi.completion import RequestHandle

class Selection:
    def __init__(self, requests: Sequence[RequestHandle]) -> None: ...
