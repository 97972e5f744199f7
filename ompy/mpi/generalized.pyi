"""Requests that the program carries out itself (MPI-4.1, 13.2)."""

from typing import Any

from ompy.core.request import Request as CoreRequest

class GeneralizedRequest(CoreRequest):
    def __init__(self, query: Any, free: Any, cancel: Any, args: Any, kwargs: Any) -> None: ...
    def complete_now(self) -> Any: ...
