"""coll/tuned's decisions: by rules from measurement, from a file or by name, the same on every rank."""

from __future__ import annotations

import subprocess
import sys

import pytest
from in_memory import InMemoryPml, finish, intra
from ompy_coll_tuned.algorithms import ALGORITHMS, CATALOGUE
from ompy_coll_tuned.component import COMPONENT
from ompy_coll_tuned.module import TunedModule
from ompy_coll_tuned.settings import TunedSettings, built_in

from ompy.mca import pml
from ompy.mca.errors import ParameterError
from ompy.testing.conformance.coll.calls import FIRST, IN_PLACE, NUMBERS, REDUCTIONS, SHAPES, SUM, intra_case
from ompy.testing.conformance.coll.sizes import POWERS

FILE = """
[bcast.2]
0 = "binomial"
[bcast.4]
0 = "knomial"
8KiB = { algorithm = "chain", segmentsize = "2KiB", chain_fanout = 3 }
1MiB = "scatter_allgather"
[allreduce.1]
0 = "recursive_doubling"
4096 = "ring"
[allgather.3]
0 = "neighbor_exchange"
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "rules.toml"
    path.write_text(FILE)
    return path


def chosen(settings, function, size, nbytes, commutative=True):
    """The algorithm, and when it is taken, as each rank says; they must say the same."""
    said = set()
    for comm in intra(size):
        told = TunedModule(settings).explain(NUMBERS[function], comm, nbytes, commutative)
        said |= {(algorithm.name, when) for algorithm, suits, when in told if suits}
    assert len(said) == 1, said
    return said.pop()


def test_where_the_rules_that_come_with_it_switch_the_conformance_kit_tries():
    declared = COMPONENT.capabilities["switch_points"]
    for size, within_host in ((4, True), (4, False), (100, False)):
        for by_ranks in built_in(size, within_host).tables.values():
            points = {rule.from_bytes for rules in by_ranks.values() for rule in rules} - {0}
            # The kit's sweep has elements of 4 bytes, and goes by powers of two.
            assert all(point in declared or any(abs(point - power) < 4 for power in POWERS) for point in points), points


def test_a_file_decides_by_ranks_and_bytes(file):
    settings = TunedSettings(file=CATALOGUE.read(str(file)))
    for size, nbytes, expected in (
        (2, 1 << 20, "binomial"),
        (3, 0, "binomial"),
        (4, 8191, "knomial"),
        (4, 8192, "chain"),
        (9, (1 << 20) - 1, "chain"),
        (8, 1 << 20, "scatter_allgather"),
    ):
        assert chosen(settings, "bcast", size, nbytes)[0] == expected, (size, nbytes)
    assert "in pieces of 2048 bytes, chain_fanout 3" in chosen(settings, "bcast", 5, 10000)[1]
    assert str(file) in chosen(settings, "bcast", 5, 10000)[1]


def test_what_the_file_says_nothing_about_is_decided_as_measured(file):
    settings = TunedSettings(file=CATALOGUE.read(str(file)))
    for nbytes in (8, 4096, 1 << 20):
        assert chosen(settings, "reduce", 4, nbytes) == chosen(TunedSettings(), "reduce", 4, nbytes)


def test_an_algorithm_that_cannot_serve_has_another_in_its_place(file):
    settings = TunedSettings(file=CATALOGUE.read(str(file)))
    assert chosen(settings, "bcast", 6, 1 << 20)[0] == "scatter_allgather_ring"
    assert chosen(settings, "allgather", 6, 8)[0] == "neighbor_exchange"
    assert chosen(settings, "allgather", 7, 8)[0] == "ring"
    assert chosen(settings, "allreduce", 7, 5000)[0] == "ring"
    assert chosen(settings, "allreduce", 7, 5000, commutative=False)[0] == "recursive_doubling"
    forced = TunedSettings({"reduce": "rabenseifner"})
    assert chosen(forced, "reduce", 7, 5000)[0] == "rabenseifner"
    assert chosen(forced, "reduce", 7, 5000, commutative=False)[0] == "binomial"


def test_every_algorithm_has_an_ordered_one_that_serves_all_ranks_behind_it():
    for algorithms in ALGORITHMS.values():
        by_name = {it.name: it for it in algorithms}
        for it in algorithms:
            while not (it.ordered and all(it.serves(size) for size in range(1, 20))):
                it = by_name[it.otherwise]


def test_a_name_goes_before_the_file(file):
    settings = TunedSettings({"bcast": "binary"}, {"bcast": {"segmentsize": 512}}, CATALOGUE.read(str(file)))
    name, when = chosen(settings, "bcast", 8, 1 << 20)
    assert name == "binary"
    assert "asked for by name" in when
    assert "512" in when


def test_the_rules_that_come_with_it_cover_every_function():
    for function in ALGORITHMS:
        for size in (*range(1, 20), 70):
            for nbytes in (0, 8, 1 << 14, 1 << 30):
                chosen(TunedSettings(), function, size, nbytes)
    assert "measured over a network" in chosen(TunedSettings(), "bcast", 8, 8)[1]
    assert "measured within a host" in chosen(TunedSettings(within_host=True), "bcast", 8, 8)[1]
    assert "Thakur" in chosen(TunedSettings(), "bcast", 9, 8)[1]
    for size, within_host in ((2, False), (2, True), (100, True)):
        assert set(built_in(size, within_host).tables) == set(ALGORITHMS)


WRONG = [
    ("[bcats.2]\n0 = 'binomial'", ["[bcats]", "allgatherv", "Did you mean bcast?"]),
    ("[bcast.2]\n0 = 'binomal'", ["[bcast.2] 0", "'binomal'", "scatter_allgather", "Did you mean binomial?"]),
    ("[bcast.two]\n0 = 'binomial'", ["[bcast.two]", "number of ranks, such as 4"]),
    ("[bcast.0]\n0 = 'binomial'", ["[bcast.0]", "number of ranks"]),
    ("[bcast.2]\n8 = 'binomial'", ["[bcast.2]", "no entry for the smallest messages"]),
    ("[bcast.2]\n0 = 'binomial'\nlarge = 'chain'", ["[bcast.2] large", "64KiB"]),
    ("[bcast.2]\n0 = 3", ["[bcast.2] 0", "an algorithm's name", "3"]),
    ("[bcast]\n2 = 'binomial'", ["[bcast.2]", "entries such as"]),
    ("[bcast]", ["[bcast]", "no tables such as [bcast.4]"]),
    ("bcast = 'binomial'", ["[bcast]", "tables such as [bcast.4]"]),
    ("[bcast.2]\n0 = { segmentsize = 8 }", ["[bcast.2] 0", "None", "known: linear"]),
    ("[bcast.2]\n0 = { algorithm = 'linear', segmentsize = 8 }", ["linear takes no segmentsize", "it takes nothing"]),
    ("[bcast.2]\n0 = { algorithm = 'chain', fanout = 8 }", ["takes no fanout", "Did you mean chain_fanout?"]),
    ("[bcast.2]\n0 = { algorithm = 'chain', chain_fanout = 0 }", ["chain_fanout is 0", "1 to 32"]),
    ("[bcast.2]\n0 = { algorithm = 'chain', segmentsize = 'some' }", ["segmentsize is 'some'", "16KiB"]),
    ("[bcast.2\n0 = 'chain'", ["no TOML", "line 1"]),
]


@pytest.mark.parametrize(("text", "words"), WRONG, ids=[text.replace("\n", " ") for text, _ in WRONG])
def test_a_wrong_file_is_an_error_that_names_it_the_entry_and_what_was_expected(tmp_path, text, words):
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    with pytest.raises(ParameterError) as caught:
        CATALOGUE.read(str(path))
    for word in (str(path), *words):
        assert word in str(caught.value)


def test_a_file_that_is_not_there_is_an_error_that_names_the_parameter(tmp_path):
    with pytest.raises(ParameterError, match=r"missing.toml: No such file .*coll_tuned_dynamic_rules_filename"):
        CATALOGUE.read(str(tmp_path / "missing.toml"))


def test_calls_on_all_sides_of_the_thresholds_find_every_rank_of_one_mind(rng):
    """Each function by all of its algorithms, one after the other from 8 bytes to 8 bytes: a rank that decided otherwise
    than the others would wait for messages that nobody sends."""
    before = pml.chosen()
    messages = InMemoryPml(rng, eager=True)
    pml.choose(messages)
    try:
        for function, algorithms in ALGORITHMS.items():
            entries = {str(8 * number): it.name for number, it in enumerate(algorithms)}
            settings = TunedSettings(file=CATALOGUE.parse({function: {"1": entries}}, "test"))
            for _ in range(25):
                size = rng.randrange(1, 10)
                count, shape, root = rng.randrange(len(entries) * 3), rng.choice(SHAPES), rng.randrange(size)
                operation = rng.choice((SUM, FIRST)) if function in REDUCTIONS else None
                in_place = function in IN_PLACE and rng.random() < 0.3
                cases = [intra_case(function, rank, size, count, shape, root, in_place, operation) for rank in range(size)]
                ranks = intra(size)
                requests = [
                    TunedModule(settings).start(NUMBERS[function], case.call, comm)
                    for case, comm in zip(cases, ranks, strict=True)
                ]
                finish(messages, requests)
                for rank, case in enumerate(cases):
                    case.check(f"{function} of {count} x {shape}, rank {rank} of {size}, root {root}, in place {in_place}")
    finally:
        pml.choose(before)


@pytest.fixture
def explain(run):
    def explain(*arguments):
        return run("-c", "from ompy.cli.ompy import main; main()", "explain", *arguments, "--mca", "coll", "tuned,basic")

    return explain


def test_a_job_heeds_the_file_unless_it_is_told_not_to(explain, file):
    named = ("--mca", "coll_tuned_dynamic_rules_filename", str(file))
    output = explain("bcast", "--bytes", "16384", "-n", "4", *named).stdout
    assert "tuned: chain" in output
    assert "in pieces of 2048 bytes, chain_fanout 3" in " ".join(output.split())
    ignored = explain("bcast", "--bytes", "16384", "-n", "4", *named, "--mca", "coll_tuned_use_dynamic_rules", "0").stdout
    assert "rules.toml" not in ignored
    assert "measured within a host" in " ".join(ignored.split())


def test_other_rules_serve_within_a_host_and_over_a_network(explain):
    for mca, words in (("zmq,self", "over a network"), ("sm,self", "within a host"), ("^sm", "over a network")):
        output = explain("bcast", "-n", "2", "--mca", "btl", mca).stdout
        assert f"measured {words}" in " ".join(output.split()), mca


def test_a_job_uses_the_algorithm_that_is_named_with_its_numbers(explain):
    by_name = ("coll_tuned_reduce_algorithm", "chain"), ("coll_tuned_reduce_segmentsize", "4k")
    words = [word for pair in (*by_name, ("coll_tuned_reduce_chain_fanout", "2")) for word in ("--mca", *pair)]
    output = " ".join(explain("reduce", "--bytes", "1000000", "-n", "3", *words).stdout.split())
    assert "tuned: chain chosen" in output
    assert "in pieces of 4096 bytes, chain_fanout 2, asked for by name" in output


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("coll_tuned_bcast_algorithm", "binomal", ["coll_tuned_bcast_algorithm", "one of auto, linear"]),
        ("coll_tuned_dynamic_rules_filename", "missing.toml", ["missing.toml", "No such file"]),
    ],
)
def test_what_is_wrongly_set_ends_the_start_with_words(name, value, words):
    command = [sys.executable, "-m", "ompy.cli.ompyrun", "-n", "1", "--mca", name, value, sys.executable]
    result = subprocess.run([*command, "-c", "from ompy import MPI"], capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode != 0
    for word in words:
        assert word in result.stdout + result.stderr


def test_a_fan_out_that_makes_no_tree_is_refused():
    command = [sys.executable, "-m", "ompy.cli.ompyrun", "-n", "1", "--mca", "coll_tuned_bcast_algorithm", "knomial"]
    result = subprocess.run(
        [*command, "--mca", "coll_tuned_bcast_tree_fanout", "1", sys.executable, "-c", "from ompy import MPI"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode != 0
    assert "coll_tuned_bcast_tree_fanout" in result.stderr
    assert "branches from 2 to 16" in result.stderr


def test_it_leaves_simulated_time_and_other_groups_to_others(explain):
    told = explain("bcast", "-n", "2", "--mca", "btl", "gdn,self").stdout
    assert "time is simulated" in told
    assert "basic: " in told
