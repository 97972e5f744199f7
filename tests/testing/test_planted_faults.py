"""Transports with one fault each: the kit fails every one, and names the clause that it breaks."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from planted_table import check_clause, first_failure, some

from ompy.testing.conformance import clauses, kit

sys.path.insert(0, str(Path(__file__).parent / "planted"))
from ompy_btl_planted.faults import FAULTS, RANKS

SAMPLE = 6
SILENCE = 6.0


def tried(fault: str, seed: int) -> kit.Result | None:
    mca = (("btl_planted_fault", fault),) if fault else ()
    return first_failure("btl", ("planted", "self"), RANKS.get(fault, 2), seed, SILENCE, mca)


def test_the_transport_without_a_fault_passes(planted, seed: int) -> None:
    assert tried("", seed) is None


@pytest.mark.parametrize("fault", some(FAULTS, SAMPLE))
def test_the_kit_names_the_broken_clause(planted, seed: int, fault: str) -> None:
    check_clause(tried(fault, seed), "btl", fault, FAULTS[fault].clause, seed)


def test_the_table_covers_every_clause_and_has_thirty_rows() -> None:
    assert len(FAULTS) >= 30
    assert {fault.clause for fault in FAULTS.values()} == set(clauses.read("btl"))
