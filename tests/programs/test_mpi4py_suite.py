"""mpi4py's own test suite: its quick form passes, and its runner notices what it should."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ompy.testing.suite import job
from ompy.testing.suite.expectations import Expectations
from ompy.testing.suite.job import Result, Setting
from ompy.testing.suite.outcomes import Outcome, Record, merge

SUITE = Path(__file__).resolve().parents[2] / "tools" / "suite"
PAIR = Setting(2, ())

EXPECTED = """
modules = ["thing"]
long = []

[[expect]]
tests = ["test_thing.T.skips"]
outcome = "skipped"
ranks = [2]
reason = "two are too few"

[[expect]]
tests = ["test_thing.T.needs*"]
outcome = "skipped"
without = "json"
reason = "never so, for json is there"
"""


@pytest.mark.long
def test_quick_form_passes() -> None:
    done = subprocess.run([sys.executable, str(SUITE), "--quick"], capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_test_has_the_worst_of_its_ranks_outcomes() -> None:
    records = [Record(rank, test, "not run", "") for rank in (0, 1) for test in "abcd"]
    records += [Record(0, "a", "passed", ""), Record(1, "a", "passed", "")]
    records += [Record(0, "b", "skipped", "why"), Record(1, "b", "passed", "")]
    records += [Record(0, "c", "failed", "at a"), Record(0, "c", "passed", ""), Record(1, "c", "skipped", "")]
    records += [Record(0, "d", "passed", ""), Record(0, "e", "passed", "")]
    merged = merge(records, 2)
    assert [merged[test].kind for test in "abcde"] == ["passed", "skipped", "failed", "not run", "not run"]
    assert (merged["b"].reason, merged["c"].reason) == ("why", "rank 0: at a")


@pytest.mark.parametrize(
    ("outcomes", "ranks", "surprising"),
    [
        ({"test_thing.T.skips": "skipped", "test_thing.T.other": "passed"}, 2, set()),
        ({"test_thing.T.skips": "skipped", "test_thing.T.other": "failed"}, 2, {"test_thing.T.other"}),
        ({"test_thing.T.skips": "skipped", "test_thing.T.other": "skipped"}, 2, {"test_thing.T.other"}),
        ({"test_thing.T.skips": "skipped", "test_thing.T.other": "not run"}, 2, {"test_thing.T.other"}),
        ({"test_thing.T.skips": "passed"}, 2, {"test_thing.T.skips"}),
        ({"test_thing.T.skips": "skipped"}, 3, {"test_thing.T.skips"}),
        ({"test_thing.T.skips": "skipped", "test_thing.T.needs_json": "skipped"}, 2, {"test_thing.T.needs_json"}),
        ({"test_thing.T.other": "passed"}, 2, {"test_thing.T.skips"}),
    ],
)
def test_what_is_not_expected_is_told(tmp_path: Path, outcomes: dict[str, str], ranks: int, surprising: set[str]) -> None:
    path = tmp_path / "expectations.toml"
    path.write_text(EXPECTED)
    found = {test: Outcome(kind, "") for test, kind in outcomes.items()}
    result = Result("thing", Setting(ranks, ()), found, "", "", 0.0)
    assert Expectations(path).surprises(result).keys() == surprising


def test_an_entry_needs_a_reason(tmp_path: Path) -> None:
    path = tmp_path / "expectations.toml"
    path.write_text('modules = []\nlong = []\n[[expect]]\ntests = ["a"]\noutcome = "failed"\n')
    with pytest.raises(ValueError, match="reason"):
        Expectations(path)


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a module test_thing, which takes the place of the suite."""
    (tmp_path / "test").mkdir()
    for name in ("sources", "installed"):
        monkeypatch.setattr(job, name, lambda: tmp_path)
    return tmp_path / "test" / "test_thing.py"


HEAD = """
import os, unittest
from mpi4py import MPI
comm = MPI.COMM_WORLD

class T(unittest.TestCase):
    def test_a(self):
        comm.barrier()

"""


def test_a_job_that_falls_silent_is_ended_with_its_state(module: Path) -> None:
    module.write_text(HEAD + "    def test_b(self):\n        comm.recv(source=1 - comm.rank, tag=37)\n")
    result = job.run("thing", PAIR, timeout=60, silence=2)
    assert {test: outcome.kind for test, outcome in result.outcomes.items()} == {
        "test_thing.T.test_a": "passed",
        "test_thing.T.test_b": "not run",
    }
    assert "nothing happened" in result.trouble
    assert "cycle of waits" in result.output
    assert " 37 " in result.output


def test_a_rank_that_dies_is_told(module: Path) -> None:
    module.write_text(HEAD + "    def test_b(self):\n        if comm.rank == 1: os.abort()\n        comm.barrier()\n")
    result = job.run("thing", PAIR, timeout=60, silence=30)
    assert result.outcomes["test_thing.T.test_b"].kind == "not run"
    assert "exited with" in result.trouble


def test_a_failure_on_one_rank_counts(module: Path) -> None:
    module.write_text(HEAD + "    def test_b(self):\n        self.assertEqual(comm.rank, 0)\n")
    result = job.run("thing", PAIR, timeout=60, silence=30)
    assert result.outcomes["test_thing.T.test_a"].kind == "passed"
    assert result.outcomes["test_thing.T.test_b"] == Outcome("failed", "rank 1: AssertionError: 1 != 0")
    assert not result.trouble


def test_another_launcher_is_told_of_the_suite_and_of_parameters(module: Path) -> None:
    module.write_text(HEAD + "    def test_b(self):\n        self.assertEqual(os.environ['OMPY_MCA_btl'], 'self,tcp')\n")
    launcher = (*job.OMPYRUN, "--oversubscribe", "-n", "{ranks}")
    result = job.run("thing", Setting(3, (("btl", "self,tcp"),), launcher), timeout=60, silence=30)
    assert {test: outcome.kind for test, outcome in result.outcomes.items()} == {
        "test_thing.T.test_a": "passed",
        "test_thing.T.test_b": "passed",
    }
    assert not result.trouble


def test_a_job_of_another_launcher_that_does_not_end_is_ended(module: Path) -> None:
    module.write_text(HEAD + "    def test_b(self):\n        comm.recv(source=1 - comm.rank, tag=37)\n")
    launcher = (*job.OMPYRUN, "--oversubscribe", "-n", "{ranks}")
    result = job.run("thing", Setting(2, (), launcher), timeout=60, silence=2)
    assert "nothing happened" in result.trouble
    assert result.outcomes["test_thing.T.test_b"].kind == "not run"
