"""`tools/clients`: what it makes of the words of ranks, rounds and libraries."""

from __future__ import annotations

import importlib
import itertools
import json
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import psutil
import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "clients"
OWN = ("client", "environment", "trial", "results", "page", "turns", "comparison")


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch):
    """Modules of the tool, by name."""

    def module(name: str) -> ModuleType:
        return importlib.import_module(name)

    monkeypatch.syspath_prepend(str(TOOL))
    yield module
    for name in OWN:
        sys.modules.pop(name, None)


def outcome(tool, words: dict[str, str], seconds: float = 1.0):
    return tool("trial").Outcome(words, seconds, seconds / 2, "")


def test_every_client_says_what_is_run_of_it(tool) -> None:
    clients = tool("client").read()
    assert len(clients) >= 12
    for client in clients.values():
        assert client.about
        assert client.tests
        assert all(bool(trial.pytest) != bool(trial.programs) for trial in client.trials), client.name
        assert len({trial.ranks for trial in client.trials}) == len(client.trials), f"{client.name}: results go by ranks"
        assert client.source or (TOOL / client.folder).is_dir()
    assert any(client.quick for client in clients.values())


def test_a_test_has_the_worst_word_of_its_ranks(tool, tmp_path: Path) -> None:
    (tmp_path / "0.tests").write_text("begun\ta\npassed\ta\nbegun\tb\nskipped\tb\nbegun\tc\npassed\tc\n")
    (tmp_path / "1.tests").write_text("begun\ta\nfailed\ta\nbegun\tb\npassed\tb\nbegun\tc\n")
    assert tool("trial").told(tmp_path) == {"a": "failed", "b": "skipped", "c": "failed"}


def test_ranks_write_their_words_down_though_tests_fail(tool, tmp_path: Path) -> None:
    (tmp_path / "test_sample.py").write_text(
        "import os, pytest\ndef test_good(): pass\ndef test_bad(): assert os.environ['PMI_RANK'] == '0'\n"
        "def test_skipped(): pytest.skip('no')\n@pytest.mark.xfail\ndef test_expected(): assert 0\n"
    )
    command = [sys.executable, "-m", "ompy.cli.ompyrun", "-n", "2", sys.executable, TOOL / "rank_tests.py", tmp_path]
    done = subprocess.run([*command, tmp_path / "test_sample.py"], capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    words = {name.rpartition("::")[2]: word for name, word in tool("trial").told(tmp_path).items()}
    assert words == {"test_good": "passed", "test_bad": "failed", "test_skipped": "skipped", "test_expected": "passed"}


def test_one_failure_in_any_round_counts_and_the_median_time(tool) -> None:
    rounds = [outcome(tool, {"a": "passed", "b": word, "c": "skipped"}, seconds) for word, seconds in
              (("passed", 9.0), ("failed", 1.0), ("passed", 2.0))]  # fmt: skip
    summary = tool("results").summary(rounds)
    assert (summary["passed"], summary["skipped"], summary["failed"]) == (1, 1, ["b"])
    assert (summary["seconds"], summary["cpu_seconds"]) == (2.0, 1.0)


def test_of_a_test_that_asks_the_clock_the_best_round_counts(tool) -> None:
    rounds = [outcome(tool, {"x.py::clocked": word, "x.py::late": "failed"}) for word in ("failed", "passed")]
    assert tool("results").summary(rounds, ["clocked", "late"])["failed"] == ["x.py::late"]


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ([10.0, 11.0, 12.0], [11.5, 12.5, 10.5], True),
        ([10.0, 11.0, 12.0], [20.0, 22.0, 24.0], False),
        ([10.0, 10.0, 14.0], [10.5, 10.5, 10.5], True),
        ([10.0, 14.0, 18.0], [12.0, 12.0, 12.0], True),
        ([10.0], [11.5], False),
    ],
)
def test_times_that_are_nearer_than_runs_may_be_are_near(tool, ours, theirs, expected) -> None:
    first, second = ([outcome(tool, {}, seconds) for seconds in times] for times in (ours, theirs))
    assert tool("results").is_near(first, second) is expected


def test_what_waits_does_not_compute(tool) -> None:
    # Half a CPU second a second, in these.
    rounds = [outcome(tool, {}, seconds) for seconds in (1.0, 2.0, 3.0)]
    assert not tool("results").computes(rounds, 1)
    busy = [each._replace(cpu_seconds=1.7 * each.seconds) for each in rounds]
    assert tool("results").computes(busy, 1)
    assert tool("results").computes(busy, 2)
    assert not tool("results").computes(busy, 3)


def test_times_in_turns_count_instead_of_those_of_rounds_and_failures_in_them_as_well(tool) -> None:
    rounds = [outcome(tool, {"a": "passed", "b": "passed"}, seconds) for seconds in (1.0, 2.0, 3.0)]
    in_turns = [
        outcome(tool, {"a": "passed", "b": word}, seconds)
        for word, seconds in (("passed", 7.0), ("failed", 5.0), ("passed", 6.0))
    ]
    summary = tool("results").summary(rounds, in_turns=in_turns)
    assert (summary["seconds"], summary["cpu_seconds"], summary["passed"], summary["failed"]) == (6.0, 3.0, 1, ["b"])


def test_libraries_in_turns_run_to_the_end_and_never_at_once(tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    turns = tool("turns")

    def work(client, trial, environment, library):
        """Writes its name for as long as it has a processor; the child that does is to be stopped with it."""
        program = (
            "import sys, time\nwith open(sys.argv[1], 'a', buffering=1) as file:\n"
            "    end = time.process_time() + 0.3\n    while time.process_time() < end: print(sys.argv[2], file=file)"
        )
        subprocess.run([sys.executable, "-c", program, tmp_path / "turns", library], check=True)
        # More than a pipe holds, for one that looks only now and then.
        return outcome(tool, {f"{library} {number}": "passed" for number in range(20_000)})

    monkeypatch.setattr(turns, "run", work)
    monkeypatch.setattr(turns, "FIRST", 0.1)
    monkeypatch.setattr(turns, "TURN", 0.05)
    taken = []
    has_a_turn = turns.Contestant.has_a_turn
    monkeypatch.setattr(turns.Contestant, "has_a_turn", lambda it: taken.append(it.library) or has_a_turn(it))
    trial = tool("client").Trial(1, [], [["x.py"]], 10)
    outcomes = turns.run_in_turns(None, trial, {"one": None, "other": None})
    assert {library: found.count("passed") for library, found in outcomes.items()} == {"one": 20_000, "other": 20_000}
    assert all(f"{library} 19999" in found.tests for library, found in outcomes.items())
    assert min(found.seconds for found in outcomes.values()) >= 0.3
    stretches = [name for name, _ in itertools.groupby((tmp_path / "turns").read_text().split())]
    assert 2 < len(stretches) <= len(taken)


@pytest.mark.parametrize(
    ("theirs", "rounds", "in_turns"),
    [
        ([20.0, 20.0, 20.0], 3, 0),
        ([10.5, 0.0, 0.0], 1, 3),
        ([20.0, 10.5, 10.5], 3, 3),
        ([20.0, 20.0, 10.5], 3, 0),
        ([13.0, 7.0, 0.0], 2, 3),
    ],
)
def test_a_row_goes_on_in_turns_from_when_it_turns_out_to_be_near(tool, monkeypatch, theirs, rounds, in_turns) -> None:
    comparison = tool("comparison")
    times = {"ompy": iter([10.0] * 3), "Open MPI": iter(theirs)}
    busy = {"a": "passed"}

    def run(client, trial, place, library):
        return outcome(tool, busy, seconds := next(times[library]))._replace(cpu_seconds=seconds)

    def run_in_turns(client, trial, places):
        return {library: outcome(tool, busy, {"ompy": 1.0, "Open MPI": 2.0}[library]) for library in places}

    monkeypatch.setattr(comparison, "run", run)
    monkeypatch.setattr(comparison, "run_in_turns", run_in_turns)
    client, trial = tool("client").read()["emcee"], tool("client").Trial(1, [], [["x.py"]], 10)
    found = comparison.measure(client, trial, {"ompy": None, "Open MPI": None}, 3, comparison.Console())
    assert [(it["rounds"], it["in_turns"]) for it in found.values()] == [(rounds, in_turns)] * 2
    if in_turns:
        assert [it["seconds"] for it in found.values()] == [1.0, 2.0]


def test_a_failure_in_turns_is_told_and_leaves_nothing_behind(tool, monkeypatch: pytest.MonkeyPatch) -> None:
    turns = tool("turns")

    def work(client, trial, environment, library) -> None:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        subprocess.run(["sleep", "60"] if library == "one" else ["false"], check=True)

    monkeypatch.setattr(turns, "run", work)
    monkeypatch.setattr(turns, "FIRST", 0.3)
    trial = tool("client").Trial(1, [], [["x.py"]], 10)
    others = set(psutil.Process().children(recursive=True))
    with pytest.raises(RuntimeError, match="the run over other ended with exit status 1"):
        turns.run_in_turns(None, trial, {"one": None, "other": None})
    assert others >= set(psutil.Process().children(recursive=True))


def test_what_was_measured_again_takes_the_place_of_what_was(tool, tmp_path: Path) -> None:
    results = tool("results")
    path = tmp_path / "results.json"
    results.merge({"x 2 3.11": {"ompy": {"passed": 1}, "Open MPI": {"passed": 2}}, "y 2 3.11": {"ompy": {"passed": 3}}}, path)
    results.merge({"x 2 3.11": {"ompy": {"passed": 4}}}, path)
    kept = json.loads(path.read_text())
    assert kept == {"x 2 3.11": {"ompy": {"passed": 4}, "Open MPI": {"passed": 2}}, "y 2 3.11": {"ompy": {"passed": 3}}}


def test_being_behind_is_said(tool) -> None:
    results = tool("results")
    good = results.summary([outcome(tool, {"a": "passed", "b": "passed"}, 10.0)])
    failing = results.summary([outcome(tool, {"a": "passed", "b": "failed"}, 10.0)])
    slow = results.summary([outcome(tool, {"a": "passed", "b": "passed"}, 20.0)])
    fewer = results.summary([outcome(tool, {"a": "passed"}, 10.0)])
    assert results.verdict({"ompy": good, "Open MPI": slow}) == []
    assert results.verdict({"ompy": failing, "Open MPI": failing}) == []
    assert results.verdict({"ompy": failing, "Open MPI": good}) == ["1 fails here only"]
    assert results.verdict({"ompy": fewer, "Open MPI": good}) == ["1 fewer pass"]
    assert results.verdict({"ompy": slow, "Open MPI": good}) == ["2.00 times the time"]
    assert results.verdict({"ompy": good}) == ["one library only"]


def test_the_page_has_a_row_for_each_result(tool) -> None:
    clients = tool("client").read()
    summary = tool("results").summary([outcome(tool, {"a": "passed", "b": "failed"}, 12.34)])
    kept = {"mpi4py-fft 4 3.11": {"ompy": summary, "Open MPI": summary}, "mpi4py-fft 4 3.13": {"ompy": summary}}
    text = tool("page").text(clients, kept)
    assert "| mpi4py-fft | 3.11 | 4 | 1, 0, 1 | 1, 0, 1 | 12.3 | 12.3 | 6.2 | 6.2 |  |" in text
    assert "| mpi4py-fft | 3.13 | 4 | 1, 0, 1 |  | 12.3 |  | 6.2 |  | one library only |" in text
    assert "Not measured yet: mpi4py-demos" in text


def test_the_page_stars_seconds_in_turns(tool) -> None:
    summary = tool("results").summary([outcome(tool, {"a": "passed"}, 12.34)], in_turns=[outcome(tool, {"a": "passed"}, 11.0)])
    text = tool("page").text(tool("client").read(), {"mpi4py-fft 4 3.11": {"ompy": summary, "Open MPI": summary}})
    assert "| mpi4py-fft | 3.11 | 4 | 1, 0, 0 | 1, 0, 0 | 11.0* | 11.0* | 5.5 | 5.5 |  |" in text


def test_a_name_that_is_none_is_answered_with_those_that_are() -> None:
    done = subprocess.run([sys.executable, str(TOOL), "telepathy"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "known: mpi4py-demos" in done.stderr
