"""mpi4py's own demo programs, unmodified, under `ompyrun --mpi4py`.

They come from mpi4py's sdist: the directory in OMPY_MPI4PY_SOURCE, or a copy that pip downloads once into the user's
cache.  With OMPY_OPENMPI set to the prefix of an environment that has mpi4py over Open MPI, each program's exit status and
output are compared with what it does there.  OMPY_EVERY_DEMO=1 runs all programs on 2 and 4 ranks over both transports.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ompy.testing.suite.source import Unreachable, sources

SECONDS = 120
EVERY = bool(os.environ.get("OMPY_EVERY_DEMO"))
PEER = os.environ.get("OMPY_OPENMPI")

# Program -> what it reads.
QUICK = {
    "helloworld.py": "",
    "compute-pi/cpi-cco.py": "100\n0\n",
    "mpi-ref-v1/ex-2.16.py": "",
    "mpi-ref-v1/ex-2.34.py": "",
    "mpi-ref-v1/ex-3.11.py": "",
    "sequential/test_seq.py": "",
    "reductions/test_reductions.py": "",
}
REST = {
    "mandelbrot/mandelbrot.py": "",
    **{
        f"mpi-ref-v1/ex-{number}.py": ""
        for number in (
            *("2.01", "2.08", "2.29", "2.32", "2.35", "3.01", "3.02", "3.03", "3.04", "3.05", "3.06", "3.07", "3.08", "3.09"),
            *("3.12", "3.13"),
        )
    },
    **{f"osu_{name}.py": "" for name in ("latency", "bw", "bcast", "alltoall", "allgather", "barrier", "gather", "scatter")},
}
# Two ranks only, by what they measure.
PAIRS = ("osu_latency.py", "osu_bw.py")
# What a program prints of times and places differs from run to run.
VARYING = re.compile(r"\d+\.\d+ seconds|^ *\d+ +\d+\.\d+$|\bin \d+\.\d+s|on \S+\.$|\d+\.\d+ *$", re.MULTILINE)

SETTINGS = [(2, "self,zmq"), (4, "self,sm")] + ([(2, "self,sm"), (4, "self,zmq")] if EVERY else [])
CASES = [
    (program, ranks, btl)
    for program in (QUICK | REST if EVERY else QUICK)
    for ranks, btl in SETTINGS
    if ranks == 2 or program not in PAIRS
]


@pytest.fixture(scope="session")
def demos() -> Path:
    """The folder of the programs."""
    if given := os.environ.get("OMPY_MPI4PY_SOURCE"):
        return Path(given) / "demo"
    try:
        return sources() / "demo"
    except Unreachable as error:
        pytest.skip(f"{error}\nOMPY_MPI4PY_SOURCE can name a local copy")


def run(command: list[str], program: Path, given: str) -> tuple[int, str]:
    """Exit status and output of a program, started in its own folder."""
    finished = subprocess.run(
        [*command, program.name], cwd=program.parent, input=given, capture_output=True, text=True, timeout=SECONDS
    )
    return finished.returncode, finished.stdout + finished.stderr


def lines(output: str) -> list[str]:
    """Lines that a program prints in every run, in an order that doesn't depend on which rank was first."""
    return sorted(line.strip() for line in VARYING.sub("", output).splitlines() if line.strip())


@pytest.mark.parametrize(("program", "ranks", "btl"), CASES)
def test_runs_as_it_does_elsewhere(demos: Path, program: str, ranks: int, btl: str) -> None:
    path, given = demos / program, (QUICK | REST)[program]
    launcher = [sys.executable, "-m", "ompy.cli.ompyrun", "--mpi4py", "-n", str(ranks), "--mca", "btl", btl, sys.executable]
    status, output = run(launcher, path, given)
    assert status == 0, output
    if program == "compute-pi/cpi-cco.py":
        assert "pi is approximately 3.1416009869231" in output
    if PEER:
        options = ["--allow-run-as-root", "--oversubscribe", "-n", str(ranks)]
        theirs, expected = run([f"{PEER}/bin/mpiexec", *options, f"{PEER}/bin/python"], path, given)
        assert (status, lines(output)) == (theirs, lines(expected))


ONE_SIDED = {
    "sm": ("--mca", "osc", "sm"),
    "rdma": ("--mca", "osc", "rdma"),
    "rdma over messages": ("--mca", "osc", "rdma", "--mca", "btl", "self,tcp"),
    "portals": ("--mca", "osc", "portals"),
    "pt2pt": ("--mca", "osc", "pt2pt"),
}


# Rank 0 stores the counter's first value when the window is made already, and the others may have counted by then: where the
# target need not be asked, they wait for it.
UNSYNCHRONISED = ("mpi3", "            mem[:] = ", "        comm.Barrier()\n")


@pytest.mark.parametrize("ranks", [2, 3, 5])
@pytest.mark.parametrize("component", list(ONE_SIDED))
@pytest.mark.parametrize("form", ["mpi3", "onesided", "scalable", "threads"])
def test_each_rank_draws_numbers_of_its_own(demos: Path, form: str, component: str, ranks: int, tmp_path: Path) -> None:
    """Shared counters and mutexes in windows (a thread's, in the last form)."""
    launcher = [sys.executable, "-m", "ompy.cli.ompyrun", "--mpi4py", "--oversubscribe", "--timeout", "60", "-n", str(ranks)]
    command = [*launcher, *ONE_SIDED[component], sys.executable]
    program = demos / "nxtval" / f"nxtval-{form}.py"
    if form == UNSYNCHRONISED[0] and component != "pt2pt":
        program = with_line_behind(program, *UNSYNCHRONISED[1:], tmp_path)
    status, output = run(command, program, "")
    assert status == 0, output


def with_line_behind(program: Path, start: str, line: str, folder: Path) -> Path:
    """A copy of the program, with another line behind the one that starts so."""
    lines = program.read_text().splitlines(keepends=True)
    (place,) = [number for number, text in enumerate(lines) if text.startswith(start)]
    lines.insert(place + 1, line)
    copy = folder / program.name
    copy.write_text("".join(lines))
    return copy
