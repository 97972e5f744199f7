"""How the outcomes of mpi4py's suite are gathered from the ranks and held against what is expected."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools" / "suite"))

from expectations import Expectations
from outcomes import merge


def records(*outcomes, test="m.C.t"):
    """What ranks 0, 1, ... wrote of one test."""
    return [
        {"rank": rank, "test": test, "outcome": outcome, "reason": f"on {rank}"}
        for rank, row in enumerate(outcomes)
        for outcome in ("not run", *row)
    ]


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ((["passed"], ["passed"]), "passed"),
        ((["passed"], ["skipped"]), "skipped"),
        ((["skipped"], ["failed"]), "failed"),
        ((["passed"], []), "not run"),
        # A test fails by one of its parts, whatever is said of the whole afterwards.
        ((["failed", "passed"], ["passed"]), "failed"),
        ((["passed"],), "not run"),
    ],
)
def test_a_test_has_the_worst_outcome_of_its_ranks(outcomes, expected):
    assert merge(records(*outcomes), 2)["m.C.t"][0] == expected


def expectations(tmp_path, text):
    path = tmp_path / "expectations.txt"
    path.write_text(text)
    return Expectations(path)


def test_only_what_is_listed_may_be_other_than_passed(tmp_path):
    listed = expectations(tmp_path, "modules a b\nskipped m.C.* : no cupy\nfailed m.D.t n=1,2 : known\n")
    assert listed.modules == ["a", "b"]
    assert listed.surprises({"m.C.t": ("skipped", ""), "m.D.t": ("failed", ""), "m.E.t": ("passed", "")}, 1) == []
    assert listed.surprises({"m.D.t": ("failed", "")}, 3) == ["m.D.t: failed, expected passed"]
    # A pass where a skip was expected is a surprise as well.
    assert listed.surprises({"m.C.t": ("passed", "")}, 1) == ["m.C.t: passed, expected skipped (no cupy)"]
    assert listed.surprises({"m.E.t": ("not run", "")}, 1) == ["m.E.t: not run, expected passed"]


@pytest.mark.parametrize("line", ["skipped m.C.t", "skipped m.C.t : ", "skipped : why"])
def test_an_entry_needs_a_reason(tmp_path, line):
    with pytest.raises(ValueError, match="line 1"):
        expectations(tmp_path, line + "\n")
