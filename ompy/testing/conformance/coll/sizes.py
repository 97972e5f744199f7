"""Blocks of every size at which a component may take another way, and those next to it."""

from __future__ import annotations

from typing import Any

from ompy.testing.conformance.check import Breach, Collection
from ompy.testing.conformance.coll.calls import FIRST, NUMBERS, PLAIN, REDUCTIONS, SUM, intra_case
from ompy.testing.conformance.coll.rank import AUTO, CollRank

check = Collection()

WIDTH = PLAIN.typemap.size
# Bytes of a block: where components switch by themselves is mostly at a power of two.
POWERS = [1 << power for power in range(2, 20)]
# Of the memory of one side of a rank's call: where the component chooses the algorithm, up to a switch point that it declares,
# and where an algorithm is forced.
MOST_BYTES, DECLARED_BYTES, FEWER_BYTES = 1 << 19, 1 << 22, 1 << 14
# The functions in which each rank has a block of each other one.
BY_PEER = ("alltoall", "alltoallv", "alltoallw", "reduce_scatter", "reduce_scatter_block", "gather", "gatherv", "scatter",
           "scatterv", "allgather", "allgatherv")  # fmt: skip


def switch_points(rank: CollRank, function: str, algorithm: str) -> list[int]:
    """Elements of a block at which another way may begin."""
    declared: Any = rank.loaded.component.capabilities.get("switch_points", ())
    most, declared_most = (MOST_BYTES, DECLARED_BYTES) if algorithm == AUTO else (FEWER_BYTES, 0)
    blocks = rank.size if function in BY_PEER else 1
    points = {point for point in POWERS if point * blocks <= most}
    points |= {point for point in declared if point * blocks <= declared_most}
    return sorted(point // WIDTH for point in points)


@check("sizes", "result")
def results_are_right_on_both_sides_of_every_switch(rank: CollRank) -> None:
    """At each point in every form, next to it in one."""
    comm = rank.groups[rank.size]
    for function in rank.functions:
        if function == "barrier":
            continue
        for algorithm, module in rank.serving(comm, function):
            dice = rank.common_random(f"{function} {algorithm}")
            for point in switch_points(rank, function, algorithm):
                root = dice.randrange(rank.size)
                operation = dice.choice((SUM, FIRST)) if function in REDUCTIONS else None
                for count in (point - 1, point, point + 1):
                    rank.alive()
                    case = intra_case(function, rank.rank, rank.size, count, PLAIN, root, False, operation)
                    for form in rank.forms_of(algorithm) if count == point else [dice.choice(rank.forms)]:
                        rank.alive()
                        words = f"{function} ({algorithm}, {form}) of {count * WIDTH} bytes, root {root}, rank {rank.rank}"
                        case.again()
                        rank.complete(module, form, NUMBERS[function], case.call, comm)
                        try:
                            case.check(words)
                        except Breach as breach:
                            raise Breach("sizes" if breach.clause == "result" else breach.clause, breach.words) from None
