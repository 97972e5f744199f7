from ompy_puma.link import Link, Wire

class Network:
    packet_size: int
    eager_size: int
    can_fetch: bool
    capacity: int
    carried: int
    fail_fetches: bool
    calls_back: bool
    def __init__(
        self,
        *,
        packet_size: int = 4096,
        eager_size: int = 256,
        can_fetch: bool = False,
        capacity: int = ...,
        fail_fetches: bool = False,
        calls_back: bool = True,
    ) -> None: ...
    def wire(self, node: int) -> LoopWire: ...
    def step(self) -> bool: ...
    def run(self) -> int: ...
    def packets(self) -> list[tuple[int, int, bytes]]: ...

class LoopWire(Wire):
    network: Network
    node: int
    called_back: list[tuple[int, int, int]]
    def __init__(self, network: Network, node: int) -> None: ...

class LoopLink(Link):
    def __init__(self, network: Network, source: LoopWire, target: LoopWire) -> None: ...
