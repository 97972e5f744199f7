from collections.abc import Callable

from ompy_raw.network import Network
from ompy_raw.recording import Recording

def check_size(width: int, height: int) -> None: ...

class Chip:
    width: int
    height: int
    tiles: int
    network: Network
    recording: Recording | None
    looks: int
    on_deadlock: Callable[[Chip], object] | None
    def __init__(
        self,
        width: int = 4,
        height: int = 4,
        staging_words: int = 1024,
        most_crossings: int = 0,
        most_samples: int = 0,
        private: bool = True,
    ) -> None: ...
    @property
    def now(self) -> int: ...
    @property
    def deadlocked(self) -> bool: ...
    @property
    def cycles_run(self) -> int: ...
    def crossed(self, tile: int, side: int) -> int: ...
    def buffered(self, tile: int, side: int) -> int: ...
    def waits(self) -> list[tuple[int, int, int, int]]: ...
    def all_left(self) -> bool: ...
    def diagnosis(self) -> str: ...
