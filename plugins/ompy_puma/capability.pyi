from collections.abc import Iterable

class Capability:
    group: int

class GroupCapability(Capability):
    size: int
    def __init__(self, group: int, members: Iterable[tuple[int, int]]) -> None: ...
    @property
    def pairs(self) -> list[tuple[int, int]]: ...

class PortalCapability(Capability):
    portal: int
    def __init__(self, group: int, node: int, process: int, portal: int) -> None: ...
