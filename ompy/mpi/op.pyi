from collections.abc import Callable
from typing import Any

from ompy.mpi.handle import Handle

class Op(Handle):
    def __new__(cls, op: Op | None = None) -> Op: ...
    def __call__(self, x: Any, y: Any) -> Any: ...
    @classmethod
    def Create(cls, function: Callable[[Any, Any, Any], Any], commute: bool = False) -> Op: ...
    def Free(self) -> None: ...
    def Is_commutative(self) -> bool: ...
    @property
    def is_commutative(self) -> bool: ...
    @property
    def is_predefined(self) -> bool: ...
    def Reduce_local(self, inbuf: Any, inoutbuf: Any) -> None: ...

OP_NULL: Op
MAX: Op
MIN: Op
SUM: Op
PROD: Op
LAND: Op
BAND: Op
LOR: Op
BOR: Op
LXOR: Op
BXOR: Op
MAXLOC: Op
MINLOC: Op
REPLACE: Op
NO_OP: Op
