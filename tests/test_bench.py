"""`tools/bench` itself, on ompy alone: every kind of row is measured, shown and written down."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parent.parent / "tools" / "bench"
ROWS = (
    "latency:8@",
    "window:8:64@4",
    "column:512@2",
    "barrier:0@2",
    "rma_put_allocate:8@2",
    "rma_pscw_create:8@2",
    "start_up@1",
    "resident@2",
    "sockets:8@2",
    "sockets_window:65536",
    "file_plain_write_shared:8@2",
    "file_interleaved_write:4096@2",
)
PAGE = "Before.\n\n<!-- begin of the last run -->\nold figures\n<!-- end of the last run -->\n\nAfter.\n"


def run(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCH), "--rounds", "1", "--only", "ompy", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.long
def test_a_quick_run_fills_every_kind_of_row(tmp_path):
    page, figures = tmp_path / "page.md", tmp_path / "figures.json"
    page.write_text(PAGE)
    chosen = [option for row in ROWS for option in ("--rows", row)]
    can_draw = find_spec("matplotlib") is not None
    pictures = ("--plot", str(tmp_path)) if can_draw else ()
    done = run(*chosen, "--json", str(figures), "--markdown", str(page), *pictures)
    assert done.returncode == 0, done.stderr
    found = json.loads(figures.read_text())
    for row in ROWS:
        assert any(name.startswith(row) for name in found), (row, list(found))
    for name, libraries in found.items():
        by_hand = {"ompy by hand"} if name.startswith("file_interleaved") else set()
        assert set(libraries) == ({"btl/zmq", "pyzmq"} if name.startswith("sockets") else {"ompy"} | by_hand), name
        for rounds in libraries.values():
            # Some interpreters take less memory beside ranks than alone, but no operation takes no time.
            assert name.startswith("resident") or 0 < rounds[0]["median"] <= rounds[0]["late"], (name, rounds)
    assert found["latency:8@4"]["ompy"][0]["cpu"] > 0
    text = page.read_text()
    assert text.startswith("Before.")
    assert text.endswith("After.\n")
    assert "old figures" not in text
    assert all(f"| {name} |" in text for name in found)
    assert not can_draw or (tmp_path / "latency.png").stat().st_size > 0


def test_rows_and_libraries_that_are_not_there_are_named():
    assert "no row begins with nothing" in run("--rows", "nothing").stderr
    assert "Somebody: one of ompy, Open MPI" in run("--only", "Somebody").stderr


def test_what_does_not_end_is_told_and_keeps_what_it_had(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    from libraries import library

    program, told = tmp_path / "endless.py", str(tmp_path / "told")
    os.mkfifo(told)
    program.write_text(f"import time\nprint('{{}}', flush=True)\nopen({told!r}, 'w').close()\ntime.sleep(1000)\n")
    communicate = subprocess.Popen.communicate

    def once_it_has_printed(started, **options):
        with open(told) as fifo:
            fifo.read()
        monkeypatch.undo()
        return communicate(started, **options)

    monkeypatch.setattr(subprocess.Popen, "communicate", once_it_has_printed)
    printed = library("ompy").run(1, str(program), timeout=1)
    assert printed.lines == ["{}"]
    assert printed.failure == "not within 1 s"


@pytest.mark.long
def test_a_tree_is_measured_beside_another_one(tmp_path):
    figures = tmp_path / "figures.json"
    (tmp_path / ".venv").symlink_to(sys.prefix)
    options = ["--rounds", "1", "--rows", "latency:8@2", "--before", str(tmp_path), "--json", str(figures)]
    done = subprocess.run([sys.executable, str(BENCH), *options], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(figures.read_text())
    assert set(found["latency:8@2"]) == {"ompy", "before"}
    assert "times what it was" in done.stdout or "no row is slower" in done.stdout


def test_rows_that_take_longer_than_before_are_told(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    from figures import Figures, Round
    from table import slower

    figures = Figures()
    for name, now in (("much@2", [1.1, 1.2, 0.9]), ("little@2", [1.02, 1.02, 1.2]), ("less@2", [0.5, 0.5, 0.5])):
        for seconds in now:
            figures.row(name).add("ompy", Round.of([seconds]))
            figures.row(name).add("before", Round.of([1.0]))
    figures.row("new@2").add("ompy", Round.of([1.0]))
    assert slower(figures, 0.03) == ["much@2: 1.10 times what it was"]


def test_a_tree_that_is_none_is_refused(tmp_path):
    assert "no --hosts and no --only beside it" in run("--before", str(tmp_path)).stderr
    done = subprocess.run([sys.executable, str(BENCH), "--before", str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no tree that tools/setup has set up" in " ".join(done.stderr.split())
