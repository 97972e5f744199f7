"""Collectives with one fault each: the kit fails every one, and names the clause that it breaks."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from planted_table import check_clause, first_failure, some

from ompy.testing.conformance import clauses, kit

# By class of ompy_fuzz_faults: those that random programs find, and those that nothing but the kit asks about.
FAULTS = {
    "ReductionReadsAfterItAnswered": "result",
    "ScanLeavesOneOut": "result",
    "ExclusiveScanIsInclusive": "result",
    "RootIsZero": "result",
    "BlockOfTheWrongRank": "result",
    "InPlaceForgotten": "in place",
    "BarrierDoesNothing": "synchronization",
    "BarrierLetsTheRootGo": "synchronization",
    "BarrierForgetsTheLast": "synchronization",
    "BarrierOfNeighbours": "synchronization",
    "EverySecondBarrierIsEmpty": "synchronization",
    "StartedBarrierIsDone": "synchronization",
    "RootDoesNotWaitForTheReduction": "synchronization",
    "GroupsDoNotMeet": "synchronization",
    "BroadcastGoesOutLater": "buffers",
    "StartWaits": "forms",
    "PersistentSendsTheFirstDataAgain": "restart",
    "LosesTheEndOf64KiB": "sizes",
    "HalvesOfAnOddNumber": "sizes",
    "WritesBehindTheEnd": "bounds",
    "AddsInTheSendBuffer": "bounds",
    "FillsGaps": "layout",
    "RefusesNothing": "empty",
    "HighRanksFirst": "order",
    "ExtentsOf31Bits": "large",
    "GroupsAreMixedUp": "inter",
    "NewestCallGetsAll": "overlap",
    "BroadcastsAsTheProgram": "messages",
    "OffersTheLastRankLess": "offer",
    "KeepsADescriptor": "free",
    "SwallowsErrors": "failure",
    "Talks": "quiet",
}
# Authors outside made these, and a kit of before passed them.
FROM_OUTSIDE = (
    "BarrierDoesNothing",
    "BarrierLetsTheRootGo",
    "RootDoesNotWaitForTheReduction",
    "PersistentSendsTheFirstDataAgain",
    "LosesTheEndOf64KiB",
    "ExtentsOf31Bits",
)
# Two ranks do not show it.
ON_THREE_ONLY = {"ExclusiveScanIsInclusive", "BarrierOfNeighbours"}
SAMPLE = 4
SILENCE = 6.0


def tried(fault: str, ranks: int, seed: int) -> kit.Result | None:
    return first_failure("coll", ("faulty", "basic"), ranks, seed, SILENCE, (("coll_faulty_fault", fault),))


def rows(faults: Iterable[str]) -> list[tuple[str, int]]:
    return [(fault, ranks) for fault in faults for ranks in (2, 3) if ranks == 3 or fault not in ON_THREE_ONLY]


@pytest.mark.long
@pytest.mark.parametrize(("fault", "ranks"), some(rows(set(FAULTS).difference(FROM_OUTSIDE)), SAMPLE))
def test_the_kit_names_the_broken_clause(faulty, ompy_seed: int, fault: str, ranks: int) -> None:
    check_clause(tried(fault, ranks, ompy_seed), "coll", fault, FAULTS[fault], ompy_seed)


@pytest.mark.long
@pytest.mark.parametrize(("fault", "ranks"), rows(FROM_OUTSIDE))
def test_a_fault_from_outside_is_named_on_two_ranks_and_on_three(faulty, ompy_seed: int, fault: str, ranks: int) -> None:
    check_clause(tried(fault, ranks, ompy_seed), "coll", fault, FAULTS[fault], ompy_seed)


@pytest.mark.long
def test_the_collectives_without_a_fault_pass(faulty, ompy_seed: int) -> None:
    assert tried("", 2, ompy_seed) is None


def test_the_table_covers_every_clause() -> None:
    assert set(FAULTS.values()) == set(clauses.read("coll"))
