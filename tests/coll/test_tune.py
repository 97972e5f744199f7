"""`ompy tune`: what it measures, what rules it makes of times, and that coll/tuned takes them."""

from __future__ import annotations

import json
import sys
import tomllib

import pytest
from ompy_coll_tuned.algorithms import ALGORITHMS, CATALOGUE
from ompy_tune import table
from ompy_tune.ways import Way, ways


@pytest.fixture
def tune(run):
    return lambda *arguments: run("-c", "from ompy.cli.ompy import main; main()", "tune", *arguments)


def test_every_algorithm_is_among_the_ways(tmp_path):
    for function, algorithms in ALGORITHMS.items():
        for ranks in (5, 6, 8):
            found = list(ways(function, ranks))
            assert {way.algorithm for way in found} == {it.name for it in algorithms if it.serves(ranks)}
            assert [str(Way.parse(str(way))) for way in found] == [str(way) for way in found]
            assert len({str(way) for way in found}) == len(found)


def test_two_ranks_have_one_tree():
    found = {way.algorithm for way in ways("bcast", 2)}
    assert "binomial" in found
    assert not found & {"chain", "binary", "pipeline", "knomial"}


def test_the_fastest_way_of_each_size_is_chosen():
    sizes = {8: {"bruck": 1.0, "ring": 3.0}, 32: {"bruck": 1.1, "ring": 2.0}, 8192: {"bruck": 9.0, "ring": 4.0}}
    assert table.best("allgather", sizes) == {8: "bruck", 32: "bruck", 8192: "ring"}


def test_a_change_that_gains_next_to_nothing_is_not_made():
    sizes = {8: {"bruck": 1.0, "ring": 1.2}, 32: {"bruck": 1.02, "ring": 1.0}, 128: {"bruck": 1.0, "ring": 1.3}}
    assert set(table.best("allgather", sizes).values()) == {"bruck"}


def test_what_serves_now_is_no_way_of_its_own():
    sizes = {8: {"bruck": 2.0, "basic": 1.0, "auto": 1.0}}
    assert table.best("allgather", sizes) == {8: "bruck"}


def test_one_way_serves_all_sizes_where_no_rank_knows_them():
    sizes = {8: {"linear": 1.0, "pairwise": 3.0}, 8192: {"linear": 5.0, "pairwise": 4.0}}
    assert set(table.best("alltoallv", sizes).values()) == {"linear"}
    assert set(table.best("alltoall", sizes).values()) == {"linear", "pairwise"}


def test_a_way_that_only_long_messages_have_may_serve_those():
    sizes = {8: {"binomial": 1.0}, 65536: {"binomial": 9.0, "chain segmentsize=8192 chain_fanout=2": 3.0}}
    assert table.best("bcast", sizes) == {8: "binomial", 65536: "chain segmentsize=8192 chain_fanout=2"}


def test_both_forms_of_the_rules_say_the_same(tmp_path):
    times = {
        "bcast": {
            2: {8: {"binomial": 1.0}},
            4: {8: {"binomial": 1.0, "linear": 2.0}, 32768: {"binomial": 9.0, "chain segmentsize=8192 chain_fanout=2": 3.0}},
            5: {8: {"binomial": 1.0}, 32768: {"chain segmentsize=8192 chain_fanout=2": 3.0}},
        }
    }
    toml = tomllib.loads(table.as_toml(times, ["Made by a test."]))
    space: dict[str, object] = {}
    exec(table.as_python(times, ["Made by a test."]), space)
    assert toml == space["RULES"]
    assert toml == {
        "bcast": {
            "2": {"0": "binomial"},
            "4": {"0": "binomial", "512": {"algorithm": "chain", "segmentsize": "8KiB", "chain_fanout": 2}},
        }
    }
    CATALOGUE.parse(toml, "test")


def test_times_are_kept_for_the_next_run(tmp_path):
    path = tmp_path / "times.json"
    times = {"bcast": {2: {8: {"binomial": 1.0}}}}
    table.save(path, times)
    assert table.load(path) == times
    assert table.load(tmp_path / "none.json") == {}


@pytest.mark.long
def test_a_run_writes_rules_that_a_job_takes(tune, run, tmp_path):
    out, times, picture = tmp_path / "rules.toml", tmp_path / "times.json", tmp_path / "{n}.png"
    only = ("--only", "bcast", "--only", "alltoallw", "--only", "barrier")
    sizes = ("-n", "2,3", "--bytes", "8,16K", "--rounds", "1", *only, "--times", str(times))
    result = tune("--mca", "btl", "sm,self", *sizes, "-o", str(out))
    assert result.returncode == 0, result.stderr
    assert set(json.loads(times.read_text())) == {"bcast", "alltoallw", "barrier"}
    assert set(CATALOGUE.read(str(out)).tables) == {"bcast", "alltoallw", "barrier"}
    program = "from ompy import MPI; import ompy; MPI.COMM_WORLD.Barrier(); print(ompy.explain_collective('bcast', 8))"
    options = ("--mca", "coll", "tuned,basic", "--mca", "coll_tuned_dynamic_rules_filename", str(out))
    said = run("-m", "ompy.cli.ompyrun", "-n", "3", *options, sys.executable, "-c", program)
    assert said.returncode == 0, said.stderr
    assert "rules.toml" in said.stdout
    pytest.importorskip("matplotlib")
    assert tune(*sizes, "--picture", str(picture)).returncode == 0
    assert (tmp_path / "3.png").stat().st_size > 1000


@pytest.mark.long
def test_a_later_run_measures_what_the_times_lack_alone(tune, tmp_path):
    times = tmp_path / "times.json"

    def measured(*sizes):
        done = tune(
            "-n",
            "2",
            "--rounds",
            "1",
            "--only",
            "bcast",
            "--only",
            "barrier",
            "--times",
            str(times),
            "--bytes",
            ",".join(sizes),
        )
        assert done.returncode == 0, done.stderr
        return json.loads(times.read_text())

    first = measured("8", "64")
    second = measured("8", "16", "64")
    assert list(second["bcast"]["2"]) == ["8", "16", "64"]
    assert {size: second["bcast"]["2"][size] for size in ("8", "64")} == first["bcast"]["2"]
    assert second["barrier"] == first["barrier"]
    assert measured("8", "16") == second


@pytest.mark.parametrize("text", ["garbage", "[]", "1", '{"bcast": {"2": 5}}', '{"bcast": {"x": {}}}'])
def test_a_file_that_holds_no_times_is_said_to_be_none(tune, tmp_path, text):
    times = tmp_path / "times.json"
    times.write_text(text)
    done = tune("-n", "2", "--only", "barrier", "--times", str(times))
    assert done.returncode == 2
    assert "holds no times of `ompy tune`" in done.stderr.replace("\n", " ")
    assert times.read_text() == text


def test_functions_that_were_measured_at_one_size_are_drawn_where_there_is_nothing_else(tmp_path):
    pytest.importorskip("matplotlib")
    from ompy_tune import picture

    picture.draw(tmp_path / "one.png", {"bcast": {2: {8: {"linear": 1e-6, "binomial": 2e-6}}}}, 2, "one size")
    assert (tmp_path / "one.png").stat().st_size > 1000


def test_a_comparison_shows_ratios_for_each_function_and_size(tune):
    result = tune("--compare", "-n", "2", "--bytes", "8,1K", "--rounds", "1", "--only", "allreduce")
    assert result.returncode == 0, result.stderr
    (row,) = [line for line in result.stdout.splitlines() if "allreduce" in line]
    assert len([word for word in row.replace("│", " ").split() if word.replace(".", "").isdigit()]) == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--only", "bcats", "-o", "x"], "no such function"),
        (["-n", "1", "-o", "x"], "one rank has nothing to choose"),
        (["--bytes", "8,many", "-o", "x"], "'MANY' is no number of bytes"),
        ([], "where to: -o FILE"),
    ],
)
def test_arguments_that_make_no_sense_are_refused_with_words(tune, arguments, words):
    result = tune(*arguments)
    assert result.returncode == 2
    assert words in " ".join(result.stderr.split())
