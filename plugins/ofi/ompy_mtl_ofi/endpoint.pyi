from collections.abc import Iterable

from ompy.core.progress_source import ProgressSource

class Unavailable(Exception): ...

class Library:
    def __init__(self, name: str) -> None: ...

class Endpoint(ProgressSource):
    provider: str
    name: bytes
    tag_bits: int
    room: int
    inject_size: int
    largest: int
    receives: int
    sending: int
    def __init__(
        self,
        library: Library,
        room: int,
        *,
        elsewhere: bool,
        only: Iterable[str] = ...,
        never: Iterable[str] = ...,
        device: str = ...,
    ) -> None: ...
    def close(self) -> int: ...
