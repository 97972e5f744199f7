"""Runs a function in processes that are joined by one transport of the network alone: no launcher, no PML."""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import socket
import time
import traceback
from collections.abc import Callable
from importlib import import_module
from typing import Any

from ompy.core.proc import Proc
from ompy.mca.btl import BACK_PRESSURE, Receiver
from ompy.mca.rte import Rte

SECRET = b"the secret of the test's job...."
TAG = 17
DEADLINE = 100.0


def open_btl(name: str, rank: int = 0, size: int = 2, secret: bytes = SECRET, **parameters: Any) -> Any:
    """A transport as the component of that name would make it for a rank."""
    said = import_module(f"ompy_btl_{name}.component")
    make = getattr(said, "make", None) or getattr(import_module(f"ompy_btl_{name}.module"), f"{name.capitalize()}Btl")
    rte = Rte()
    rte.job, rte.rank, rte.size, rte.local_rank, rte.local_size, rte.secret = "test", rank, size, rank, size, secret
    values = {parameter.name: parameter.default for parameter in said.COMPONENT.parameters} | parameters
    return make(rte, values.__getitem__)


class Inbox(Receiver):
    """Keeps what arrives, in order."""

    def __init__(self) -> None:
        self.messages: list[bytes] = []
        self.endpoints: list[Any] = []

    def receive(self, btl: Any, endpoint: Any, data: memoryview) -> int:
        self.messages.append(bytes(data))
        self.endpoints.append(endpoint)
        return 0


class Rank:
    """One process of the test: its transport, its inbox, and an endpoint for each peer."""

    def __init__(self, name: str, rank: int, size: int, wire: socket.socket, parameters: dict[str, Any]) -> None:
        self.rank = rank
        self.wire = wire
        self.btl = open_btl(name, rank, size, **parameters)
        self.inbox = Inbox()
        self.errors: list[tuple[int, Exception]] = []
        self.btl.register(TAG, self.inbox)
        self.btl.register_error(lambda btl, proc, error: self.errors.append((proc.rank, error)))
        cards = self.gather((self.btl.address(), os.getpid()))
        procs = [
            Proc(peer, peer, "test", "here", pid, peer == rank, True, {name: card}) for peer, (card, pid) in enumerate(cards)
        ]
        self.endpoints = self.btl.add_procs(procs)

    def gather(self, mine: object = None) -> list[Any]:
        """Every rank's value, on every rank; also a barrier, outside the transport."""
        self.wire.sendall(frame(mine))
        return list(receive_frame(self.wire))

    def meet(self) -> None:
        """A barrier at which the transport goes on: what it still holds for a peer leaves."""
        self.wire.sendall(frame(None))
        self.progress_until(lambda: bool(select.select([self.wire], [], [], 0)[0]), sleep=False)
        receive_frame(self.wire)

    def post(self, peer: int, data: bytes) -> None:
        while self.btl.post(self.endpoints[peer], data, TAG) == BACK_PRESSURE:
            self.btl.progress()

    def progress_until(self, done: Callable[[], bool], sleep: bool = True) -> None:
        """Drive the transport as the engine does: poll, and sleep on its descriptor when it allows that."""
        waiter = select.poll()
        waiter.register(self.btl.descriptor(), select.POLLIN)
        end = time.monotonic() + DEADLINE / 2
        while not done():
            if not self.btl.progress() and sleep and self.btl.may_sleep():
                waiter.poll(1000)
            assert time.monotonic() < end, f"rank {self.rank} waited in vain; {self.btl.statistics()}; errors {self.errors}"

    def wait_for(self, count: int) -> None:
        self.progress_until(lambda: len(self.inbox.messages) >= count)


def is_outlived_by_its_child(rank: Rank) -> None:
    """Rank 1 is killed, a child of its has every descriptor still, and rank 0 is told all the same; of two."""
    rank.post(1 - rank.rank, b"hello")
    rank.wait_for(1)
    pids = rank.gather(os.getpid())
    if rank.rank == 0:
        rank.gather()
        os.kill(pids[1], signal.SIGKILL)
        rank.progress_until(lambda: bool(rank.errors))
        assert [lost for lost, _ in rank.errors] == [1]
        return
    if os.fork() == 0:
        rank.wire.close()
        with contextlib.suppress(ProcessLookupError):
            select.select([os.pidfd_open(pids[0])], [], [], 60)
        os._exit(0)
    rank.gather()
    signal.pause()


def frame(value: object) -> bytes:
    packed = pickle.dumps(value)
    return len(packed).to_bytes(8, "little") + packed


def receive_frame(wire: socket.socket) -> Any:
    def exactly(count: int) -> bytes:
        data = b""
        while len(data) < count:
            piece = wire.recv(count - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data

    return pickle.loads(exactly(int.from_bytes(exactly(8), "little")))


def run(
    name: str, body: Callable[[Rank], Any], size: int = 2, expect_killed: tuple[int, ...] = (), **parameters: Any
) -> list[Any]:
    """`body(rank)` in `size` processes over a transport; returns what each returned (None for those expected to be killed).

    A rank's exception becomes the test's failure, with its traceback.
    """
    wires, pids = [], []
    for rank in range(size):
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            ours.close()
            for wire in wires:
                wire.close()
            status = 1
            try:
                theirs.settimeout(DEADLINE)
                me = Rank(name, rank, size, theirs, parameters)
                result = body(me)
                me.btl.finalize()
                theirs.sendall(frame(("result", result)))
                status = 0
            except BaseException:
                theirs.sendall(frame(("failed", traceback.format_exc())))
            finally:
                os._exit(status)
        theirs.close()
        ours.settimeout(DEADLINE)
        wires.append(ours)
        pids.append(pid)
    try:
        return serve(wires, expect_killed)
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        for wire in wires:
            wire.close()


def serve(wires: list[socket.socket], expect_killed: tuple[int, ...]) -> list[Any]:
    """Pass values round (`Rank.gather`) until every rank has a result; the first failure ends the test."""
    results: list[Any] = [None] * len(wires)
    running = dict(enumerate(wires))
    values: dict[int, Any] = {}
    while running:
        waited = [wire for rank, wire in running.items() if rank not in values]
        ready = select.select(waited, [], [], DEADLINE)[0]
        assert ready, f"ranks {sorted(running.keys() - values.keys())} said nothing for {DEADLINE:g} s"
        for rank, wire in list(running.items()):
            if wire not in ready:
                continue
            try:
                value = receive_frame(wire)
            except (EOFError, ConnectionError):
                assert rank in expect_killed, f"rank {rank} ended without a word"
                del running[rank]
                continue
            if isinstance(value, tuple) and value[0] == "failed":
                raise AssertionError(f"rank {rank}:\n{value[1]}")
            if isinstance(value, tuple) and value[0] == "result":
                results[rank] = value[1]
                del running[rank]
            else:
                values[rank] = value
        if values.keys() == running.keys():
            for wire in running.values():
                with contextlib.suppress(BrokenPipeError):  # killed by one that was answered before; the next read tells
                    wire.sendall(frame([values.get(peer) for peer in range(len(wires))]))
            values.clear()
    return results
