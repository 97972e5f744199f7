"""The other hosts of a job: their proxies started, heard, asked and ended."""

from __future__ import annotations

import os
import struct
import time

from ompy.runtime.children import Children
from ompy.runtime.reception import addresses
from ompy.runtime.remote_ranks import RemoteRanks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ompy.mca.plm import Plm
    from ompy.runtime.launcher import Launcher
    from ompy.runtime.link import Header

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
        fan_out: proxies that one process starts; 0 for all.
    """

    def __init__(self, launcher: Launcher, names: Sequence[str], limit: float, start_limit: float, fan_out: int) -> None:
        self.launcher = launcher
        self.names = list(names)
        self.limit = limit
        self.start_limit = start_limit
        self.fan_out = fan_out
        self.remote: dict[str, RemoteRanks] = {}
        self.children = Children(launcher.loop, launcher.local, launcher.secret, limit, self.names, fan_out, self)
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
            directory = os.getcwd()
        except OSError:
            launcher.fail(1, "the working directory is gone, and ranks on other hosts can't start in it: go to another one")
            return False
        try:
            told = {
                "secret": launcher.secret.hex(),
                "name": launcher.job.name,
                "environment": dict(os.environ),
                "directory": directory,
                "limit": self.limit,
                "fan_out": self.fan_out,
            }
            self.children.start(plm, told)
        except OSError as error:
            launcher.fail(1, f"proxies can't be started: {error}")
            return False
        deadline = time.monotonic() + self.start_limit
        while launcher.exit_code is None and not self.are_here:
            if time.monotonic() > deadline:
                launcher.fail(1, self.missing())
            launcher.turn(deadline - time.monotonic() + 0.01)
        return launcher.exit_code is None

    def missing(self) -> str:
        """Who has not called back, in words: of a branch the first, whom the others wait for."""
        limit = f"{self.start_limit:g} s (--mca ompyrun_start_timeout)"
        missing = [name for name in self.children.branches if name not in self.remote]
        where = f"{', '.join(addresses())}, port {self.children.port}"
        if not missing:
            missing = [name for name in self.names if name not in self.remote]
            where = "a proxy that has (--mca ompyrun_fan_out 0: ompyrun starts all itself)"
        return f"host {', '.join(missing)}: no proxy has called back within {limit}; it was to call {where}"

    @property
    def are_here(self) -> bool:
        return all(name in self.remote and self.remote[name].topology is not None for name in self.names)

    # -- as children are told (`children.Superior`)

    def on_frame(self, host: str, header: Header, data: bytes) -> None:
        if host not in self.remote:
            self.remote[host] = RemoteRanks(host, self)
        self.remote[host].on_frame(header, data)

    def on_unreachable(self, hosts: list[str], words: str) -> None:
        if self.launcher.exit_code is None:
            self.launcher.fail(1, f"host {', '.join(hosts)}: no proxy there: {words}")

    def on_lost(self, hosts: list[str], reason: str) -> None:
        lost = [name for name in hosts if name not in self.remote or self.remote[name].lose()]
        self.asked.difference_update(lost)
        if lost:
            self.launcher.on_hosts_lost(lost, reason)

    def say(self, text: str) -> None:
        self.launcher.streams.say(text)

    def turn(self, limit: float | None = None) -> None:
        self.launcher.turn(limit)

    # -- what is asked of all

    def send(self, command: str, **header: Any) -> None:
        self.children.send_all(command, **header)

    def pay(self) -> None:
        for host in self.remote.values():
            host.pay()

    def ask_boards(self, stacks: bool, then: Callable[[], None]) -> None:
        """Have what other hosts know of their ranks written on the launcher's board, and then `then` called."""
        self.ticket += 1
        self.asked = {host.name for host in self.remote.values() if host.is_open}
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

    def end(self, has_failed: Callable[[], bool]) -> None:
        """Whatever runs there ends at once, and then the proxies."""
        self.children.end(has_failed, True)
