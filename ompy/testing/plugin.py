"""pytest plugin: tests whose body runs on several ranks.

    @pytest.mark.ompy(2, 4)                                   # one case on 2 ranks, one on 4
    def test_ring(comm): ...

    @pytest.mark.ompy(3, mca={"btl": "self,sm"}, timeout=20)
    def test_small(comm, tmp_path): ...

Each case starts its own job with `ompyrun`; every rank imports the test's file and runs the body.  The argument `comm` is
the rank's COMM_WORLD, `ompy_ranks` its size; every other fixture and parameter is made once, in the parent, and handed over
by pickle, so that all ranks see the same `tmp_path` or `ompy_seed`.  A failure on any rank fails the case: the report has each
rank's traceback and the output of all.

A component's own tests hold it to its contract with the fixture `ompy_conformance`; see `ompy.testing.conformance`:

    def test_it_keeps_the_contract(ompy_conformance):
        ompy_conformance("btl", "mynet,self", ranks=3)

pytest loads this wherever ompy is installed, so it leaves everybody else's tests alone: every name that it adds begins with
`ompy`, `comm` is an argument of marked tests and no fixture, and a run without such tests looks as it does without ompy.

Where pytest itself runs on several ranks (`ompyrun -n 2 pytest --basetemp DIR`) each rank has a folder of its own in DIR,
`rank0`, `rank1`, as pytest-xdist's workers have: every pytest empties and makes the one it is given, and ranks that did so
with one folder at one time would take it from one another.
"""

from __future__ import annotations

import inspect
import math
import os
import pickle
import random
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ompy.runtime.keeper import JOB_VARIABLE
from ompy.testing.task import COMMUNICATOR, FAILED, SKIPPED, XFAILED, Outcome, Task

if TYPE_CHECKING:
    from collections.abc import Callable

DEFAULT_TIMEOUT = 60.0
# Beyond the launcher's own time-out: it prints its report and ends the ranks within this.
KILL_MARGIN = 15.0
MARKER = "ompy"
RANKS = "ompy_ranks"
# Of the marker, besides numbers of ranks.
OPTIONS = ("mca", "timeout", "options")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("ompy")
    group.addoption("--ompy-seed", type=int, default=None, help="of `ompy_seed` and `ompy_rng`; default: a new one each run")
    group.addoption("--ompy-timeout-factor", type=float, default=1.0, help="multiply every time-out of a multi-rank test")


@pytest.hookimpl(tryfirst=True)  # pytest reads `--basetemp` in a hook of this name
def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "ompy(*ranks, mca={}, timeout=60, options=()): run the test body on so many ranks, each number a case of its own; "
        "mca: parameters, timeout: seconds, options: more arguments for ompyrun",
    )
    factor = config.getoption("--ompy-timeout-factor")
    if not 0 < factor < math.inf:
        raise pytest.UsageError(f"--ompy-timeout-factor: a number above 0 is expected, found {factor}")
    seed = config.getoption("--ompy-seed")
    config.stash[SEED] = random.SystemRandom().randrange(2**32) if seed is None else seed
    shared = config.getoption("basetemp", None)
    if shared and JOB_VARIABLE in os.environ and int(os.environ.get("PMI_SIZE", "1")) > 1:
        Path(shared).mkdir(parents=True, exist_ok=True)
        config.option.basetemp = str(Path(shared) / f"rank{os.environ['PMI_RANK']}")


SEED = pytest.StashKey[int]()


@pytest.fixture(scope="session")
def ompy_seed(request: pytest.FixtureRequest) -> int:
    """A number to seed with, the same on every rank; `--ompy-seed` repeats it."""
    return request.config.stash[SEED]


@pytest.fixture
def ompy_rng(ompy_seed: int) -> random.Random:
    """A generator in the same state on every rank."""
    return random.Random(ompy_seed)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """What a failure's report shows first of a test that is random; and no test runs on one rank that was to run on several."""
    if item.get_closest_marker(MARKER) and RANKS not in getattr(getattr(item, "callspec", None), "params", ()):
        pytest.fail(
            "ompy() marks functions, and methods of classes that are no unittest.TestCase; no parameters", pytrace=False
        )
    if "ompy_seed" in getattr(item, "fixturenames", ()):
        print(f"--ompy-seed {item.config.stash[SEED]}")


@pytest.fixture
def ompy_conformance(ompy_seed: int) -> Callable[..., None]:
    """Hold a component to its contract, as `ompy conformance` does; the test fails with every clause that is broken.

    Parameters of the function: framework; names, the component under test first; ranks; silence (seconds); and `mca`, a
    dict of further parameters.
    """

    def check(framework: str, names: str, ranks: int = 2, silence: float = 20.0, mca: dict[str, object] | None = None) -> None:
        from ompy.testing.conformance import kit, report
        from ompy.testing.conformance.check import levels
        from ompy.testing.conformance.job import Order

        others = tuple((name, str(value)) for name, value in (mca or {}).items())
        results = []
        for level in levels(framework):
            order = Order(framework, tuple(names.split(",")), level, ranks, others, ompy_seed, silence, {})
            results += list(kit.run(order, kit.selected(framework, level)))
        if failed := report.failures(results):
            pytest.fail("\n\n".join(report.told(result) for result in failed), pytrace=False)

    return check


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marker = metafunc.definition.get_closest_marker(MARKER)
    if marker is None:
        return
    counts = marker.args or (2,)
    if problem := problem_of(marker):
        raise pytest.UsageError(f"{metafunc.definition.nodeid}: {problem}")
    names = [RANKS, COMMUNICATOR] if COMMUNICATOR in metafunc.fixturenames else [RANKS]
    if RANKS not in metafunc.fixturenames:
        metafunc.fixturenames.append(RANKS)
    # Each rank has its communicator for itself; the parent only says that there is one.
    values = [(count, None)[: len(names)] for count in counts]
    metafunc.parametrize(names, values, ids=[f"n{count}" for count in counts])


def problem_of(marker: pytest.Mark) -> str:
    """What is wrong with a marker's arguments; empty where nothing is."""
    if not all(type(count) is int and count > 0 for count in marker.args):
        return f"ompy() takes numbers of ranks, found {marker.args}"
    if unknown := sorted(set(marker.kwargs) - set(OPTIONS)):
        return f"ompy() has no option {unknown[0]!r}; known: {', '.join(OPTIONS)}"
    if not isinstance(marker.kwargs.get("mca") or {}, dict):
        return f"ompy(mca=...) takes a dict of parameters, found {marker.kwargs['mca']!r}"
    timeout = marker.kwargs.get("timeout", DEFAULT_TIMEOUT)
    if not (isinstance(timeout, int | float) and 0 < timeout < math.inf):
        return f"ompy(timeout=...) takes seconds, found {timeout!r}"
    return ""


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    marker = pyfuncitem.get_closest_marker(MARKER)
    if marker is None:
        return None
    if inspect.iscoroutinefunction(pyfuncitem.obj) or inspect.isasyncgenfunction(pyfuncitem.obj):
        pytest.fail("async def: ranks run functions only; have one run the coroutine, as by asyncio.run()", pytrace=False)
    run_on_ranks(pyfuncitem, int(str(pyfuncitem.callspec.params[RANKS])), **marker.kwargs)
    return True


def task_of(item: pytest.Function) -> tuple[Task, bytes]:
    """What the ranks have to do, as an object and pickled."""
    wanted = item._fixtureinfo.argnames
    arguments = {name: item.funcargs[name] for name in wanted if name != COMMUNICATOR}
    for name, value in arguments.items():
        try:
            pickle.dumps(value)
        except Exception as error:
            pytest.fail(f"fixture {name!r} can't be handed to ranks, it does not pickle: {error}", pytrace=False)
    # A method may be a base class's: it is run on what was collected.
    names = [*(node.name for node in item.listchain() if isinstance(node, pytest.Class)), item.originalname]
    # Values of classes from the test's own file unpickle only where that file can be imported by name.
    folder = os.path.dirname(str(item.path))
    task = Task(str(item.path), names, arguments, COMMUNICATOR in wanted, [folder])
    return task, pickle.dumps(task)


def run_on_ranks(
    item: pytest.Function,
    count: int,
    mca: dict[str, object] | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    options: tuple[str, ...] = (),
) -> None:
    """Run the item's body on so many ranks and raise what pytest shows: a failure, a skip, or nothing."""
    timeout *= item.config.getoption("--ompy-timeout-factor")
    task, pickled = task_of(item)
    with tempfile.TemporaryDirectory(prefix="ompy-test-") as folder:
        with open(f"{folder}/task", "wb") as stream:
            stream.write(pickled)
        with open(f"{folder}/path", "wb") as stream:
            pickle.dump(task.module_path, stream)
        command = [sys.executable, "-m", "ompy.cli.ompyrun", "-n", str(count), "--tag-output"]
        command += ["--timeout", str(timeout), "--report-state-on-timeout"]
        for name, value in (mca or {}).items():
            command += ["--mca", name, str(value)]
        command += [*options, sys.executable, "-m", "ompy.testing.rank", folder]
        status, output = run(command, timeout + KILL_MARGIN)
        outcomes = read_outcomes(folder, count)
    judge(count, status, output, outcomes)


def run(command: list[str], limit: float) -> tuple[int, str]:
    """Exit status and output of a command that is killed when the time is over."""
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        output += f"\nompyrun did not end within {limit:g} s and was killed\n".encode()
    except BaseException:
        # Ctrl-C in pytest: the launcher ends its ranks.
        process.send_signal(signal.SIGTERM)
        process.wait()
        raise
    return process.returncode, output.decode(errors="replace")


def read_outcomes(folder: str, count: int) -> dict[int, Outcome]:
    """What each rank left; a rank that was ended before it could say is missing."""
    found = {}
    for rank in range(count):
        try:
            with open(f"{folder}/outcome.{rank}", "rb") as stream:
                found[rank] = pickle.load(stream)
        except FileNotFoundError:
            pass
    return found


def judge(count: int, status: int, output: str, outcomes: dict[int, Outcome]) -> None:
    """Raise what pytest is to show."""
    failed = [outcome for outcome in outcomes.values() if outcome.word == FAILED]
    sys.stdout.write(output)
    if failed or status != 0 or len(outcomes) < count:
        parts = [f"on {count} ranks, ompyrun's exit status {status}"]
        by_text: dict[str, list[int]] = {}
        for outcome in failed:
            by_text.setdefault(outcome.text, []).append(outcome.rank)
        parts += [f"--- {named(ranks)}:\n{text}" for text, ranks in by_text.items()]
        if silent := [rank for rank in range(count) if rank not in outcomes]:
            parts.append(f"--- {named(silent)}: ended before the body was over")
        pytest.fail("\n".join(parts), pytrace=False)
    for word, reaction in ((XFAILED, pytest.xfail), (SKIPPED, pytest.skip)):
        reasons = {outcome.text: outcome.rank for outcome in outcomes.values() if outcome.word == word}
        if reasons:
            reaction("; ".join(reasons))


def named(ranks: list[int]) -> str:
    """ "rank 2", "ranks 0, 1, 3"."""
    return f"rank{'s' if len(ranks) > 1 else ''} " + ", ".join(map(str, ranks))
