"""The other hosts of a job: their proxies started, heard, asked and ended."""

from __future__ import annotations

import json
import os
import struct
import sys
import time

from ompy.runtime.agents import Agents
from ompy.runtime.reception import Reception, addresses
from ompy.runtime.remote_ranks import RemoteRanks

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence
    from typing import Any

    from ompy.mca.plm import Agent, Plm
    from ompy.runtime.launcher import Launcher

# All hosts together have so long to say what their ranks do.
ANSWERS = 1.5
# Where in a record of the board the wait's beginning is (ompy/core/board.pxd).
SINCE = 40


class Hosts:
    """Every host of the job but this one.

    Parameters:
        launcher: whose they are.
        names: of the hosts.
        limit: seconds of silence after which a host is lost.
        start_limit: seconds that a proxy has to call back.
    """

    def __init__(self, launcher: Launcher, names: Sequence[str], limit: float, start_limit: float) -> None:
        self.launcher = launcher
        self.names = list(names)
        self.limit = limit
        self.start_limit = start_limit
        self.remote: dict[str, RemoteRanks] = {}
        self.agents = Agents(launcher.loop, launcher.local, launcher.streams.say, self.on_agent_end)
        self.ticket = 0
        self.asked: set[str] = set()
        self.then: Callable[[], None] | None = None
        self.used: dict[int, float] = {}
        self.stacks: list[tuple[int, int, str]] = []

    # -- start

    def start(self, plm: Plm) -> bool:
        """Start the proxies and wait until all have called; False, with a message, when one does not."""
        launcher = self.launcher
        try:
            self.reception = Reception(launcher.loop, launcher.secret, self.names, self.admit)
            told = {
                "secret": launcher.secret.hex(),
                "addresses": addresses(),
                "port": self.reception.port,
                "name": launcher.job.name,
                "environment": dict(os.environ),
                "directory": os.getcwd(),
                "limit": self.limit,
            }
            for agent in plm.agents(self.names, self.command()):
                self.start_agent(agent, json.dumps(told).encode() + b"\n")
        except OSError as error:
            launcher.fail(1, f"proxies can't be started: {error}")
            return False
        deadline = time.monotonic() + self.start_limit
        while launcher.exit_code is None and not self.are_here:
            if time.monotonic() > deadline:
                missing = ", ".join(name for name in self.names if name not in self.remote)
                where = f"{', '.join(addresses())}, port {self.reception.port}"
                limit = f"{self.start_limit:g} s (--mca ompyrun_start_timeout)"
                launcher.fail(1, f"host {missing}: no proxy has called back within {limit}; it was to call {where}")
            launcher.turn(deadline - time.monotonic() + 0.01)
        self.reception.close()
        return launcher.exit_code is None

    @property
    def are_here(self) -> bool:
        return all(name in self.remote and self.remote[name].topology is not None for name in self.names)

    @staticmethod
    def command(module: str = "ompy.runtime.proxy") -> list[str]:
        """What runs a proxy, by this interpreter's path: the other hosts have ompy where this one has it."""
        path = os.environ.get("PYTHONPATH")
        words = [sys.executable, "-m", module]
        return ["env", f"PYTHONPATH={path}", *words] if path else words

    def start_agent(self, agent: Agent, told: bytes) -> None:
        try:
            self.agents.start(agent, told)
        except OSError as error:
            raise OSError(f"{agent.words[0]!r}: {error.strerror}") from None

    def admit(self, name: str, connection: socket.socket, outgoing: bytes, incoming: bytes) -> None:
        self.remote[name] = RemoteRanks(name, self, connection, outgoing, incoming, self.limit)

    def on_agent_end(self, agent: Agent, words: str) -> None:
        """An agent may leave its proxies alone; one that ends before they have called has failed."""
        missing = [name for name in agent.hosts if name not in self.remote]
        if missing and self.launcher.exit_code is None:
            self.launcher.fail(1, f"host {', '.join(missing)}: no proxy there: {words}")

    # -- what is asked of all

    def send(self, command: str, **header: Any) -> None:
        for host in self.remote.values():
            host.link.send(command, **header)

    def pay(self) -> None:
        for host in self.remote.values():
            host.pay()

    def ask_boards(self, stacks: bool, then: Callable[[], None]) -> None:
        """Have what other hosts know of their ranks written on the launcher's board, and then `then` called."""
        self.ticket += 1
        self.asked = {host.name for host in self.remote.values() if host.link.is_open}
        self.then = then
        self.stacks = []
        self.send("board", ticket=self.ticket, stacks=stacks)
        self.launcher.loop.set_timer("boards", ANSWERS, self.go_on)
        if not self.asked:
            self.go_on()

    def on_board(
        self,
        host: RemoteRanks,
        ticket: int,
        ranks: list[int],
        now: int,
        records: bytes,
        used: dict[int, float],
        stacks: list[tuple[int, int, str]],
    ) -> None:
        if ticket != self.ticket or not ranks:
            return
        self.used |= used
        self.stacks += stacks
        board = self.launcher.local.boards[0]
        width = len(records) // len(ranks)
        # Clocks of hosts begin at different times.
        later = time.monotonic_ns() - now
        for index, rank in enumerate(ranks):
            record = bytearray(records[index * width : (index + 1) * width])
            if record:
                struct.pack_into("<q", record, SINCE, struct.unpack_from("<q", record, SINCE)[0] + later)
                os.pwrite(board, record, rank * width)
        self.asked.discard(host.name)
        if not self.asked:
            self.go_on()

    def go_on(self) -> None:
        """All have answered, or the time for it is over."""
        then, self.then = self.then, None
        self.launcher.loop.drop_timer("boards")
        if then is not None:
            if self.asked:
                self.launcher.streams.say(f"host {', '.join(sorted(self.asked))} does not say what its ranks do")
            then()

    # -- the end

    def on_lost(self, host: RemoteRanks, reason: str) -> None:
        self.asked.discard(host.name)
        self.launcher.on_host_lost(host.name, reason)

    def end(self, has_failed: bool) -> None:
        """Whatever runs there ends at once, and then the proxies."""
        if hasattr(self, "reception"):
            self.reception.close()
        self.send("end", has_failed=has_failed)
        while any(host.link.is_open and not host.is_done for host in self.remote.values()):
            self.launcher.turn()
        for host in self.remote.values():
            host.link.close()
        self.agents.end()
