"""Agents, run as `ompyrun` runs them, with probes in place of the proxies."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from ompy.mca.plm import Agent
from ompy.runtime.agents import Agents, RunningAgent
from ompy.runtime.children import proxy_command
from ompy.runtime.loop import Loop
from ompy.testing.conformance.check import Breach
from ompy.testing.conformance.plm.probe import EXIT, KILL, READ, WRITE, Arrival
from ompy.testing.conformance.plm.processes import end_children, reaped

if TYPE_CHECKING:
    from ompy.testing.conformance.plm.rank import PlmRank

PROBE = "ompy.testing.conformance.plm.probe"
LOOK = 0.02  # seconds between two looks


class Probe:
    """One that has called."""

    def __init__(self, connection: Connection[Any, Any], arrival: Arrival) -> None:
        self.connection = connection
        self.arrival = arrival

    def say(self, word: str, value: object = None) -> None:
        self.connection.send((word, value))


class Launch:
    """All agents of a job; as a context manager it ends whatever is left.

    Parameters:
        rank: the kit's process, which stands for `ompyrun`.
        hosts: their names.
        words: of the proxies' command, behind the probe's own.
        told: what the agents get on their standard input.
        command: another one than the probe's.

    Attributes:
        probes: those that have called, by the name of the host that each has found.
        said: what the agents have written, a line each.
    """

    number = 0

    def __init__(
        self,
        rank: PlmRank,
        hosts: Sequence[str],
        words: Sequence[str] = (),
        told: bytes = b"{}\n",
        command: Sequence[str] | None = None,
    ) -> None:
        Launch.number += 1
        self.name = f"launch-{Launch.number}"
        self.rank = rank
        self.hosts = list(hosts)
        self.told = told
        self.loop = Loop()
        self.others: dict[int, Callable[[int], None]] = {}
        self.lines: list[str] = []
        self.agents = Agents(self.loop, self, self.lines.append, lambda agent, how: None)
        self.came: list[Probe] = []
        self.address = str(rank.folder / f"probes-{Launch.number}")
        self.command = [*proxy_command(PROBE), self.address, *words] if command is None else list(command)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.address)
        self.listener.listen(len(self.hosts) + 1)
        self.loop.watch(self.listener.fileno(), self.accept)

    def __enter__(self) -> Launch:
        for agent in self.rank.module.agents(self.hosts, self.command):
            self.start(agent)
        return self

    def __exit__(self, *problem: object) -> None:
        for probe in self.came:
            probe.connection.close()
        self.listener.close()
        end_children()
        for running in self.running:
            if running.output >= 0:
                os.close(running.output)

    def start(self, agent: Agent) -> None:
        """Run one.

        Errors: Breach where there is no such command.
        """
        try:
            self.agents.start(agent, self.told)
        except OSError as error:
            raise Breach(self.rank.clause, f"{agent.words[0]!r} can't be run: {error.strerror}") from None

    # -- as the launcher has it (`ompy.runtime.agents.Parent`)

    def watch_agent(self, pid: int, then: Callable[[int], None]) -> None:
        self.others[pid] = then

    def reap(self) -> None:
        for pid, status in reaped():
            if pid in self.others:
                self.others.pop(pid)(status)

    # -- what happens

    def accept(self) -> None:
        accepted, _ = self.listener.accept()
        connection: Connection[Any, Any] = Connection(accepted.detach())
        self.came.append(Probe(connection, Arrival(*connection.recv())))

    def turn(self) -> None:
        self.loop.turn(LOOK)
        self.reap()
        self.rank.alive()

    def until(self, condition: Callable[[], bool]) -> bool:
        """Go on until something holds; False when it does not for long."""
        end = time.monotonic() + self.rank.patience
        while not condition():
            if time.monotonic() > end:
                return condition()
            self.turn()
        return True

    @property
    def running(self) -> list[RunningAgent]:
        return self.agents.running

    @property
    def stay(self) -> list[RunningAgent]:
        """The agents that have not ended."""
        return [running for running in self.running if running.status is None]

    @property
    def said(self) -> list[str]:
        """What was written; of each line the host, which the launcher puts before it, is taken away."""
        heads = [f"{running.hosts}: " for running in self.running]
        return [next((line.removeprefix(head) for head in heads if line.startswith(head)), line) for line in self.lines]

    @property
    def probes(self) -> dict[str, Probe]:
        return {probe.arrival.name: probe for probe in self.came}

    def gather(self) -> None:
        """Wait for as many probes as there are hosts.

        Errors: Breach of the clause that is examined where they do not come.
        """
        wanted = len(self.hosts)
        if not self.until(lambda: len(self.came) >= wanted):
            came = len(self.came)
            self.end()
            if self.until(lambda: len(self.came) > came):
                raise Breach("together", f"{came} of {wanted} proxies were started, and another one when these had ended")
            ended = [running.hosts for running in self.running if running.status is not None]
            words = f"{came} of {wanted} proxies were started in {self.rank.patience:g} s; agents of {ended} have ended"
            raise Breach(self.rank.clause, "\n".join([words, *self.said]))

    def read(self) -> list[bytes | None]:
        """All of every probe's standard input; None where it does not end."""
        # One agent of many hosts may hand it on to all at the same time alone.
        for probe in self.came:
            probe.say(READ)
        return [probe.connection.recv() if self.until(probe.connection.poll) else None for probe in self.came]

    def write(self, probe: Probe, descriptor: int, data: bytes) -> None:
        probe.say(WRITE, (descriptor, data))

    def end(self, statuses: Sequence[int] = ()) -> None:
        """Have the probes exit, in the order of the hosts, with these or 0; what is negative stands for SIGKILL."""
        for number, host in enumerate(self.hosts):
            if host not in self.probes:
                continue
            status = statuses[number] if number < len(statuses) else 0
            with suppress(BrokenPipeError):
                self.probes[host].say(KILL if status < 0 else EXIT, status)

    def has_ended(self) -> bool:
        """Whether every agent ends in time."""
        return self.until(lambda: not self.stay)
