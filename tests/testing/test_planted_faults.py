"""Transports with one fault each: the kit fails every one, and names the clause that it breaks."""

from __future__ import annotations

import os
import random
import sys
from datetime import date
from pathlib import Path

import pytest

from ompy.testing.conformance import clauses, kit
from ompy.testing.conformance.check import FAILED
from ompy.testing.conformance.job import Order

sys.path.insert(0, str(Path(__file__).parent / "planted"))
from ompy_btl_planted.faults import FAULTS, RANKS

# Some of the table, other ones each day; all of it when this is set.
EVERYTHING = bool(os.environ.get("OMPY_TEST_CONFORMANCE"))
SAMPLE = 10
SILENCE = 6.0


def first_failure(fault: str, seed: int) -> kit.Result | None:
    others = (("btl_planted_fault", fault),) if fault else ()
    order = Order("btl", ("planted", "self"), "contract", RANKS.get(fault, 2), others, seed, SILENCE, {})
    results = list(kit.run(order, kit.selected("btl", "contract"), exitfirst=True))
    return results[-1] if results[-1].outcome.word == FAILED else None


def chosen() -> list[str]:
    names = sorted(FAULTS)
    return names if EVERYTHING else sorted(random.Random(date.today().toordinal()).sample(names, SAMPLE))


def test_the_transport_without_a_fault_passes(planted, seed: int) -> None:
    assert first_failure("", seed) is None


@pytest.mark.parametrize("fault", chosen())
def test_the_kit_names_the_broken_clause(planted, seed: int, fault: str) -> None:
    result = first_failure(fault, seed)
    assert result is not None, f"the kit finds nothing wrong with {fault}"
    expected = FAULTS[fault].clause
    assert result.outcome.clause == expected, f"{fault}: {result.check.name}: {result.outcome}"
    assert str(result.clause) == str(clauses.read("btl")[expected])
    assert f"--seed {seed}" in result.command


def test_the_table_covers_every_clause_and_has_thirty_rows() -> None:
    assert len(FAULTS) >= 30
    assert {fault.clause for fault in FAULTS.values()} == set(clauses.read("btl"))
