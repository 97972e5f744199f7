from collections.abc import Iterator
from typing import Any

from ompy.core.typemap import Typemap

class View:
    displacement: int
    etype: Typemap
    filetype: Typemap
    representation: Any
    contiguous: bool
    ordered: bool
    plain: bool
    def __init__(self, displacement: int, etype: Typemap, filetype: Typemap, representation: object = None) -> None: ...
    def offset(self, position: int) -> int: ...
    def position(self, offset: int) -> int: ...
    def pieces(self, position: int, nbytes: int) -> Iterator[tuple[int, int]]: ...
