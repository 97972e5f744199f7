"""The ways in which something of a job on many hosts goes, each done many times."""

from __future__ import annotations

import os
import signal
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from machines import Launched, Machines

# n1 has the launcher, which starts n2 and n3; n3 starts n4.
HOSTS = "n1:2,n2:2,n3:2,n4:2"
FAN_OUT = 2
RANKS = 8
WAITS = "from ompy import MPI\ncomm = MPI.COMM_WORLD\ncomm.Barrier()\nprint('up', flush=True)\ncomm.recv(source=comm.rank)"
# With the parameters that hold by themselves.
MOST = 10.0


def process_of(machines: Machines, name: str, words: str) -> int:
    """The process on that host whose command line has the words; the proxy's keeper, its child, has the proxy's."""
    found = [pid for pid, line in machines[name].processes().items() if words in line]
    return next(pid for pid in found if psutil.Process(pid).ppid() not in found)


def kill_rank(name: str) -> Callable[[Machines, Launched], None]:
    return lambda machines, job: os.kill(process_of(machines, name, " -c "), signal.SIGKILL)


def kill_proxy(name: str) -> Callable[[Machines, Launched], None]:
    return lambda machines, job: os.kill(process_of(machines, name, "-m ompy.runtime.proxy"), signal.SIGKILL)


def cut(name: str) -> Callable[[Machines, Launched], None]:
    return lambda machines, job: machines.cut(name)


def kill_launcher(machines: Machines, job: Launched) -> None:
    os.kill(job.pid, signal.SIGKILL)


# What is done, and what must be said of it.
LOST = "host {} is lost with rank {}: "
SILENT = LOST + "nothing was heard from it"
BEHIND = "; reached through it, and lost with it: host n4 with rank 6, 7"
WAYS: dict[str, tuple[Callable[[Machines, Launched], None], tuple[str, ...]]] = {
    "a rank is killed": (kill_rank("n2"), ("rank ", " (n2, ", "killed by SIGKILL")),
    "a rank behind another host is killed": (kill_rank("n4"), ("rank ", " (n4, ", "killed by SIGKILL")),
    "a proxy is killed": (kill_proxy("n2"), (LOST.format("n2", "2, 3"),)),
    "an inner proxy is killed": (kill_proxy("n3"), (LOST.format("n3", "4, 5"), BEHIND)),
    "a proxy behind another host is killed": (kill_proxy("n4"), (LOST.format("n4", "6, 7"),)),
    "a link is cut": (cut("n2"), (SILENT.format("n2", "2, 3"),)),
    "an inner host's link is cut": (cut("n3"), (SILENT.format("n3", "4, 5"), BEHIND)),
    "the link of a host behind another one is cut": (cut("n4"), (SILENT.format("n4", "6, 7"),)),
    "the launcher's link is cut": (cut("n1"), ("is lost with rank",)),
    "the launcher is killed": (kill_launcher, ()),
}


def fail_in_every_way(folder: Path, rounds: int) -> int:
    """Print how soon each job was over, and its hosts empty."""
    machines = Machines(folder, 4)
    problems = 0
    try:
        for name, (do, words) in WAYS.items():
            ended, empty = [], []
            for _ in range(rounds):
                over, gone, problem = fail(machines, folder, do, words, MOST)
                ended.append(over)
                empty.append(gone)
                if problem:
                    problems += 1
                    print(f"{name}: {problem}", file=sys.stderr, flush=True)
            print(
                f"{name}: {rounds} times, over after {statistics.median(ended):.2f} s (at most {max(ended):.2f}), "
                f"every host empty after {statistics.median(empty):.2f} s (at most {max(empty):.2f})",
                flush=True,
            )
    finally:
        machines.end()
    return 1 if problems else 0


def fail(
    machines: Machines, folder: Path, do: Callable[[Machines, Launched], None], words: tuple[str, ...], most: float
) -> tuple[float, float, str]:
    """Start a job and do that to it: the seconds until the launcher has ended, and until nothing is left; what is wrong.

    Parameters:
        words: to be said.
        most: seconds after which all is to be over.
    """
    options = ["--mca", "plm_ssh_agent", machines.agent, "--mca", "ompyrun_fan_out", str(FAN_OUT), "--host", HOSTS]
    command = [sys.executable, "-m", "ompy.cli.ompyrun", *options, sys.executable, "-c", WAITS]
    with Launched(machines["n1"], command, folder) as job:
        try:
            if [job.line() for _ in range(RANKS)] != ["up\n"] * RANKS:
                job.finish()
                return 0.0, 0.0, f"the job does not begin: {job.stderr}"
            begun = time.monotonic()
            do(machines, job)
            status = job.finish(10 * most)
            over = time.monotonic() - begun
            left = machines.left(most)
            gone = time.monotonic() - begun
        finally:
            for it in machines.machines:
                machines.mend(it.name)
    if left:
        return over, gone, f"left: {left}"
    if status == 0 or any(word not in job.stderr for word in words):
        return over, gone, f"exit code {status}, and this was said: {job.stderr}"
    return over, gone, f"over only after {over:.1f} s, {gone:.1f} s" if max(over, gone) > most else ""
