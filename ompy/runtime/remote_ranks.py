"""The launcher's side of a proxy: the ranks of another host."""

from __future__ import annotations

import os
import signal
from functools import partial

from ompy.runtime.pmi_server import Member, Session
from ompy.runtime.topology import Topology

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ompy.runtime.hosts import Hosts
    from ompy.runtime.job import Share
    from ompy.runtime.link import Header

PIECE = 65536


class HostAtBarrier(Member):
    """All ranks of a host, which have come to a barrier."""

    def __init__(self, host: RemoteRanks, job: int, ranks: Sequence[int]) -> None:
        self.host = host
        self.job = job
        self.ranks = ranks

    def release(self) -> None:
        self.host.send("barrier_out", job=self.job)


class RemoteRanks:
    """What runs on one other host.

    Parameters:
        name: the host's, as the command line has it.
        hosts: all of the job's, which know the launcher.

    Attributes:
        topology: the processors that its ranks may use; None until the proxy has said so.
        is_open: it can be reached.
        is_done: the proxy has ended all that was here.
    """

    def __init__(self, name: str, hosts: Hosts) -> None:
        self.name = name
        self.hosts = hosts
        self.launcher = hosts.launcher
        self.topology: Topology | None = None
        self.is_open = True
        self.is_done = False
        self.sessions: dict[tuple[int, int], Session] = {}
        self.programs: dict[tuple[int, int], int] = {}
        self.owed = 0
        self.input = -1

    # -- what is asked

    def send(self, command: str, data: bytes = b"", /, **header: Any) -> None:
        self.hosts.children.send(self.name, command, data, **header)

    def start(self, share: Share, name: str, stdin: int | None) -> None:
        """Start ranks of a job of that name."""
        for task in share.tasks:
            self.programs[share.job, task.rank] = task.program
        self.send("start", share=share.as_data(), name=name, stdin=stdin)

    def give_input(self, descriptor: int) -> None:
        """Hand on what can be read there, at the pace of its readers."""
        self.input = os.dup(descriptor)
        self.launcher.loop.watch(self.input, self.read_input)

    def read_input(self) -> None:
        try:
            data = os.read(self.input, PIECE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self.launcher.loop.unwatch(self.input)
        self.send("input", data)
        if not data:
            self.end_input()

    def end_input(self) -> None:
        if self.input >= 0:
            self.launcher.loop.unwatch(self.input)
            os.close(self.input)
            self.input = -1

    def pay(self) -> None:
        """The output that was taken is out: the host may send as much again."""
        if self.owed:
            self.send("taken", count=self.owed)
            self.owed = 0

    # -- what the proxy says

    def on_frame(self, header: Header, data: bytes) -> None:
        command = header.pop("cmd")
        getattr(self, f"hear_{command}")(*([data] if command in ("output", "board") else []), **header)

    def lose(self) -> bool:
        """Nothing comes from there any more; False where all has come."""
        self.is_open = False
        self.end_input()
        return not self.is_done

    def hear_hello(self, topology: dict[str, list[str]]) -> None:
        self.topology = Topology.from_data(topology)

    def hear_lost(self, hosts: list[str], reason: str) -> None:
        """Of those behind this host."""
        self.hosts.on_lost(hosts, reason)

    def hear_unreachable(self, hosts: list[str], words: str) -> None:
        where = f"on host {self.name} (--mca ompyrun_fan_out 0: ompyrun starts all itself)"
        self.hosts.on_unreachable(hosts, f"{words}, {where}")

    def hear_say(self, text: str) -> None:
        self.hosts.say(text)

    def hear_started(self, job: int, rank: int, pid: int) -> None:
        self.launcher.on_started(job, rank, pid)

    def hear_not_started(self, job: int, rank: int, code: int, message: str) -> None:
        self.launcher.on_not_started(job, rank, code, message)

    def hear_abort(self, job: int, rank: int, code: int, message: str) -> None:
        self.launcher.on_abort(job, rank, code, message)

    def hear_misuse(self, job: int, rank: int, message: str) -> None:
        self.launcher.on_misuse(job, rank, message)

    def hear_refused(self, job: int, rank: int, is_left: bool) -> None:
        self.launcher.on_refused(job, rank, is_left)

    def hear_exit(self, **what: Any) -> None:
        self.launcher.on_exit(**what)
        self.launcher.on_barrier(what["job"])

    def hear_signalled(self, number: int) -> None:
        self.launcher.fail(128 + number, f"host {self.name}: the proxy got {signal.Signals(number).name}, ending the job")

    def hear_output(self, data: bytes, job: int, rank: int, stream: int) -> None:
        self.launcher.streams.took((job, rank, stream), data)
        self.owed += len(data)

    def hear_ended(self, job: int, rank: int, stream: int) -> None:
        self.launcher.streams.ended((job, rank, stream))

    def hear_input_taken(self, more: bool) -> None:
        if not more:
            self.end_input()
        elif self.input >= 0:
            self.launcher.loop.watch(self.input, self.read_input)

    def hear_barrier(self, job: int, ranks: list[int]) -> None:
        if job not in self.launcher.spaces:
            return  # the last rank of a spawned job has ended, and was the one that those at the barrier waited for
        self.launcher.spaces[job].enter_barrier(HostAtBarrier(self, job, ranks))
        self.launcher.on_barrier(job)

    def hear_get(self, job: int, key: str) -> None:
        self.launcher.spaces[job].get(key, lambda value: self.send("value", job=job, key=key, value=value))

    def hear_value(self, job: int, key: str, value: str | None) -> None:
        if job in self.launcher.spaces:  # else whoever has asked has ended, and with it a spawned job
            self.launcher.spaces[job].arrived(key, value)

    def hear_pmi(self, job: int, rank: int, line: str) -> None:
        """A command that concerns the whole job: the rank has a session here too, which answers it."""
        if (job, rank) not in self.sessions:
            send = partial(self.answer, job, rank)
            self.sessions[job, rank] = Session(self.launcher.spaces[job], rank, self.programs[job, rank], send)
        try:
            self.sessions[job, rank].obey(line)
        except ValueError as error:
            self.launcher.on_misuse(job, rank, str(error))

    def answer(self, job: int, rank: int, data: bytes) -> None:
        self.send("answer", job=job, rank=rank, line=data.decode("utf-8", "surrogateescape").rstrip("\n"))

    def hear_board(
        self,
        data: bytes,
        ticket: int,
        ranks: list[int],
        now: int,
        used: list[tuple[int, float]],
        stacks: list[tuple[int, int, str]],
    ) -> None:
        self.hosts.on_board(self, ticket, ranks, now, data, dict(used), stacks)

    def hear_done(self) -> None:
        self.is_done = True
        self.end_input()
