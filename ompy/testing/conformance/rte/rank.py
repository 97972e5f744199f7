"""A rank of a job that the component under test is the run-time environment of."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NoReturn

from ompy.mca.rte import Rte
from ompy.testing.conformance.answer import answered
from ompy.testing.conformance.check import Breach, Check
from ompy.testing.conformance.mpi.rank import MpiRank
from ompy.testing.conformance.wire import LEAVING, SIGN, Wire

PAUSE, LOOK = 0.002, 0.05  # seconds between two looks, at this process's own and at another one
# Of the silence that a check may keep: a rank that waits in vain says so before the kit does.
PARTS = 3
ASKING = "ompy.testing.conformance.rte.asking"


def ask(name: str) -> tuple[Rte | None, str]:
    """The module that the component makes here, or the reason why not."""
    return answered("rte", name, Rte, "open")


class RteRank:
    """One rank.

    Attributes:
        rte: the module under test.
        launcher: words that start a job of one rank; none where each process is a job of its own.
        size: ranks of the job under test.
        processes: how many the kit has started.
        patience: seconds in which what must happen does.
    """

    def __init__(self, wire: Wire) -> None:
        from ompy.testing.conformance.job import Order

        self.wire = wire
        self.clause = self.sole = ""
        setting = wire.setting
        self.patience = setting.patience / PARTS
        module, reason = ask(setting.component)
        if module is None:
            raise Breach("open", f"it does not serve a rank that its launcher has started: {reason}")
        self.rte = module
        self.processes = setting.size
        self.launcher = Order("rte", (setting.component,), "contract", 1, (), 0, 0, {}).launcher
        if self.launcher:
            wire.is_rank(self.rte.rank)
        self.rank, self.size = self.rte.rank, self.rte.size

    def begin(self, check: Check) -> None:
        self.clause = check.clauses[0]
        self.alive()

    def step(self) -> None:
        self.wire.connection.poll(0.1)

    def alive(self, clause: str = "") -> None:
        """A sign of life, with the clause that is examined from here on."""
        self.clause = clause or self.clause
        self.wire.say(SIGN, self.clause)

    def meet(self, value: object = None) -> list[Any]:
        """Every process's value, out of band."""
        return self.wire.exchange(value)

    def until(self, condition: Callable[[], bool]) -> bool:
        """Look until something holds; False when it does not for long."""
        end = time.monotonic() + self.patience
        while not condition():
            if time.monotonic() > end:
                return condition()
            time.sleep(PAUSE)
        return True

    def fence(self, **put: bytes) -> None:
        """Publish, and meet the others."""
        for key, value in put.items():
            self.rte.put(key, value)
        self.rte.commit_and_fence()

    def elsewhere(self, *command: str) -> dict[str, Any]:
        """What the component says in a program that this rank starts, by way of `command`; see `rte/asking.py`."""
        words = [*command, sys.executable, "-m", ASKING, self.wire.setting.component]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, close_fds=False) as process:
            patience = self.wire.setting.patience
            end = time.monotonic() + patience
            while process.poll() is None:
                self.alive()
                if time.monotonic() > end:
                    process.kill()
                    raise Breach(self.clause, f"the component's query in {words} did not return in {patience:g} s")
                time.sleep(LOOK)
            output, errors = process.communicate()
        if process.returncode:
            raise Breach(self.clause, f"{words} ended with {process.returncode}: {errors.strip()}")
        told: dict[str, Any] = json.loads(output.splitlines()[-1])
        return told

    def leave(self) -> None:
        """All together: what becomes of these processes is the job's end."""
        self.wire.say(LEAVING)
        self.meet()

    def stay(self) -> NoReturn:
        """Until something ends this process; a breach when nothing does."""
        time.sleep(self.patience)
        raise Breach(self.clause, f"rank {self.rank} still runs after {self.patience:g} s")


class RteProgram(MpiRank):
    """A rank of an MPI program."""

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire)
        if wire.setting.size == self.size:
            wire.is_rank(self.rank)
