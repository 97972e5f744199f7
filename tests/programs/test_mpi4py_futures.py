"""mpi4py.futures and its own demos, unmodified: workers are the job's ranks, or processes that are spawned."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ompy.compat

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


def alone(parts: tuple[Path, Path], *program: str) -> subprocess.CompletedProcess[str]:
    """A process without a launcher, where `import mpi4py` means ompy."""
    demos, installed = parts
    path = os.pathsep.join([str(Path(ompy.compat.__file__).parent), str(installed)])
    environment = os.environ | {"PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *program], cwd=demos, env=environment, capture_output=True, text=True, timeout=SECONDS
    )


def run(
    parts: tuple[Path, Path], ranks: int, transports: str, *program: str, spawning: str = "no"
) -> subprocess.CompletedProcess[str]:
    demos, installed = parts
    launcher = [sys.executable, "-m", "ompy.cli.ompyrun", "--mpi4py", "--oversubscribe", "-n", str(ranks)]
    launcher += ["--timeout", str(SECONDS), "--report-state-on-timeout", "--mca", "btl", transports]
    environment = os.environ | {"PYTHONPATH": str(installed), "MPI4PY_TEST_SPAWN": spawning, "OPENBLAS_NUM_THREADS": "1"}
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


@pytest.mark.long
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


POOLS = """
from mpi4py.futures import MPIPoolExecutor
if __name__ == "__main__":
    for workers in 3, 1:
        with MPIPoolExecutor(workers) as pool:
            print(workers, sum(pool.map(pow, range(100), [2] * 100)))
"""
SQUARES = "3 328350\n1 328350\n"


@pytest.mark.parametrize("how", ["alone", "launcher"])
def test_workers_are_spawned(parts: tuple[Path, Path], tmp_path: Path, how: str) -> None:
    program = tmp_path / "pools.py"
    program.write_text(POOLS)
    done = alone(parts, str(program)) if how == "alone" else run(parts, 1, "self,sm", str(program))
    assert (done.returncode, done.stdout) == (0, SQUARES), done.stderr


@pytest.mark.long
def test_its_own_tests_of_spawned_workers_pass(parts: tuple[Path, Path]) -> None:
    done = run(parts, 1, "self,sm", "test_futures.py", "ProcessPoolSubmitTest", "ProcessPoolShutdownTest", spawning="yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\nOK\n" in done.stderr


@pytest.mark.parametrize("how", ["alone", "launcher"])
def test_the_demo_of_spawning_runs(parts: tuple[Path, Path], tmp_path: Path, how: str) -> None:
    folder = parts[0].parent / "spawning"
    worker = tmp_path / "worker"
    worker.write_text(f"#!{sys.executable}\n" + (folder / "cpi-worker.py").read_text())
    worker.chmod(0o700)
    program = (str(folder / "cpi-master.py"), str(worker))
    done = alone(parts, *program) if how == "alone" else run(parts, 1, "self,sm", *program)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "pi: 3.14160098692312" in done.stdout


UNREACHABLE = """
import concurrent.futures, sys
from mpi4py import MPI
from mpi4py.futures import MPIPoolExecutor

for program, arguments in ("/no/such/python", []), ("false", []), (sys.executable, ["-c", "import os; os.abort()"]):
    for wait in False, True:
        try:
            with MPIPoolExecutor(2, python_exe=program, python_args=arguments) as executor:
                if wait:
                    executor.bootup()
                future = executor.submit(abs, -1)
                print(future.result())
        except concurrent.futures.BrokenExecutor as error:
            print("broken:", error)
assert MPIPoolExecutor(2, python_exe="/no/such/python").num_workers == 0
"""


@pytest.mark.parametrize("how", ["alone", "launcher"])
def test_where_no_workers_can_be_started_futures_fail_with_the_reason(
    parts: tuple[Path, Path], tmp_path: Path, how: str
) -> None:
    program = tmp_path / "unreachable.py"
    program.write_text(UNREACHABLE)
    done = alone(parts, str(program)) if how == "alone" else run(parts, 1, "self,sm", str(program))
    assert done.returncode == 0, done.stdout + done.stderr
    for reason in ("No such file", "exited with code 1 before", "killed by SIGABRT before"):
        assert len(re.findall(f"broken: no workers: could not spawn processes: .*{reason}", done.stdout)) == 2, done.stdout
