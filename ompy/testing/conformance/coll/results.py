"""Every function, by every algorithm of the component, on 1 to all ranks, against plain Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ompy.mca.coll import FUNCTIONS
from ompy.testing.conformance.check import Breach, Check, Collection
from ompy.testing.conformance.coll.calls import (
    FIRST,
    IN_PLACE,
    LAST,
    PAIR_WITH_GAP,
    PLAIN,
    REDUCTIONS,
    ROOTED,
    SHIFTED,
    SUM,
    Reduction,
    Shape,
    intra_case,
)  # fmt: skip
from ompy.testing.conformance.coll.rank import CollRank

check = Collection()

LONG = 20_000  # elements of all ranks together: beyond what is sent at once, and beyond many algorithms' thresholds
MOST_ROOTS = 5

IN_ONE_BLOCK = ("bcast", "gather", "allgather", "reduce", "allreduce", "scan", "exscan")


class Variant(NamedTuple):
    """One kind of call, and the clause that it is about.

    Where no form is named it is tried in each; where no root is, they take turns.
    """

    clause: str
    elements: int = 3
    shape: Shape = PLAIN
    in_place: bool = False
    operation: Reduction = SUM
    form: str = ""
    root: int = -1


def variants(function: str, forms: list[str], size: int) -> Iterator[Variant]:
    """The kinds of call of a function on so many ranks."""
    many = LONG // size if function in IN_ONE_BLOCK else LONG // size**2
    yield Variant("result", form=forms[0])
    yield from (Variant("forms", form=form) for form in forms[1:])
    yield Variant("empty", 0)
    yield Variant("empty", 0, PAIR_WITH_GAP)
    yield Variant("layout", 7, PAIR_WITH_GAP)
    yield Variant("layout", 1, SHIFTED)
    for root in range(min(size, MOST_ROOTS)) if function in ROOTED else (0,):
        yield Variant("result", root=root)
        yield Variant("result", many, root=root)
    if function in IN_PLACE:
        yield Variant("in place", 4, in_place=True)
        yield Variant("in place", 4, PAIR_WITH_GAP, in_place=True)
    if function in REDUCTIONS:
        for operation in (FIRST, LAST):
            yield Variant("order", operation=operation)
            yield Variant("order", many, operation=operation)
            if function in IN_PLACE:
                yield Variant("order", 4, in_place=True, operation=operation)


def try_function(rank: CollRank, function: str) -> None:
    """All variants, on all sizes, by all algorithms."""
    served = 0
    for size, comm in rank.groups.items():
        for algorithm, module in rank.serving(comm, function):
            served += 1
            rank.alive()
            # Members of one communicator may not be members of all: they count the turns anew in each.
            for turn, variant in enumerate(variants(function, rank.forms, size)):
                rank.clause = variant.clause
                root = variant.root if variant.root >= 0 else turn % size
                operation = variant.operation if function in REDUCTIONS else None
                for form in [variant.form] if variant.form else rank.forms_of(algorithm):
                    words = f"{function} ({algorithm}, {form}) of {variant.elements} x {variant.shape}"
                    words += f"{', in place' * variant.in_place}, root {root}, rank {rank.rank} of {size}"
                    words += f", {operation}" if operation else ""
                    case = intra_case(
                        function, rank.rank, size, variant.elements, variant.shape, root, variant.in_place, operation
                    )
                    try:
                        rank.carry_out(module, form, function, case, comm, words)
                    except Breach as breach:
                        # What is wrong only in this variant is this variant's clause's.
                        clause = breach.clause if variant.clause == "result" or breach.clause == "restart" else variant.clause
                        raise Breach(clause, breach.words) from None
    if not served and function in rank.algorithms and rank.size > 1:
        raise Breach("offer", f"the component has algorithms of {function}, and offers it to no communicator")


def about(function: str) -> Callable[[CollRank], None]:
    return lambda rank: try_function(rank, function)


EXAMINED = ("result", "bounds", "layout", "empty", "in place", "order", "forms", "restart")
for name in FUNCTIONS:
    if not name.startswith("neighbor_"):
        clauses = [it for it in EXAMINED if it != "order" or name in REDUCTIONS]
        check.checks.append(Check(name, tuple(clauses), about(name), function=name))
