from collections.abc import Sequence

from ompy.core.proc import Proc
from ompy.mca.btl import Btl, Endpoint
from ompy_btl_tcp.card import Address, Way

class TcpEndpoint(Endpoint):
    name: bytes
    addresses: Sequence[Address]
    failure: Exception | None
    @property
    def is_connected(self) -> bool: ...
    def __init__(self, btl: Btl, proc: Proc, name: bytes, me: bytes, addresses: Sequence[Address]) -> None: ...

class BundleEndpoint(TcpEndpoint):
    ways: Sequence[Way]
