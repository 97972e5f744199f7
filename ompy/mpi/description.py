"""What MPI remembers of a datatype besides its bytes: name, constructor and arguments, attributes (MPI-4.1, 5.1.13)."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ompy.core.typemap import Typemap

# Constructors; values follow Open MPI's mpi.h.
COMBINER_NAMED = 0
COMBINER_DUP = 1
COMBINER_CONTIGUOUS = 2
COMBINER_VECTOR = 3
COMBINER_HVECTOR = 5
COMBINER_INDEXED = 6
COMBINER_HINDEXED = 8
COMBINER_INDEXED_BLOCK = 9
COMBINER_STRUCT = 11
COMBINER_SUBARRAY = 12
COMBINER_DARRAY = 13
COMBINER_F90_REAL = 14
COMBINER_F90_COMPLEX = 15
COMBINER_F90_INTEGER = 16
COMBINER_RESIZED = 17
COMBINER_HINDEXED_BLOCK = 18
COMBINER_VALUE_INDEX = 19

COMBINERS = {value: name.removeprefix("COMBINER_") for name, value in list(globals().items()) if name.startswith("COMBINER_")}

#: Types that are predefined although they have no name: they are made with parameters, and never freed.
PARAMETRISED = (COMBINER_F90_REAL, COMBINER_F90_COMPLEX, COMBINER_F90_INTEGER, COMBINER_VALUE_INDEX)


__all__ = [name for name in globals() if name.startswith("COMBINER_")]


# The arguments of each constructor by mpi4py's names, in its order, without datatypes.
PARAMETERS: dict[int, tuple[str, ...]] = {
    COMBINER_NAMED: (),
    COMBINER_DUP: (),
    COMBINER_CONTIGUOUS: ("count",),
    COMBINER_VECTOR: ("count", "blocklength", "stride"),
    COMBINER_HVECTOR: ("count", "blocklength", "stride"),
    COMBINER_INDEXED: ("blocklengths", "displacements"),
    COMBINER_HINDEXED: ("blocklengths", "displacements"),
    COMBINER_INDEXED_BLOCK: ("blocklength", "displacements"),
    COMBINER_HINDEXED_BLOCK: ("blocklength", "displacements"),
    COMBINER_STRUCT: ("blocklengths", "displacements"),
    COMBINER_SUBARRAY: ("sizes", "subsizes", "starts", "order"),
    COMBINER_DARRAY: ("size", "rank", "gsizes", "distribs", "dargs", "psizes", "order"),
    COMBINER_F90_REAL: ("p", "r"),
    COMBINER_F90_COMPLEX: ("p", "r"),
    COMBINER_F90_INTEGER: ("r",),
    COMBINER_RESIZED: ("lb", "extent"),
}


class Description:
    """One datatype.

    Parameters:
        combiner: which constructor made it.
        values: the constructor's arguments, as `PARAMETERS` names them; sequences as arrays of 64-bit integers.
        types: typemaps that it was made of.
        name: what `Get_name` returns.
        codes: character, type string and code, where it has them.
    """

    __slots__ = ("attributes", "codes", "combiner", "name", "predefined", "types", "values")

    def __init__(
        self,
        combiner: int,
        values: tuple[Any, ...],
        types: list[Typemap],
        name: str = "",
        codes: tuple[str, str, str] = ("", "", ""),
    ) -> None:
        self.combiner = combiner
        self.predefined = combiner == COMBINER_NAMED or combiner in PARAMETRISED
        self.values = values
        self.types = types
        self.name = name
        self.codes = codes
        self.attributes: dict[str, Any] = {}

    @property
    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments by their names."""
        return dict(zip(PARAMETERS[self.combiner], self.values, strict=True))

    def contents(self) -> tuple[list[int], list[int]]:
        """Integers and counts as the large-count form of MPI_Type_get_contents lists them; addresses it has none."""
        values = list(self.values)
        if self.combiner in PARAMETRISED:
            return values, []
        if self.combiner == COMBINER_SUBARRAY:
            sizes, subsizes, starts, order = values
            return [len(sizes), order], [*sizes, *subsizes, *starts]
        if self.combiner == COMBINER_DARRAY:
            size, rank, gsizes, distribs, dargs, psizes, order = values
            return [size, rank, len(gsizes), *distribs, *dargs, *psizes, order], list(gsizes)
        if self.combiner in (COMBINER_INDEXED, COMBINER_HINDEXED, COMBINER_STRUCT):
            lengths, displacements = values
            return [], [len(lengths), *lengths, *displacements]
        if self.combiner in (COMBINER_INDEXED_BLOCK, COMBINER_HINDEXED_BLOCK):
            length, displacements = values
            return [], [len(displacements), length, *displacements]
        return [], values
