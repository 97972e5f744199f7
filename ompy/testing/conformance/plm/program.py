"""Whole jobs of `ompyrun` on the hosts, a rank on each."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

from ompy.testing.conformance.check import Breach, Collection
from ompy.testing.conformance.plm.launch import LOOK
from ompy.testing.conformance.plm.processes import children, command_of, end_children
from ompy.testing.conformance.plm.rank import PlmRank

check = Collection()

HEAD = "import os, sys\nfrom ompy import MPI\ncomm = MPI.COMM_WORLD\n"
MEETS = HEAD + "print(comm.rank, comm.size, comm.allreduce(comm.rank), os.environ['KIT_SAYS'], os.getcwd(), flush=True)"
FAILS = HEAD + "comm.Barrier()\ncomm.rank == comm.size - 1 and sys.exit(7)\ncomm.recv(source=comm.rank)"
WAITS = HEAD + "comm.Barrier()\nprint('up', flush=True)\ncomm.recv(source=comm.rank)"
FAILURE = 7
SAID = "it's $HOME"


class Running:
    """A job; as a context manager it leaves nothing."""

    def __init__(self, rank: PlmRank, program: str, *options: str) -> None:
        self.rank = rank
        self.path = rank.folder / "job"
        hosts = ",".join(f"{host}:1" for host in rank.hosts)
        words = [sys.executable, "-m", "ompy.cli.ompyrun", "--host", hosts, *options, sys.executable, "-c", program]
        with self.path.open("wb") as output:
            self.process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=os.environ | {"KIT_SAYS": SAID}
            )

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *problem: object) -> None:
        end_children()
        self.process.poll()

    @property
    def lines(self) -> list[str]:
        """What it has printed."""
        return self.path.read_text(errors="replace").splitlines()

    def until(self, condition: Callable[[], bool], clause: str, words: str) -> None:
        """Look until something holds.

        Errors: Breach where it does not for long.
        """
        end = time.monotonic() + self.rank.wire.setting.patience
        while not condition():
            if time.monotonic() > end:
                raise Breach(clause, "\n".join([words, *self.lines]))
            self.rank.alive()
            time.sleep(LOOK)

    def ends(self, status: int, clause: str) -> None:
        """It ends so, and with it everything that it has started."""
        self.until(lambda: self.process.poll() is not None, clause, "the job does not end")
        if self.process.returncode != status:
            raise Breach(clause, "\n".join([f"the job ended with {self.process.returncode}, not {status}", *self.lines]))
        self.nothing_is_left()

    def nothing_is_left(self) -> None:
        """Of those that are adopted by the kit, some may wait to be asked how they have ended."""

        def left() -> list[int]:
            found = children()
            for pid in found:
                os.waitpid(pid, os.WNOHANG)
            return found

        self.until(lambda: not left(), "left", f"the job has ended, and {[command_of(pid) for pid in children()]} run on")


@check("command", "name", "input")
def ranks_on_all_hosts_meet(rank: PlmRank) -> None:
    """In the launcher's folder, with its variables."""
    meet(rank)


@check("agents", ranks=2)
def proxies_start_proxies(rank: PlmRank) -> None:
    """Each the next one."""
    meet(rank, "--mca", "ompyrun_fan_out", "1")


def meet(rank: PlmRank, *options: str) -> None:
    with Running(rank, MEETS, *options) as job:
        job.ends(0, rank.clause)
        total = sum(range(rank.wire.setting.size))
        size = rank.wire.setting.size
        wanted = [f"{number} {size} {total} {SAID} {os.getcwd()}" for number in range(size)]
        if sorted(job.lines) != wanted:
            raise Breach("command", "\n".join(["what the ranks of a job on all hosts were to print differs:", *job.lines]))


@check("end", "left")
def a_rank_that_fails_ends_the_job(rank: PlmRank) -> None:
    with Running(rank, FAILS) as job:
        job.ends(FAILURE, "end")


@check("left")
def a_launcher_that_is_killed_leaves_nothing(rank: PlmRank) -> None:
    with Running(rank, WAITS) as job:
        job.until(lambda: job.lines.count("up") == rank.wire.setting.size, "command", "the ranks do not meet")
        job.process.send_signal(signal.SIGKILL)
        job.ends(-signal.SIGKILL, "left")


@check("unreachable", needs="unreachable")
def a_host_that_can_t_be_reached_ends_the_job(rank: PlmRank) -> None:
    rank.hosts.append(rank.unreachable)
    try:
        with Running(rank, MEETS) as job:
            job.ends(1, "unreachable")
            if not any(rank.unreachable in line for line in job.lines):
                raise Breach("unreachable", f"the job has ended without the name {rank.unreachable}: {job.lines}")
    finally:
        rank.hosts.pop()
