"""`python -m ompy.runtime.proxy`: runs the ranks of one host for a launcher on another one.

    launcher                              proxy                              ranks of this host
       |  standard input of the agent:      |
       |  secret, where to call, environment|
       |  <- hello: processors of the host  |
       |  start: a share of the job      -> |  -> started, each served PMI
       |  <- get 7.card.0, value ->         |  <- a value of a rank elsewhere, at first contact; kept here for the next who asks
       |  <- barrier, barrier_out ->        |  once all ranks of the host have come
       |  <- output, taken ->               |  <- what they write, as far ahead as `streams.HIGH`
       |  <- exit, abort, misuse            |
       |  end ->  <- done                   |

Where a job has more hosts than one process is to start proxies for, a proxy has children of its own (`children.py`), to which
it hands on what is for them, and from which it passes everything on.

Values that a rank publishes under its own number stay here; they leave when somebody elsewhere asks.
Whatever else becomes of the launcher, or of the way to it, ends the ranks, and then this process.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys

from ompy.runtime.job import Job, Share
from ompy.runtime.link import Link
from ompy.runtime.local_ranks import LocalRanks
from ompy.runtime.loop import Loop
from ompy.runtime.pmi_server import KeyValueSpace, Session
from ompy.runtime.shared_input import SharedInput
from ompy.runtime.signals import SignalQueue
from ompy.runtime.streams import Stream, Streams
from ompy.runtime.topology import Topology

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ompy.runtime.children import Children
    from ompy.runtime.link import Header

# Of the launcher's environment, what is about its own host or session: here, what the proxy was started with counts.
OWN = ("HOSTNAME", "HOST", "SSH_", "XDG_", "DBUS_", "TERM_SESSION", "SLURM_", "SLURMD_", "PMI_", "PMIX_", "TMPDIR")
# Each of the launcher's addresses has so many seconds to answer.
CALL = 5.0
PROGRAM = "ompy.runtime.proxy"
# What is asked of the launcher of the whole job.
COMMON = ("publish_name", "lookup_name", "unpublish_name", "get_universe_size", "spawn", "connected")


class HostSpace(KeyValueSpace):
    """What ranks of this host have published, and what was fetched for them.

    Parameters:
        share: the ranks.
        name: the job's.
        link: to the launcher.
    """

    def __init__(self, share: Share, name: str, link: Link) -> None:
        super().__init__(name, share.size)
        self.job = share.job
        self.here = {task.rank for task in share.tasks}
        # Ranks that have ended without MPI: nobody waits for them, it is for the launcher to judge.
        self.absent: set[int] = set()
        self.has_told = False
        self.link = link
        self.forwarded: dict[int, Session] = {}

    def look_who_waits(self) -> None:
        if self.waiting and not self.has_told and self.here <= {*self.waiting_ranks, *self.absent, *self.failed}:
            self.has_told = True
            self.link.send("barrier", job=self.job, ranks=self.waiting_ranks)

    def release(self) -> None:
        self.has_told = False
        super().release()

    def fetch(self, key: str) -> bool:
        self.link.send("get", job=self.job, key=key)
        return True

    def concerns_others(self, rank: int, command: str, fields: dict[str, str]) -> bool:
        return command in COMMON or (command == "put" and not fields.get("key", "").startswith(f"{rank}."))

    def cancel_spawn(self, session: Session, line: str) -> None:
        self.link.send("pmi", job=self.job, rank=session.rank, line=line)

    def forward(self, session: Session, line: str) -> None:
        self.forwarded[session.rank] = session
        self.link.send("pmi", job=self.job, rank=session.rank, line=line)


class ProxyStreams(Streams):
    """What ranks here write goes to the launcher; their input comes from there, through descriptor 0."""

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self.link: Link
        self.stdin: int | None = None
        self.shared: SharedInput | None = None
        self.unacknowledged = 0
        self.is_read = True
        # Input on its way to descriptor 0.
        self.input = b""
        self.feed = -1

    def took(self, stream: Stream, data: bytes) -> None:
        job, rank, target = stream
        self.unacknowledged += len(data)
        self.link.send("output", data, job=job, rank=rank, stream=target)

    def ended(self, stream: Stream) -> None:
        job, rank, target = stream
        self.link.send("ended", job=job, rank=rank, stream=target)

    def write_out(self) -> None:
        """The link does so by itself."""

    def pending(self) -> int:
        return self.unacknowledged if self.has_reader else 0

    @property
    def has_reader(self) -> bool:
        """Somebody takes what is written here, as far as can be known."""
        return self.is_read and self.link.is_open

    # -- input

    def expect_input(self, stdin: int | None, ranks: Sequence[int]) -> None:
        """Before ranks are started: whether one of them, or each, is to read."""
        self.stdin = stdin
        if stdin == Job.EVERY_RANK or stdin in ranks:
            reader, self.feed = os.pipe()
            os.dup2(reader, 0)
            os.close(reader)
            os.set_blocking(self.feed, False)
            self.shared = SharedInput(self.loop) if stdin == Job.EVERY_RANK else None

    def input_of(self, rank: int) -> int | None:
        if self.shared is not None:
            return self.shared.reader()
        return 0 if rank == self.stdin else None

    def begin_input(self) -> None:
        if self.shared is not None:
            self.shared.begin()
        elif self.feed >= 0:
            # The rank's copy alone is left: when that is closed, nobody reads.
            null = os.open(os.devnull, os.O_RDONLY)
            os.dup2(null, 0)
            os.close(null)

    def take_input(self, data: bytes) -> None:
        """From the launcher, which sends the rest when this is written."""
        if self.feed < 0:
            return
        if not data:
            os.close(self.feed)
            self.feed = -1
            return
        self.input = data
        self.write_input()

    def write_input(self) -> None:
        try:
            while self.input:
                self.input = self.input[os.write(self.feed, self.input) :]
        except BlockingIOError:
            self.loop.watch_writable(self.feed, self.write_input)
            return
        except BrokenPipeError:
            self.input = b""
            self.loop.unwatch(self.feed)
            os.close(self.feed)
            self.feed = -1
            self.link.send("input_taken", more=False)
            return
        self.loop.unwatch(self.feed)
        self.link.send("input_taken", more=True)


class Proxy:
    """The ranks of this host, and the link to their launcher (`local_ranks.Overseer`).

    Parameters:
        told: what came on standard input.
        name: this host's, as the launcher has it.
    """

    def __init__(self, told: dict[str, Any], name: str) -> None:
        self.name = name
        self.told = told
        self.loop = Loop()
        self.streams = ProxyStreams(self.loop)
        self.spaces: dict[int, HostSpace] = {}
        self.children: Children | None = None
        self.is_over = False
        self.has_failed = True

    def run(self) -> None:
        """From the call to the launcher to the end of everything here."""
        from ompy.runtime.reception import call

        secret = bytes.fromhex(self.told["secret"])
        connection, up, down = call(self.told["addresses"], self.told["port"], secret, self.name, CALL)
        self.signals = SignalQueue()
        self.loop.watch(self.signals.descriptor, self.on_signal)
        self.link = Link(self.loop, connection, up, down, self.told["limit"], self.take, self.leave)
        self.streams.link = self.link
        self.local = LocalRanks(self.loop, self.streams, self, self.told["name"])
        self.link.send("hello", topology=Topology.here().as_data())
        try:
            if behind := self.told["behind"].get(self.name):
                self.start_children(behind)
            while not self.is_over:
                self.turn()
        finally:
            if self.children is not None:
                self.local.signal(signal.SIGKILL)
                self.children.end(lambda: self.has_failed, self.streams.has_reader)
            self.local.end()
            self.streams.drain(lambda: self.has_failed)
            self.local.close()
            self.link.send("done")
            self.link.flush(self.told["limit"])

    def environment(self) -> dict[str, str]:
        """What ranks here get, and the agents that start further proxies."""
        own = {name: value for name, value in os.environ.items() if name.startswith(OWN)}
        return own | {name: value for name, value in self.told["environment"].items() if not name.startswith(OWN)}

    def start_children(self, hosts: Sequence[str]) -> None:
        """Start the proxies of the hosts behind this one."""
        # A component's parameters, and what its agents need, are the launcher's; so is what their paths are relative to.
        os.environ.update(self.environment())
        with contextlib.suppress(OSError):
            os.chdir(self.told["directory"])
        from ompy.core.errors import MPIError
        from ompy.mca import selection
        from ompy.runtime.children import Children

        secret, limit = bytes.fromhex(self.told["secret"]), self.told["limit"]
        self.children = Children(self.loop, self.local, secret, limit, hosts, self.told["fan_out"], self)
        try:
            (plm,) = selection.select("plm")
            self.children.start(plm, self.told)
        except (MPIError, ValueError, OSError) as error:
            self.on_unreachable(list(self.children.branches), str(error))

    def turn(self, limit: float | None = None) -> None:
        """Wait for something to happen, at most so many seconds, and deal with it."""
        self.loop.turn(limit)
        self.streams.flush()

    # -- what the launcher says

    def take(self, header: Header, data: bytes) -> None:
        """What is for this host, for one behind it, or for all."""
        command, host = header.pop("cmd"), header.pop("to", self.name)
        is_for_all = header.pop("is_for_all", False)
        if self.children is not None and is_for_all:
            self.children.send_all(command, **header)
        elif self.children is not None and host != self.name:
            self.children.send(host, command, data, **header)
            return
        getattr(self, f"obey_{command}")(*([data] if command == "input" else []), **header)

    def leave(self, reason: str) -> None:
        """The launcher, or whoever has started this proxy, has gone."""
        self.is_over = True

    def obey_start(self, share: dict[str, Any], name: str, stdin: int | None) -> None:
        ours = Share.from_data(share)
        space = self.spaces[ours.job] = HostSpace(ours, name, self.link)
        space.values["secret"] = self.told["secret"]
        environment = self.environment()
        if ours.job == 0:
            self.streams.expect_input(stdin, [task.rank for task in ours.tasks])
        try:
            os.chdir(self.told["directory"])
        except OSError as error:
            reason = f"the folder {self.told['directory']}: {error.strerror}; --wdir names another one"
            self.on_not_started(ours.job, ours.tasks[0].rank, 1, reason)
            return
        try:
            self.local.make_room(ours)
        except OSError as error:
            reason = f"the system has no room for a job of {ours.size} ranks: {error.strerror}"
            self.on_not_started(ours.job, ours.tasks[0].rank, 1, reason)
            return
        # Programs are looked for along the path of the ranks.
        os.environ["PATH"] = environment.get("PATH", os.defpath)
        if self.local.start(ours, space, environment) and ours.job == 0:
            self.streams.begin_input()

    def obey_barrier_out(self, job: int) -> None:
        self.spaces[job].release()

    def obey_fail(self, jobs: list[int], job: str, rank: int, how: str) -> None:
        for number in jobs:
            if number in self.spaces:
                self.spaces[number].fail(job, rank, how)

    def obey_get(self, job: int, key: str) -> None:
        self.link.send("value", job=job, key=key, value=self.spaces[job].values.get(key))

    def obey_value(self, job: int, key: str, value: str | None) -> None:
        self.spaces[job].arrived(key, value)

    def obey_answer(self, job: int, rank: int, line: str) -> None:
        # A job may be over before an answer comes that takes long, that to a spawn.
        session = self.spaces[job].forwarded.pop(rank, None) if job in self.spaces else None
        if session is not None:
            session.answered(line)

    def obey_taken(self, count: int) -> None:
        self.streams.unacknowledged -= count

    def obey_input(self, data: bytes) -> None:
        self.streams.take_input(data)

    def obey_signal(self, number: int, job: int | None) -> None:
        self.local.signal(number, job)

    def obey_close_job(self, job: int) -> None:
        self.local.close_job(job)
        self.spaces.pop(job, None)

    def obey_pause(self, is_paused: bool) -> None:
        self.link.pause(is_paused)

    def obey_board(self, ticket: int, stacks: bool) -> None:
        """What the board and the system tell of the ranks here; and their Python stacks."""
        import time

        from ompy.core.board import Board
        from ompy.runtime.report import processor_time

        ranks = [process.rank for process in self.local.processes if process.job == 0]
        descriptor = self.local.boards.get(0)
        records, used = b"", {}
        if descriptor is not None:
            board = Board(descriptor)
            records = b"".join(board.copy(rank) for rank in ranks)
            used = processor_time(board, ranks)
        texts = [(job, rank, text.decode("utf-8", "replace")) for job, rank, text in self.local.stacks()] if stacks else []
        now = time.monotonic_ns()
        self.link.send("board", records, ticket=ticket, ranks=ranks, now=now, used=list(used.items()), stacks=texts)

    def obey_end(self, has_failed: bool, has_reader: bool) -> None:
        self.has_failed = has_failed
        self.streams.is_read = has_reader
        self.is_over = True

    # -- what those behind this host say (`children.Superior`)

    def on_frame(self, host: str, header: Header, data: bytes) -> None:
        self.link.send(header.pop("cmd"), data, **header | {"from": host})

    def on_lost(self, hosts: list[str], reason: str) -> None:
        self.link.send("lost", hosts=hosts, reason=reason)

    def on_unreachable(self, hosts: list[str], words: str) -> None:
        self.link.send("unreachable", hosts=hosts, words=words)

    def say(self, text: str) -> None:
        self.link.send("say", text=text)

    # -- what ranks do

    def on_started(self, job: int, rank: int, pid: int) -> None:
        self.link.send("started", job=job, rank=rank, pid=pid)

    def on_not_started(self, job: int, rank: int, code: int, message: str) -> None:
        self.link.send("not_started", job=job, rank=rank, code=code, message=f"host {self.name}: {message}")

    def on_abort(self, job: int, rank: int, code: int, message: str) -> None:
        self.link.send("abort", job=job, rank=rank, code=code, message=message)

    def on_misuse(self, job: int, rank: int, message: str) -> None:
        self.link.send("misuse", job=job, rank=rank, message=message)

    def on_refused(self, job: int, rank: int, is_left: bool) -> None:
        self.link.send("refused", job=job, rank=rank, is_left=is_left)

    def on_barrier(self, job: int) -> None:
        """The space tells the launcher itself."""

    def on_exit(self, job: int, rank: int, status: int, initialised: bool, finalised: bool) -> None:
        self.link.send("exit", job=job, rank=rank, status=status, initialised=initialised, finalised=finalised)
        if not initialised:
            self.spaces[job].absent.add(rank)
            self.spaces[job].look_who_waits()

    def on_signal(self) -> None:
        for number in self.signals.take():
            if number == signal.SIGCHLD:
                self.local.on_child()
            elif number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                self.link.send("signalled", number=int(number))


def read_line(descriptor: int) -> bytes:
    """What the agent hands over: a line, or all up to the end of file."""
    data = b""
    while not data.endswith(b"\n") and (piece := os.read(descriptor, 1 << 20)):
        data += piece
    return data


def main(arguments: list[str]) -> int:
    """Entry point; returns the exit status."""
    option, name = arguments
    if option == "--name-from":
        name = os.environ[name]
    told = json.loads(read_line(0))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    try:
        Proxy(told, name).run()
    except OSError as error:
        print(f"ompy's proxy on {os.uname().nodename} can't reach ompyrun: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
