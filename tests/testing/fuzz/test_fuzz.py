"""`ompy fuzz`: programs, their model, and what people are given of a failure."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from ompy.testing.fuzz import campaign, layouts, report, script
from ompy.testing.fuzz.actions.completion import STYLES
from ompy.testing.fuzz.generator import WEIGHTS, Setting, generate
from ompy.testing.fuzz.matrix import MATRIX
from ompy.testing.fuzz.program import KINDS, Program
from ompy.testing.fuzz.runner import Failure, Place, Runner

EVERY_FEATURE = frozenset().union(*(kind.needs for kind in KINDS.values())) | {
    "threads",
    "numpy",
    "isendrecv",
    "start after free",
}


# What the short run does; the whole of it is a command in CONTRIBUTING.
SHORT = ("collective", "race", "exchange", "window", "truncation", "synchronous", "partitioned", "pause")


def many(count: int, size: int = 3) -> list[Program]:
    return [generate(seed, Setting(size, features=EVERY_FEATURE)) for seed in range(count)]


def test_every_feature_that_an_action_needs_can_be_left_out() -> None:
    assert EVERY_FEATURE <= campaign.FEATURES


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--without", "thread"), "--without thread: known are"),
        (("--kinds", "colective"), "--kinds colective: known are"),
        (("--seconds", "nan"), "--seconds nan: a number of seconds"),
        (("--silence", "-1"), "--silence -1: a number of seconds"),
        (("--shrink", "inf"), "--shrink inf: a number of seconds"),
        (("--launcher", "no-mpiexec -q"), "--launcher: there is no command no-mpiexec"),
        (("--launcher", "mpiexec 'a"), "--launcher mpiexec 'a: No closing quotation"),
        (("--python", "no-python"), "--python: there is no command no-python"),
    ],
)
def test_options_that_make_no_sense_are_refused(words: tuple[str, ...], problem: str) -> None:
    command = [sys.executable, "-m", "ompy", "fuzz", *words]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 2
    assert problem in " ".join(result.stderr.replace("│", " ").split())


def test_a_seed_always_gives_the_same_program(ompy_seed: int) -> None:
    setting = Setting(4, features=EVERY_FEATURE)
    assert generate(ompy_seed, setting).dumps() == generate(ompy_seed, setting).dumps()
    assert generate(ompy_seed, setting).dumps() != generate(ompy_seed + 1, setting).dumps()


def test_a_program_is_the_same_after_its_file() -> None:
    for program in many(40):
        again = Program.loads(program.dumps())
        assert script.parts_of(again) == script.parts_of(program)


def test_every_kind_of_action_and_of_completion_occurs() -> None:
    actions = [action for program in many(150) for action in program.actions.values()]
    assert {action.kind for action in actions} == {*WEIGHTS, "completion"}
    styles = {action.style for action in actions if action.kind == "completion"}
    assert styles == {*STYLES, "free", "interrupted"}
    functions = {action.function for action in actions if action.kind == "collective"}
    assert len(functions) == 17
    flavors = {action.flavor for action in actions if action.kind == "window"}
    assert flavors == {"create", "allocate", "shared", "dynamic"}


def test_sizes_lie_around_the_limits() -> None:
    programs = [generate(seed, Setting(2, limits=(7777,), weights={"message": 1})) for seed in range(40)]
    sizes = {action.size for program in programs for action in program.actions.values() if action.kind == "message"}
    assert {0, 7776, 7777, 7778} <= sizes


def test_every_part_of_every_program_is_python() -> None:
    for size in (1, 2, 5, 7):
        for program in many(20, size):
            for text in [*script.parts_of(program), script.script_of(program)]:
                compile(text, "<program>", "exec")


def test_a_program_stays_one_whatever_is_dropped(ompy_rng: random.Random) -> None:
    for program in many(30, 4):
        left = program
        while left.steps:
            numbers = sorted(left.actions)
            left = left.without(set(ompy_rng.sample(numbers, -(-len(numbers) // 3))))
            if left.size > 1 and ompy_rng.random() < 0.3:
                left = left.without_rank(ompy_rng.randrange(left.size))
            compile(script.script_of(left), "<program>", "exec")
            opened = {
                (number, name)
                for action in left.actions.values()
                if action.kind == "completion"
                for number, name in action.open(left)
            }
            assert {number for number, _ in opened} <= left.actions.keys()


def test_types_lie_where_the_library_says(ompy_rng: random.Random) -> None:
    from ompy import MPI

    for _ in range(300):
        layout = layouts.at_random(ompy_rng, ompy_rng.choice(list(layouts.BASES)))
        datatype = eval(layout.create, {"MPI": MPI}).Commit()
        assert (datatype.Get_size(), datatype.Get_extent()) == (layout.size, (layout.lb, layout.extent)), layout
        memory = ompy_rng.randbytes(layout.memory(2))
        packed = bytearray(2 * layout.size)
        MPI.COMM_SELF.Sendrecv([memory, 2, datatype], 0, 0, [packed, len(packed), MPI.BYTE], 0, 0)
        pieces = [memory[k * layout.extent + o :][:n] for k in range(2) for o, n in layout.blocks]
        assert bytes(packed) == b"".join(pieces), layout
        datatype.Free()


@pytest.mark.timeout(200)
def test_a_script_runs_alone(tmp_path: Path) -> None:
    weights = {"message": 5.0, "collective": 2.0, "objects": 1.0}
    program = generate(1, Setting(2, weights=weights, operations=20))
    path = tmp_path / "program.py"
    path.write_text(script.script_of(program, "A test"))
    command = [sys.executable, "-m", "ompy.cli.ompyrun", "--mpi4py", "-n", "2", "--timeout", "60", sys.executable, str(path)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count("ok") == 2


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_failure_is_given_as_a_short_script_of_few_ranks(faulty) -> None:
    place = Place(3, (("pml", "faulty"), ("pml_faulty_fault", "CountOffByOne")), silence=10.0)
    wish = campaign.Wish(1, 60.0, kinds=("message", "collective", "pause"), without=("threads", "signals"), shrinking=60.0)
    found = campaign.run(place, wish).found
    assert found is not None
    assert found.smallest is not None
    assert found.smallest.program.size <= 2
    told = report.told(place, wish, found)
    assert f"--seed {found.failure.program.seed}" in told
    assert "from mpi4py import MPI" in told
    assert len(report.source(place, found).splitlines()) < 70


@pytest.mark.timeout(120)
def test_a_hang_is_a_failure_that_says_who_waits_for_whom() -> None:
    program = generate(3, Setting(2, weights={"pause": 1.0}, operations=4))
    (number,) = [n for n, action in program.actions.items() if action.kind == "pause"][:1]
    action = KINDS["synchronous"](number, 0, -1, 0, 1, 8, 1)
    # A program that is wrong: a receive without its send.
    program = program.replaced(action)
    program.steps[:] = [step._replace(phase="meet", rank=1) for step in program.steps if step.action == number]
    failure = Runner(Place(2, silence=3.0)).fails(program)
    assert isinstance(failure, Failure)
    assert failure.word == "hang"
    assert "waiting" in failure.text


def test_the_matrix_names_what_is_installed() -> None:
    from ompy.mca import discovery

    known = discovery.installed()
    for row in MATRIX:
        for framework, names in row.mca:
            if framework in known:
                assert set(names.split(",")) <= set(known[framework]), row.name


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("btl", "ranks"), [("sm,self", 2), ("sm,self", 3), ("zmq,self", 3)])
def test_a_short_run_finds_nothing(ompy_seed: int, btl: str, ranks: int) -> None:
    place = Place(ranks, (("btl", btl),))
    wish = campaign.Wish(ompy_seed, 8.0, kinds=SHORT, without=("threads",))
    outcome = campaign.run(place, wish)
    assert outcome.found is None, report.told(place, wish, outcome.found)
    assert outcome.operations > 0
