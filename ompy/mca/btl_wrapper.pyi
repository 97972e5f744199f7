from collections.abc import Callable
from typing import Any

from ompy.core.proc import Proc
from ompy.mca.btl import Btl, Descriptor, Endpoint

class WrapperEndpoint(Endpoint):
    inner: Endpoint
    def __init__(self, btl: Btl, proc: Proc, inner: Endpoint) -> None: ...

class Wrapper(Btl):
    inner: Btl
    endpoints: dict[Endpoint, Any]
    def __init__(self, inner: Btl) -> None: ...
    def inner_lost(self, btl: Btl, proc: Proc, error: BaseException) -> None: ...
    def endpoint_of(self, proc: Proc, inner: Endpoint) -> WrapperEndpoint: ...
    def access(
        self,
        endpoint: WrapperEndpoint,
        is_put: bool,
        like: Descriptor,
        local_address: int,
        local_handle: bytes | None,
        over: Callable[[Descriptor, int], object],
    ) -> int: ...
