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
from trial import Outcome, run

from ompy.runtime.orphans import adopt_orphans

if TYPE_CHECKING:
    from collections.abc import Mapping
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkProcess

    from environment import Environment

TURN = 0.5
# The start of a job waits for times as well as for work: whole, so that none of them passes in the others' turns.
FIRST = 6.0
GRACE = 10.0
FORK = multiprocessing.get_context("fork")


class Contestant:
    """A run of a trial over one library, in a process of its own, which begins with its first turn."""

    def __init__(self, client: Client, trial: Trial, environment: Environment, library: str) -> None:
        self.library = library
        self.process: ForkProcess | None = None
        self.seconds = 0.0
        self.trial = (client, trial, environment, library)

    def start(self) -> ForkProcess:
        """The other end of the pipe is in no process that is forked later, so that it is closed when this one has died."""
        self.told, tells = FORK.Pipe(duplex=False)
        with tells:
            process = FORK.Process(target=self.work, args=(tells,))
            process.start()
        return process

    def work(self, tells: Connection) -> None:
        adopt_orphans()
        tells.send(run(*self.trial))

    def has_a_turn(self) -> Outcome | None:
        """Let it run for a while; what became of it, if it has ended."""
        begin = time.perf_counter()
        turn = TURN
        if self.process is None:
            self.process, turn = self.start(), FIRST
        else:
            self.signal(self.process, signal.SIGCONT)
        ended = self.told.poll(turn)
        if not ended:
            self.signal(self.process, signal.SIGSTOP)
        self.seconds += time.perf_counter() - begin
        if not ended:
            return None
        try:
            outcome: Outcome | None = self.told.recv()
        except EOFError:
            outcome = None
        self.process.join()
        if outcome is None:
            raise RuntimeError(f"the run over {self.library} ended with exit status {self.process.exitcode}")
        return outcome._replace(seconds=self.seconds)

    @staticmethod
    def signal(whole: ForkProcess, number: signal.Signals) -> None:
        """To it and its children: parents first, so that none has a child that is not met."""
        left = [psutil.Process(whole.pid)]
        while left:
            process = left.pop()
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)
                left += process.children()

    def end(self) -> None:
        if self.process is None:
            return
        if self.process.is_alive():
            self.signal(self.process, signal.SIGCONT)
            self.process.terminate()
            self.process.join(GRACE)
        if self.process.is_alive():
            self.signal(self.process, signal.SIGKILL)
            self.process.join()
        self.told.close()


def run_in_turns(client: Client, trial: Trial, environments: Mapping[str, Environment]) -> dict[str, Outcome]:
    """What became of it over each library; its seconds are those of its turns, in which its files are laid out as well."""
    patient = trial._replace(seconds=trial.seconds * len(environments))
    contestants = [Contestant(client, patient, environment, library) for library, environment in environments.items()]
    found: dict[str, Outcome] = {}
    try:
        while len(found) < len(contestants):
            for contestant in contestants:
                if contestant.library not in found and (outcome := contestant.has_a_turn()):
                    found[contestant.library] = outcome
    finally:
        for contestant in contestants:
            contestant.end()
    return found
