"""`ompy raw experiments`: the tables come out of the machine, the same each time."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

pytest.importorskip("matplotlib")

from ompy_raw_experiments.catalogue import experiments
from ompy_raw_experiments.command import command
from ompy_raw_experiments.experiment import within


def run(*arguments: object) -> str:
    result = CliRunner().invoke(command, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_packets_on_the_wire_have_the_lengths_of_table_4_2(tmp_path: Path) -> None:
    run("--out", tmp_path, "--only", "table_4_2")
    rows = list(csv.reader((tmp_path / "table_4_2.csv").open()))[1:]
    assert rows == [["I", "5", "26", "2", "29"], ["II", "7", "24", "3", "28"], ["III", "4", "27", "1", "30"]]
    assert (tmp_path / "table_4_2.png").read_bytes().startswith(b"\x89PNG")
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert [claim["holds"] for claim in summary] == [True] * 3
    assert {"claim", "where", "thesis", "here", "holds", "note", "experiment"} == set(summary[0])


@pytest.mark.long
def test_two_runs_give_the_same_table_to_the_byte(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        run("--out", tmp_path / folder, "--only", "figure_5_7", "--only", "table_5_1")
    for name in ("figure_5_7.csv", "table_5_1.csv", "summary.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_every_figure_from_5_2_to_5_12_is_there() -> None:
    known = experiments(full=False)
    assert {f"figure_5_{number}" for number in range(2, 13)} | {"table_4_2", "table_5_1"} <= set(known)
    assert set(known) == set(experiments(full=True))


def test_the_list_needs_no_folder() -> None:
    assert "figure_5_4" in run("--list")


def test_an_unknown_name_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    result = CliRunner().invoke(command, ["--out", str(tmp_path), "--only", "figure_9_9"])
    assert result.exit_code == 2
    assert "figure_5_4" in result.output


def test_within_is_relative_to_the_thesis() -> None:
    assert within(3.6, 3.2, 0.15)
    assert not within(3.7, 3.2, 0.15)
