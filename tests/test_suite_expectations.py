"""How the outcomes of mpi4py's suite are gathered from the ranks and held against what is expected."""

from __future__ import annotations

import pytest

from ompy.testing.suite.expectations import Expectations
from ompy.testing.suite.job import Result, Setting
from ompy.testing.suite.outcomes import Outcome, Record, merge


def records(*outcomes):
    """What ranks 0, 1, ... wrote of one test: first that it was not run, then what came of it."""
    return [Record(rank, "m.C.t", outcome, "") for rank, row in enumerate(outcomes) for outcome in ("not run", *row)]


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
    assert merge(records(*outcomes), 2)["m.C.t"].kind == expected


def expectations(tmp_path, text):
    path = tmp_path / "expectations.toml"
    path.write_text(text)
    return Expectations(path)


LISTED = """
modules = ["m", "other"]
long = []
[[expect]]
tests = ["test_m.C.*"]
outcome = "skipped"
reason = "no cupy"
[[expect]]
tests = ["test_m.D.t"]
ranks = [1, 2]
outcome = "failed"
reason = "known"
"""


def surprises(listed, ranks, **outcomes):
    named = {f"test_m.{name}.t": Outcome(kind, "") for name, kind in outcomes.items()}
    return listed.surprises(Result("m", Setting(ranks, ()), named, "", "", 0.0))


def test_only_what_is_listed_may_be_other_than_passed(tmp_path):
    listed = expectations(tmp_path, LISTED)
    assert listed.modules == ["m", "other"]
    assert surprises(listed, 1, C="skipped", D="failed", E="passed") == {}
    assert surprises(listed, 3, C="skipped", D="failed") == {"test_m.D.t": "failed; expected: passed"}
    # A pass where a skip was expected is a surprise as well.
    assert surprises(listed, 3, C="passed") == {"test_m.C.t": "passed; expected: skipped, no cupy"}
    assert surprises(listed, 3, C="skipped", E="not run") == {"test_m.E.t": "not run; expected: passed"}


def test_an_entry_needs_a_reason(tmp_path):
    with pytest.raises(ValueError, match="a reason expected"):
        expectations(tmp_path, LISTED.replace('reason = "known"', ""))
