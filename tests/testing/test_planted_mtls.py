"""Matching transports with one fault each: the kit fails every one, and names the clause that it breaks."""

from __future__ import annotations

import pytest
from planted_table import check_clause, first_failure, some

from ompy.testing.conformance import kit

# By class of ompy_fuzz_faults.mtl_faults.
FAULTS = {
    "NewestMessageFirst": "order",
    "NewestReceiveFirst": "posted",
    "ExactReceivesBeforeWildcards": "posted",
    "WildcardsTakeTheLibrarys": "match",
    "ContextsMix": "separate",
    "MessageLost": "delivery",
    "LastByteOfADatagram": "delivery",
    "SynchronousIsNot": "synchronous",
    "ReadLate": "completion",
    "WithdrawRefuses": "cancel",
    "SeenTellsMore": "probe",
    "ProbeLeavesTheMessage": "mprobe",
    "CutsWithoutAWord": "truncation",
    "StatusOfTheWish": "status",
    "FreeEndsWhatIsPosted": "free",
    "LossEndsNothing": "loss",
    "LossLeavesSynchronousSends": "loss",
    "LossEndsAllReceives": "loss",
    "LossIsASuccess": "loss",
    "LaterReceivesWait": "loss",
    "CreditComesBackWithMessages": "progress",
}
SAMPLE = 3
SILENCE = 12.0


def tried(fault: str, ranks: int, seed: int) -> kit.Result | None:
    return first_failure("mtl", ("faulty",), ranks, seed, SILENCE, (("mtl_faulty_fault", fault),))


@pytest.mark.long
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("fault", some(FAULTS, SAMPLE))
def test_the_kit_names_the_broken_clause(faulty, ompy_seed: int, fault: str, ranks: int) -> None:
    check_clause(tried(fault, ranks, ompy_seed), "mtl", fault, FAULTS[fault], ompy_seed)


@pytest.mark.long
@pytest.mark.parametrize("ranks", [2, 3])
def test_the_transport_without_a_fault_passes(faulty, ompy_seed: int, ranks: int) -> None:
    result = tried("", ranks, ompy_seed)
    assert result is None, result
