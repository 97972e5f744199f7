"""`ompy bench btl`: a transport is measured beside others."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from ompy.testing.bench import rounds, show


def test_a_transport_is_measured_beside_another_one(run, tmp_path: Path) -> None:
    plot = ["--plot", "picture.png"] if find_spec("matplotlib") else []
    done = run("-m", "ompy", "bench", "btl", "zmq", "--beside", "sm", "--rounds", "1", *plot)
    assert done.returncode == 0, done.stderr
    lines = [line.split("│") for line in done.stdout.splitlines() if "│" in line]
    words = {(line[1].strip(), line[2].strip()): [cell.strip() for cell in line[3:5]] for line in lines}
    for figure, unit in ((("latency", "8"), "s"), (("bandwidth", "1048576"), "B/s"), (("rate", "8"), "/s")):
        assert len(words[figure]) == 2
        assert all(cell.endswith(unit) for cell in words[figure]), words[figure]
    assert not plot or (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_a_transport_that_nobody_knows_is_named(run) -> None:
    done = run("-m", "ompy", "bench", "btl", "zmg")
    assert done.returncode == 2
    assert "no btl component is called zmg" in done.stderr
    assert "zmq" in done.stderr


def test_a_job_that_fails_leaves_the_others_their_figures() -> None:
    good = {"latency": {8: 2e-6}, "bandwidth": {8: 4e6}, "rate": {8: 1e6}}
    samples = [rounds.Sample("bad", {}, "it fell over"), rounds.Sample("sm", good), rounds.Sample("sm", good)]
    found = rounds.medians(samples)
    assert found == {"sm": good}
    assert show.table(found).row_count == 3
