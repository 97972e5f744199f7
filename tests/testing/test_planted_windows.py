"""Windows with one fault each: the kit fails every one, and names the clause that it breaks."""

from __future__ import annotations

import pytest
from planted_table import check_clause, first_failure, some

from ompy.testing.conformance import kit

# By class of ompy_fuzz_faults: those that random programs find, and those that nothing but the kit asks about.
FAULTS = {
    "FenceClosesEarly": "fence",
    "UnlockDoesNotWait": "completion",
    "ExclusiveIsShared": "locks",
    "SumReplaces": "accumulate",
    "FetchGivesTheNewValue": "fetch",
    "WaitDoesNotWait": "posts",
    "DisplacementOfTheOrigin": "put",
    "ServesOneRankLess": "choice",
    "GoesToTheNewestWindow": "open",
    "KeepsADescriptor": "free",
    "KeepsMemory": "free",
    "IsFreedWithinAnEpoch": "free",
    "FillsGapsAtTheTarget": "layout",
    "IgnoresWhatIsOutside": "bounds",
    "FetchesOneLess": "get",
    "SwapsInAnyCase": "fetch",
    "FlushesHereOnly": "completion",
    "FetchesThenAdds": "atomic",
    "LongBeforeShort": "order",
    "CompleteAtOnce": "request",
    "TakesAnyCallForAnEpoch": "epoch",
    "ReadsAfterUnlock": "isolation",
    "SharedExcludes": "locks",
    "ForgetsToDetach": "dynamic",
    "Talks": "quiet",
}
SAMPLE = 4
SILENCE = 12.0


def tried(fault: str, ranks: int, seed: int) -> kit.Result | None:
    return first_failure("osc", ("faulty", "pt2pt"), ranks, seed, SILENCE, (("osc_faulty_fault", fault),))


@pytest.mark.long
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("fault", some(FAULTS, SAMPLE))
def test_the_kit_names_the_broken_clause(faulty, ompy_seed: int, fault: str, ranks: int) -> None:
    check_clause(tried(fault, ranks, ompy_seed), "osc", fault, FAULTS[fault], ompy_seed)


@pytest.mark.long
@pytest.mark.parametrize("ranks", [2, 3])
def test_the_windows_without_a_fault_pass(faulty, ompy_seed: int, ranks: int) -> None:
    assert tried("", ranks, ompy_seed) is None
