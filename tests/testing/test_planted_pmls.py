"""Point-to-point layers with one fault each: the kit fails every one, and names the clause that it breaks."""

from __future__ import annotations

import pytest
from planted_table import check_clause, first_failure, some

from ompy.testing.conformance import kit

# By class of ompy_fuzz_faults: those that random programs find, and those that nothing but the kit asks about.
FAULTS = {
    "NewestMessageFirst": "order",
    "WildcardTakesTheNewest": "order",
    "NewestReceiveFirst": "posted",
    "ExactReceivesBeforeWildcards": "posted",
    "TagsModuloFour": "match",
    "SequenceNotChecked": "delivery",
    "QueueIsAStackWhenLong": "order",
    "ContextsOfDuplicatesMix": "separate",
    "MessageTwice": "delivery",
    "MessageLost": "delivery",
    "LastByteOfAFullPiece": "delivery",
    "TypesEndAtABlock": "delivery",
    "SendReadLate": "completion",
    "ReceiveCompleteEarly": "delivery",
    "CountOffByOne": "status",
    "StatusOfTheWish": "status",
    "ProbeTellsTheRoom": "probe",
    "ProbeSeesOtherTags": "probe",
    "MatchedProbeLeavesTheMessage": "mprobe",
    "SynchronousIsNot": "synchronous",
    "PersistentSendsItsFirstData": "persistent",
    "RequestResetLate": "persistent",
    "CancelAfterTheMatch": "cancel",
    "CancelLeavesTheReceive": "cancel",
    "FreeEndsWhatIsPosted": "free",
    "TruncationWritesOn": "truncation",
    "ReceivesWaitForTheLost": "loss",
    "SynchronousSendsWaitForTheLost": "loss",
    "LossEndsEveryReceive": "loss",
    "LossIsForgotten": "loss",
    "ProbesWaitForTheLost": "loss",
    "LossIsSuccess": "loss",
    "LossOfAnotherName": "loss",
    "SecondLossRaises": "loss",
    "EntersNothing": "threads",
}
SAMPLE = 4
SILENCE = 12.0


def tried(fault: str, ranks: int, seed: int) -> kit.Result | None:
    return first_failure("pml", ("faulty",), ranks, seed, SILENCE, (("pml_faulty_fault", fault),), levels=("contract", "mpi"))


@pytest.mark.long
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("fault", some(FAULTS, SAMPLE))
def test_the_kit_names_the_broken_clause(faulty, ompy_seed: int, fault: str, ranks: int) -> None:
    check_clause(tried(fault, ranks, ompy_seed), "pml", fault, FAULTS[fault], ompy_seed)


@pytest.mark.long
@pytest.mark.parametrize("ranks", [2, 3])
def test_the_layer_without_a_fault_passes(faulty, ompy_seed: int, ranks: int) -> None:
    result = tried("", ranks, ompy_seed)
    assert result is None, result


def test_the_table_has_twenty_rows_and_most_clauses() -> None:
    assert len(FAULTS) >= 20
