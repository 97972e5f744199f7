"""Components for files with a fault each: the kit fails each, and names the clause that it breaks."""

from __future__ import annotations

import pytest
from planted_table import check_clause, first_failure, some

from ompy.testing.conformance import kit

# By class of ompy_fuzz_faults.
FAULTS = {
    "MakesAlways": "open",
    "AppendsAtTheStart": "open",
    "KeepsTheFile": "close",
    "EmptiesAtClose": "close",
    "KeepsADescriptor": "free",
    "PadsReads": "bytes",
    "WritesOneMore": "bounds",
    "PointerByBytes": "pointer",
    "OffsetsMoveThePointer": "pointer",
    "SeeksInBytes": "pointer",
    "SeeksBeforeTheStart": "pointer",
    "RequestsMoveNoPointer": "pointer",
    "SharedIsEachOnesOwn": "shared",
    "NotInRankOrder": "shared",
    "RequestsBeginWithTheNext": "forms",
    "ProblemsRaise": "collective",
    "FarOffsetsRaise": "collective",
    "ViewsStay": "view",
    "AnyEtypes": "view",
    "PreallocateCuts": "size",
    "NeverCuts": "size",
    "AtomicWithoutLocks": "atomic",
    "NeverAtomic": "atomic",
    "ErrorsWithoutName": "errors",
}
SAMPLE = 2
SILENCE = 12.0


def tried(fault: str, ranks: int, seed: int) -> kit.Result | None:
    return first_failure("io", ("faulty",), ranks, seed, SILENCE, (("io_faulty_fault", fault),))


@pytest.mark.long
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("fault", some(FAULTS, SAMPLE))
def test_the_kit_names_the_broken_clause(faulty, ompy_seed: int, fault: str, ranks: int) -> None:
    check_clause(tried(fault, ranks, ompy_seed), "io", fault, FAULTS[fault], ompy_seed)


@pytest.mark.long
@pytest.mark.parametrize("ranks", [2, 3])
def test_what_has_no_fault_passes(faulty, ompy_seed: int, ranks: int) -> None:
    result = tried("", ranks, ompy_seed)
    assert result is None, result
