from collections.abc import Callable, Sequence
from typing import Any, Self

from ompy.mpi.packing import Packing

ORDER_C: int
ORDER_FORTRAN: int
ORDER_F: int
DISTRIBUTE_BLOCK: int
DISTRIBUTE_CYCLIC: int
DISTRIBUTE_NONE: int
DISTRIBUTE_DFLT_DARG: int

class Datatype(Packing):
    def __new__(cls, datatype: Datatype | None = None) -> Self: ...
    def Get_size(self) -> int: ...
    @property
    def size(self) -> int: ...
    def Get_extent(self) -> tuple[int, int]: ...
    @property
    def extent(self) -> int: ...
    @property
    def lb(self) -> int: ...
    @property
    def ub(self) -> int: ...
    def Get_true_extent(self) -> tuple[int, int]: ...
    @property
    def true_extent(self) -> int: ...
    @property
    def true_lb(self) -> int: ...
    @property
    def true_ub(self) -> int: ...
    def Dup(self) -> Self: ...
    def Create_dup(self) -> Self: ...
    def Create_contiguous(self, count: int) -> Self: ...
    def Create_vector(self, count: int, blocklength: int, stride: int) -> Self: ...
    def Create_hvector(self, count: int, blocklength: int, stride: int) -> Self: ...
    def Create_indexed(self, blocklengths: Sequence[int], displacements: Sequence[int]) -> Self: ...
    def Create_hindexed(self, blocklengths: Sequence[int], displacements: Sequence[int]) -> Self: ...
    def Create_indexed_block(self, blocklength: int, displacements: Sequence[int]) -> Self: ...
    def Create_hindexed_block(self, blocklength: int, displacements: Sequence[int]) -> Self: ...
    @classmethod
    def Create_struct(
        cls, blocklengths: Sequence[int], displacements: Sequence[int], datatypes: Sequence[Datatype]
    ) -> Self: ...
    def Create_subarray(
        self, sizes: Sequence[int], subsizes: Sequence[int], starts: Sequence[int], order: int = ...
    ) -> Self: ...
    def Create_darray(
        self,
        size: int,
        rank: int,
        gsizes: Sequence[int],
        distribs: Sequence[int],
        dargs: Sequence[int],
        psizes: Sequence[int],
        order: int = ...,
    ) -> Self: ...
    def Create_resized(self, lb: int, extent: int) -> Self: ...
    def Resized(self, lb: int, extent: int) -> Self: ...
    @classmethod
    def Get_value_index(cls, value: Datatype, index: Datatype) -> Self: ...
    @classmethod
    def Create_f90_integer(cls, r: int) -> Self: ...
    @classmethod
    def Create_f90_real(cls, p: int, r: int) -> Self: ...
    @classmethod
    def Create_f90_complex(cls, p: int, r: int) -> Self: ...
    @classmethod
    def Match_size(cls, typeclass: int, size: int) -> Self: ...
    def Commit(self) -> Self: ...
    def Free(self) -> None: ...
    def Get_envelope(self) -> tuple[int, int, int, int, int]: ...
    @property
    def envelope(self) -> tuple[int, int, int, int, int]: ...
    def Get_contents(self) -> tuple[list[int], list[int], list[int], list[Datatype]]: ...
    @property
    def contents(self) -> tuple[list[int], list[int], list[int], list[Datatype]]: ...
    def decode(self) -> tuple[Datatype, str, dict[str, Any]]: ...
    @property
    def combiner(self) -> int: ...
    @property
    def is_named(self) -> bool: ...
    @property
    def is_predefined(self) -> bool: ...
    def Get_attr(self, keyval: int) -> Any: ...
    def Set_attr(self, keyval: int, attrval: Any) -> None: ...
    def Delete_attr(self, keyval: int) -> None: ...
    @classmethod
    def Create_keyval(
        cls,
        copy_fn: Callable[[Datatype, int, Any], Any] | None = None,
        delete_fn: Callable[[Datatype, int, Any], None] | None = None,
        nopython: bool = False,
    ) -> int: ...
    @classmethod
    def Free_keyval(cls, keyval: int) -> int: ...
    def Get_name(self) -> str: ...
    def Set_name(self, name: str) -> None: ...
    name: str
    def tocode(self) -> str: ...
    @classmethod
    def fromcode(cls, code: str) -> Datatype: ...
    @property
    def typestr(self) -> str: ...
    @property
    def typechar(self) -> str: ...

def _datatype_create(datatype: Datatype, combiner: str, params: dict[str, Any], free: bool = False) -> Datatype: ...
def _datatype_decode(datatype: Datatype, mark: bool = False) -> tuple[Datatype, str, dict[str, Any]]: ...
def _typecode(datatype: Datatype) -> str | None: ...
def _typealign(datatype: Datatype) -> int | None: ...

_typedict: dict[str, Datatype]
_typedict_c: dict[str, Datatype]
_typedict_f: dict[str, Datatype]

AINT: Datatype
BFLOAT16_T: Datatype
BOOL: Datatype
BYTE: Datatype
CHAR: Datatype
CHARACTER: Datatype
COMPLEX: Datatype
COMPLEX16: Datatype
COMPLEX32: Datatype
COMPLEX4: Datatype
COMPLEX8: Datatype
COUNT: Datatype
CXX_BOOL: Datatype
CXX_DOUBLE_COMPLEX: Datatype
CXX_FLOAT_COMPLEX: Datatype
CXX_LONG_DOUBLE_COMPLEX: Datatype
C_BOOL: Datatype
C_COMPLEX: Datatype
C_DOUBLE_COMPLEX: Datatype
C_FLOAT_COMPLEX: Datatype
C_LONG_DOUBLE_COMPLEX: Datatype
DATATYPE_NULL: Datatype
DOUBLE: Datatype
DOUBLE_COMPLEX: Datatype
DOUBLE_INT: Datatype
DOUBLE_PRECISION: Datatype
FLOAT: Datatype
FLOAT16_T: Datatype
FLOAT32_T: Datatype
FLOAT64_T: Datatype
FLOAT_INT: Datatype
F_BOOL: Datatype
F_COMPLEX: Datatype
F_DOUBLE: Datatype
F_DOUBLE_COMPLEX: Datatype
F_FLOAT: Datatype
F_FLOAT_COMPLEX: Datatype
F_INT: Datatype
INT: Datatype
INT16_T: Datatype
INT32_T: Datatype
INT64_T: Datatype
INT8_T: Datatype
INTEGER: Datatype
INTEGER1: Datatype
INTEGER16: Datatype
INTEGER2: Datatype
INTEGER4: Datatype
INTEGER8: Datatype
INT_INT: Datatype
LOGICAL: Datatype
LOGICAL1: Datatype
LOGICAL16: Datatype
LOGICAL2: Datatype
LOGICAL4: Datatype
LOGICAL8: Datatype
LONG: Datatype
LONG_DOUBLE: Datatype
LONG_DOUBLE_INT: Datatype
LONG_INT: Datatype
LONG_LONG: Datatype
OFFSET: Datatype
PACKED: Datatype
REAL: Datatype
REAL16: Datatype
REAL2: Datatype
REAL4: Datatype
REAL8: Datatype
SHORT: Datatype
SHORT_INT: Datatype
SIGNED_CHAR: Datatype
SIGNED_INT: Datatype
SIGNED_LONG: Datatype
SIGNED_LONG_LONG: Datatype
SIGNED_SHORT: Datatype
SINT16_T: Datatype
SINT32_T: Datatype
SINT64_T: Datatype
SINT8_T: Datatype
TWOINT: Datatype
UINT16_T: Datatype
UINT32_T: Datatype
UINT64_T: Datatype
UINT8_T: Datatype
UNSIGNED: Datatype
UNSIGNED_CHAR: Datatype
UNSIGNED_INT: Datatype
UNSIGNED_LONG: Datatype
UNSIGNED_LONG_LONG: Datatype
UNSIGNED_SHORT: Datatype
WCHAR: Datatype
