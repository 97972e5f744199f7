from typing import Any

class Program:
    depth: int
    size: int
    def steps(self) -> list[tuple[Any, ...]]: ...
