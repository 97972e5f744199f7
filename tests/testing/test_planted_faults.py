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
# Authors of transports outside made these, and a kit of before passed most of them, or named another clause.
FROM_OUTSIDE = (
    "OvertakesLongOnes",
    "CreditsThatDoNotReturn",
    "SaysThatTheDeadHaveReceived",
    "LeavesAFifo",
    "LeavesAFileOfItsNumber",
    "KeepsWhatItRefused",
    "LosesEmptyMessagesOfTheLastTag",
    "CallsBackTwiceOfTheDead",
    "LearnsOfADeathByAConnection",
    "HoldsTheLastMessagesBack",
    "DeliversInSend",
    "GivesTheOldEndpoint",
    "StatisticsOfNothing",
    "StarvesThePeersBehindTheFirst",
    "RaisesOfTheDead",
    "BlocksInSend",
    "ReusesTheBufferOfAReceiverThatRaised",
    "ChildEmptiesTheSharedEpoll",
    "RefusesForEverAfterAWrap",
)


def tried(fault: str, ranks: int, seed: int) -> kit.Result | None:
    mca = (("btl_planted_fault", fault),) if fault else ()
    return first_failure("btl", ("planted", "self"), ranks, seed, SILENCE, mca)


def test_the_transport_without_a_fault_passes(planted, seed: int) -> None:
    assert tried("", 2, seed) is None


@pytest.mark.parametrize("fault", some(set(FAULTS).difference(FROM_OUTSIDE), SAMPLE))
def test_the_kit_names_the_broken_clause(planted, seed: int, fault: str) -> None:
    check_clause(tried(fault, RANKS.get(fault, 2), seed), "btl", fault, FAULTS[fault].clause, seed)


@pytest.mark.long
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("fault", FROM_OUTSIDE)
def test_a_fault_from_outside_is_named_on_two_ranks_and_on_three(planted, seed: int, fault: str, ranks: int) -> None:
    if ranks >= RANKS.get(fault, 2):
        check_clause(tried(fault, ranks, seed), "btl", fault, FAULTS[fault].clause, seed)


def test_the_table_covers_every_clause_and_has_thirty_rows() -> None:
    assert len(FAULTS) >= 30
    assert {fault.clause for fault in FAULTS.values()} == set(clauses.read("btl"))
