"""`ompy raw view` on records of runs."""

from __future__ import annotations

import contextlib

import pytest
from click.testing import CliRunner
from ompy_raw.chip import Chip
from ompy_raw.errors import Deadlock
from ompy_raw.script import Script, read, send
from ompy_raw.trace import save
from ompy_raw.view import command

PNG = b"\x89PNG"


def record(path, length):
    """Two tiles that send first: a run that ends well up to 8 words, and not beyond."""

    def program(other):
        yield send(other, range(length))
        yield read(length)

    script = Script(Chip(2, 2, most_crossings=20, most_samples=64))
    script.add(0, program(1))
    script.add(1, program(0))
    with contextlib.suppress(Deadlock):
        script.run()
    save(script.chip, str(path), 425e6)
    return script.chip


def test_a_run_is_told_in_words_and_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    chip = record(tmp_path / "run.json", 8)
    done = CliRunner().invoke(command, [str(tmp_path / "run.json"), "--out", str(tmp_path / "picture.png"), "--words"])
    assert done.exit_code == 0, done.output
    assert f"2 x 2 tiles, {chip.now} simulated cycles" in done.output
    assert "18 words over links" in done.output
    assert f"link 0→1: {9 / chip.now:.3f} words a cycle" in done.output
    assert "of 36 words on wires the first 20 are kept" in done.output
    assert "08000001" in done.output  # tile 0's header
    assert (tmp_path / "picture.png").read_bytes().startswith(PNG)


def test_a_deadlocked_state_is_told_and_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    record(tmp_path / "run.json", 9)
    done = CliRunner().invoke(command, [str(tmp_path / "run.json")])
    assert done.exit_code == 0, done.output
    assert "tile 0 at (0, 0) is stalled writing, 9 of 10 words written" in done.output
    assert (tmp_path / "run.png").read_bytes().startswith(PNG)


def test_another_file_is_refused(tmp_path):
    (tmp_path / "run.json").write_text("{}")
    done = CliRunner().invoke(command, [str(tmp_path / "run.json")])
    assert done.exit_code == 1
    assert "is no trace of the Raw chip" in done.output
