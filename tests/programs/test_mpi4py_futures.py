"""mpi4py.futures and its own demos, unmodified: workers are the job's ranks, as nothing spawns processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SECONDS = 120
# In front of a program: rank 0 runs it, the others are the workers of its executors.
SERVED = ("-m", "mpi4py.futures")


@pytest.fixture(scope="session")
def parts() -> tuple[Path, Path]:
    """The folder of the demos, and the one that has mpi4py's pure-Python parts."""
    found = subprocess.run([sys.executable, "-m", "ompy.testing.suite.source"], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    sources, installed = map(Path, found.stdout.splitlines())
    return sources / "demo" / "futures", installed


def run(parts: tuple[Path, Path], ranks: int, transports: str, *program: str) -> subprocess.CompletedProcess[str]:
    demos, installed = parts
    launcher = [sys.executable, "-m", "ompy.cli.ompyrun", "--mpi4py", "--oversubscribe", "-n", str(ranks)]
    launcher += ["--timeout", str(SECONDS), "--report-state-on-timeout", "--mca", "btl", transports]
    environment = os.environ | {"PYTHONPATH": str(installed), "MPI4PY_TEST_SPAWN": "no", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(
        [*launcher, sys.executable, *program], cwd=demos, env=environment, capture_output=True, text=True, timeout=SECONDS + 30
    )


@pytest.mark.parametrize(
    ("ranks", "transports", "program", "words"),
    [
        (5, "self,sm", (*SERVED, "run_cpi.py"), ["pi: 3.14159", "4 workers"]),
        (2, "self,zmq", (*SERVED, "run_cpi.py"), ["pi: 3.14159", "1 workers"]),
        (5, "self,sm", (*SERVED, "run_hello.py"), [f"I am worker {number} of 4" for number in range(4)]),
        (3, "self,zmq", (*SERVED, "run_hello.py"), [f"I am worker {number} of 2" for number in range(2)]),
        (5, "self,sm", (*SERVED, "run_primes.py"), ["117450548693743 is prime: True", "993960000099397 is prime: True"]),
        (5, "self,sm", ("run_julia.py",), ["Julia Set 1600x1200 in"]),
        (3, "self,zmq", (*SERVED, "run_mandelbrot.py"), ["Mandelbrot Set 750x500 in"]),
    ],
)
def test_a_demo_runs(parts: tuple[Path, Path], ranks: int, transports: str, program: tuple[str, ...], words: list[str]) -> None:
    done = run(parts, ranks, transports, *program)
    assert done.returncode == 0, done.stdout + done.stderr
    for word in words:
        assert word in done.stdout


@pytest.mark.parametrize(
    ("ranks", "transports", "program", "results"),
    [
        (1, "self,sm", ("test_futures.py",), 1),
        (2, "self,zmq", ("test_futures.py",), 2),
        (2, "self,sm", (*SERVED, "test_futures.py"), 1),
    ],
)
def test_its_own_tests_pass(
    parts: tuple[Path, Path], ranks: int, transports: str, program: tuple[str, ...], results: int
) -> None:
    """Each rank runs the tests by itself, or rank 0 alone with the others as workers."""
    done = run(parts, ranks, transports, *program)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr.count("\nOK") == results


UNREACHABLE = """
import concurrent.futures
from mpi4py import MPI
from mpi4py.futures import MPIPoolExecutor
from ompy.mpi.intracomm import Intracomm

def spawn(*arguments): raise MPI.Exception(MPI.ERR_SPAWN)

class Alone(Intracomm): Spawn = spawn

MPI.COMM_SELF = Alone(MPI.COMM_SELF)
for wait in False, True:
    try:
        with MPIPoolExecutor(2) as executor:
            if wait:
                executor.bootup()
            future = executor.submit(abs, -1)
            print(future.result())
    except concurrent.futures.BrokenExecutor as error:
        print("broken:", error)
assert MPIPoolExecutor(2).num_workers == 0
"""


def test_where_no_workers_can_be_started_futures_fail_with_the_reason(parts: tuple[Path, Path], tmp_path: Path) -> None:
    program = tmp_path / "unreachable.py"
    program.write_text(UNREACHABLE)
    done = run(parts, 1, "self,sm", str(program))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("broken: no workers: ") == 2
