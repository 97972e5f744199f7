"""The agents that start proxies on other hosts: run, given what the proxies must know, heard, and heard of when they fail."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import time
from functools import partial

from ompy.runtime.keeper import AGENT_VARIABLE, agents_of
from ompy.runtime.signals import name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Protocol

    from ompy.mca.plm import Agent
    from ompy.runtime.loop import Loop

    class Parent(Protocol):
        """Whose children they are."""

        name: str  # of the job

        def watch_agent(self, pid: int, then: Callable[[int], None]) -> None:
            """Have `then` called with the wait status of a child, leader of a process group."""

        def reap(self) -> None:
            """Look for children that have ended."""


# The job is over: an agent that has not ended so long after its proxy is ended.
LINGER = 2.0
PAUSE = 0.005


class RunningAgent:
    """One that has been started."""

    def __init__(self, agent: Agent, pid: int, output: int) -> None:
        self.agent = agent
        self.pid = pid
        self.output = output
        self.partial = b""
        self.status: int | None = None

    @property
    def hosts(self) -> str:
        return f"host {', '.join(self.agent.hosts)}"


class Agents:
    """All of a job.

    Parameters:
        loop: watches what they write.
        local: reaps them.
        say: takes lines for people.
        on_end: told of one that has ended, in words, with what it was.
    """

    def __init__(self, loop: Loop, local: Parent, say: Callable[[str], None], on_end: Callable[[Agent, str], None]) -> None:
        self.loop = loop
        self.local = local
        self.say = say
        self.on_end = on_end
        self.running: list[RunningAgent] = []

    def start(self, agent: Agent, told: bytes) -> None:
        """Run one.

        Parameters:
            told: what it hands on to its proxies' standard input.

        Errors: OSError when it can't be started.
        """
        memory = os.memfd_create("ompy-proxy-input", os.MFD_CLOEXEC)
        output, theirs = os.pipe()
        try:
            with open(memory, "wb", closefd=False) as stream:
                stream.write(told)
            os.lseek(memory, 0, os.SEEK_SET)
            # Out of the terminal's reach: Ctrl-C is the launcher's to pass on.
            pid = os.posix_spawnp(
                agent.words[0],
                agent.words,
                os.environ | {AGENT_VARIABLE: agents_of(self.local.name)},
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, memory, 0),
                    (os.POSIX_SPAWN_DUP2, theirs, 1),
                    (os.POSIX_SPAWN_DUP2, theirs, 2),
                ],
                setsid=True,
                setsigmask=(),
                setsigdef=(signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT),
            )
        except OSError:
            os.close(output)
            raise
        finally:
            os.close(memory)
            os.close(theirs)
        os.set_blocking(output, False)
        running = RunningAgent(agent, pid, output)
        self.running.append(running)
        self.local.watch_agent(pid, partial(self.ended, running))
        self.loop.watch(output, partial(self.hear, running))

    def hear(self, running: RunningAgent) -> None:
        try:
            data = os.read(running.output, 65536)
        except BlockingIOError:
            return
        *lines, running.partial = (running.partial + data).split(b"\n")
        if not data or len(running.partial) > 65536:
            lines, running.partial = [*lines, running.partial], b""
        for line in lines:
            if line.strip():
                self.say(f"{running.hosts}: {line.decode('utf-8', 'replace').rstrip()}")
        if not data:
            self.loop.unwatch(running.output)
            os.close(running.output)
            running.output = -1

    def ended(self, running: RunningAgent, status: int) -> None:
        running.status = status
        if running.output >= 0:
            self.hear(running)
        code = os.waitstatus_to_exitcode(status)
        words = f"was killed by {name_of(-code)}" if code < 0 else f"exited with code {code}"
        self.on_end(running.agent, f"{shlex.join(running.agent.words[:-1][:4])} ... {words}")

    def end(self, lost: Collection[str]) -> None:
        """Wait for them, not for ever, nor for one that may not be killed.

        Parameters:
            lost: hosts that can't be reached any more: an agent that has no other one is not waited for.
        """
        self.kill(lost)
        self.linger()
        self.kill([host for running in self.running for host in running.agent.hosts])
        self.linger()
        for running in self.running:
            if running.output >= 0:
                self.hear(running)

    def linger(self) -> None:
        deadline = time.monotonic() + LINGER
        while any(running.status is None for running in self.running) and time.monotonic() < deadline:
            self.local.reap()
            self.loop.turn(PAUSE)

    def kill(self, hosts: Collection[str]) -> None:
        """End those that have no other hosts than these."""
        for running in self.running:
            if running.status is None and set(hosts).issuperset(running.agent.hosts):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(running.pid, signal.SIGKILL)
