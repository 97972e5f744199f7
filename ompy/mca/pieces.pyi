from typing import Protocol

from ompy.core.typemap import Typemap

class Holder(Protocol):
    def holding(self, address: int) -> tuple[int, int]: ...

class Pieces: ...

def require_own(rank: int, displacement: int, count: int, typemap: Typemap, attachments: Holder) -> int: ...
