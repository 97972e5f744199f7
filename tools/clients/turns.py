"""A trial over several libraries at once, of which one runs and the others are stopped: for times that are near to each other.

    ompy        ######......###...###...###         a turn: FIRST seconds, later TURN seconds
    Open MPI    ......######...###...###...###      a library's time: that of its turns

Processors are shared with other machines, whose work comes and goes within seconds and minutes, and makes a run of a minute up
to a fifth slower than the one before it.  Turns this short all have the same of it.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import time
from typing import TYPE_CHECKING

import psutil
from client import Client, Trial
from trial import run

from ompy.runtime.orphans import adopt_orphans

if TYPE_CHECKING:
    from collections.abc import Mapping

    from environment import Environment

TURN = 0.5
# The start of a job waits for times as well as for work: whole, so that none of them passes in the others' turns.
FIRST = 6.0
GRACE = 10.0
FORK = multiprocessing.get_context("fork")


class Contestant:
    """A run of a trial over one library, in a process of its own."""

    def __init__(self, client: Client, trial: Trial, environment: Environment, library: str) -> None:
        self.library = library
        self.process = FORK.Process(target=self.work, args=(client, trial, environment, library))
        self.seconds = 0.0

    @staticmethod
    def work(client: Client, trial: Trial, environment: Environment, library: str) -> None:
        adopt_orphans()
        run(client, trial, environment, library)

    def has_a_turn(self) -> bool:
        """Let it run for a while; True: it has ended."""
        begin = time.perf_counter()
        if self.process.pid is None:
            self.process.start()
        else:
            self.signal(signal.SIGCONT)
        self.process.join(TURN if self.seconds else FIRST)
        if self.process.exitcode is None:
            self.signal(signal.SIGSTOP)
        self.seconds += time.perf_counter() - begin
        if self.process.exitcode:
            raise RuntimeError(f"the run over {self.library} failed with exit status {self.process.exitcode}")
        return self.process.exitcode is not None

    def signal(self, number: signal.Signals) -> None:
        """To all of its processes: parents first, so that none has a child that is not met."""
        left = [psutil.Process(self.process.pid)]
        while left:
            process = left.pop()
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)
                left += process.children()

    def end(self) -> None:
        if self.process.is_alive():
            self.signal(signal.SIGCONT)
            self.process.terminate()
            self.process.join(GRACE)
        if self.process.is_alive():
            self.signal(signal.SIGKILL)
            self.process.join()


def run_in_turns(client: Client, trial: Trial, environments: Mapping[str, Environment]) -> dict[str, float]:
    """Seconds of each library's turns, in which its files are laid out and taken away as well."""
    patient = trial._replace(seconds=trial.seconds * len(environments))
    contestants = [Contestant(client, patient, environment, library) for library, environment in environments.items()]
    running = list(contestants)
    try:
        while running:
            running = [contestant for contestant in running if not contestant.has_a_turn()]
    finally:
        for contestant in contestants:
            contestant.end()
    return {contestant.library: contestant.seconds for contestant in contestants}
