"""What tests of planted faults share: which rows of a table are tried, what the kit finds, and whether it says it rightly."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from typing import TypeVar

from ompy.testing.conformance import clauses, kit
from ompy.testing.conformance.check import FAILED
from ompy.testing.conformance.job import Order

Row = TypeVar("Row", str, tuple[str, int], tuple[str, str])

# Tables are tried whole when this is set.
EVERYTHING = bool(os.environ.get("OMPY_TEST_CONFORMANCE"))
# A fault in one of these is met by whichever call of a random sequence comes first: a message that was matched wrongly is one
# that a probe sees, a receive waits for in vain, or a cancelled receive has taken;
MATCHING = frozenset({"separate", "match", "order", "posted", "unexpected", "probe", "mprobe", "cancel", "delivery"})
# or it shows by what it is: too long, synchronous, of a size that the receive's memory or status does not tell.
SHOWN_BY = MATCHING | {"truncation", "object", "status", "synchronous"}


def some(rows: Iterable[Row], count: int) -> list[Row]:
    """Some rows of a table, the same in each run; or all of it."""
    every = sorted(rows)
    return every if EVERYTHING else sorted(random.Random(len(every)).sample(every, count))


def first_failure(
    framework: str,
    names: tuple[str, ...],
    ranks: int,
    seed: int,
    silence: float,
    mca: tuple[tuple[str, str], ...] = (),
    levels: tuple[str, ...] = ("contract",),
) -> kit.Result | None:
    """What the kit first finds wrong with a component; None: nothing."""
    for level in levels:
        order = Order(framework, names, level, ranks, mca, seed, silence, {})
        *_, last = kit.run(order, kit.selected(framework, level), exitfirst=True)
        if last.outcome.word == FAILED:
            return last
    return None


def check_clause(result: kit.Result | None, framework: str, fault: str, clause: str, seed: int) -> None:
    """The fault was found, under its clause, and there is a command that shows it again."""
    assert result is not None, f"the kit finds nothing wrong with {fault}"
    found = result.outcome.clause
    by_another_call = framework in ("pml", "mtl", "rpi") and clause in MATCHING and found in SHOWN_BY
    assert found == clause or by_another_call, f"{fault}: {result.check.name}: {result.outcome}"
    assert str(result.clause) == str(clauses.read(framework)[found])
    assert f"--seed {seed}" in result.command
