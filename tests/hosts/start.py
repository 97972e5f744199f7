"""How long a job takes on 4 hosts of 8 ranks each, by ssh: `ompyrun` and Hydra in turns, with the same program."""

from __future__ import annotations

import os
import shutil
import statistics
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from machines import Launched, Machines

HOSTS = ",".join(f"n{number}:8" for number in range(1, 5))
SHARES = 1 << 16  # of the processors; others have 1024
PROGRAM = "from ompy import MPI\nMPI.COMM_WORLD.allreduce(1)"


def hydra(machines: Machines, folder: Path) -> list[str]:
    """The words of Hydra's mpiexec; none where there is no Hydra."""
    path = os.pathsep.join([os.environ.get("OMPY_TEST_HYDRA", ""), os.environ.get("PATH", "")])
    found = shutil.which("mpiexec.hydra", path=path)
    if found is None:
        return []
    agent = folder / "agent"
    agent.write_text(f'#!/bin/sh\nexec {machines.agent} "$@"\n')
    agent.chmod(0o755)
    return [found, "-launcher", "ssh", "-launcher-exec", str(agent), "-hosts", HOSTS, "-n", "32"]


@contextmanager
def apart() -> Iterator[None]:
    """With nearly all of the processors' time, in a control group (version 1): there sessions have no shares of their own."""
    groups = Path("/sys/fs/cgroup/cpu")
    group = groups / f"ompy-hosts-{os.getpid()}"
    group.mkdir()
    try:
        (group / "cpu.shares").write_text(str(SHARES))
        (group / "tasks").write_text(str(os.getpid()))
        yield
    finally:
        (groups / "tasks").write_text(str(os.getpid()))
        group.rmdir()


def compare_starts(folder: Path, rounds: int) -> int:
    """Print the seconds of each, and the ratio of the medians."""
    machines = Machines(folder, 4)
    try:
        ompyrun = [sys.executable, "-m", "ompy.cli.ompyrun", "--mca", "plm_ssh_agent", machines.agent, "--host", HOSTS]
        launchers = {"ompyrun": ompyrun, "Hydra": hydra(machines, folder)}
        seconds: dict[str, list[float]] = {name: [] for name, words in launchers.items() if words}
        for number in range(rounds + 1):
            for name, found in seconds.items():
                with Launched(machines["n1"], [*launchers[name], sys.executable, "-c", PROGRAM], folder) as job:
                    if job.finish(120):
                        print(job.stderr, file=sys.stderr)
                        return 1
                # The first one reads what then is in the system's memory.
                if number:
                    found.append(job.seconds)
    finally:
        machines.end()
    for name, found in seconds.items():
        print(f"{name}: median {statistics.median(found):.2f} s, {min(found):.2f} to {max(found):.2f} s")
    if "Hydra" in seconds:
        print(f"ratio of the medians {statistics.median(seconds['ompyrun']) / statistics.median(seconds['Hydra']):.2f}")
    return 0
