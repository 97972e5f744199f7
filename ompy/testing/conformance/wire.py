"""The wire between a rank under test and the kit: out of band, so that nothing depends on what is being tested."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from ompy.core.errors import ERR_INTERN, MPIError
from ompy.mca.rte import Rte

# What a rank says: (word, value).
EXCHANGE, SIGN, OUTCOME, LEAVING, NUMBER = "exchange", "sign", "outcome", "leaving", "number"
# Which call of the component's a rank is in, and the clause that is broken by one that does not return.
OUTSIDE, PROGRESS, TRANSFER = range(3)
CLAUSES_OF_CALLS = {PROGRESS: "progress", TRANSFER: "back-pressure"}
# Beside the wire's socket: a word for each rank, how many calls it has begun, and the one that it is in.
CALLS = "calls"
CALL_BITS = 8
# The option that says which process has started the ranks.
LAUNCHERS_PID = "launcher's pid"
ADDRESS, RANK = "OMPY_CONFORMANCE_WIRE", "OMPY_CONFORMANCE_RANK"


class Setting(NamedTuple):
    """What the kit tells each rank first.

    Attributes:
        framework, component, level: what is under test.
        size: ranks of the job.
        job, secret: of the run-time environment.
        seed: of everything random.
        patience: seconds in which something must happen.
        options: values of options that ask for more.
    """

    framework: str
    component: str
    level: str
    size: int
    job: str
    secret: bytes
    seed: int
    patience: float
    options: dict[str, Any]


class Wire:
    """A rank's end.

    Parameters:
        rank: this process's; None where only the component under test can tell (`is_rank`).
        address: where the kit listens.
    """

    def __init__(self, rank: int | None, address: str) -> None:
        self.connection: Connection[Any, Any] = Client(address, family="AF_UNIX")
        self.connection.send((rank, os.getpid()))
        self.rank: int
        self.setting: Setting
        self.rank, self.setting = self.connection.recv()
        with Path(address).with_name(CALLS).open("r+b") as stream:
            self.calls = memoryview(mmap.mmap(stream.fileno(), 0)).cast("Q")

    @property
    def call(self) -> int:
        """The call of the component's that this rank is in."""
        return self.calls[self.rank] % (1 << CALL_BITS)

    @contextmanager
    def calling(self, call: int) -> Iterator[None]:
        """For the kit to see while a call of the component's runs, which may call a receiver that makes another one."""
        before = self.call
        self.enter(call)
        try:
            yield
        finally:
            self.enter(before)

    def enter(self, call: int) -> None:
        self.calls[self.rank] = ((self.calls[self.rank] >> CALL_BITS) + 1 << CALL_BITS) + call

    def is_rank(self, rank: int) -> None:
        """Before anything else is said: which rank this process has turned out to be."""
        self.rank = rank
        self.say(NUMBER, rank)

    def say(self, word: str, value: object = None) -> None:
        self.connection.send((word, value))

    def exchange(self, value: object, meanwhile: Callable[[], object] | None = None) -> list[Any]:
        """Every rank's value, in rank order, once all have given theirs; `meanwhile` is called until then.

        The values of ranks that have gone are None.
        """
        self.say(EXCHANGE, value)
        while meanwhile is not None and not self.connection.poll():
            meanwhile()
        values: list[Any] = self.connection.recv()
        return values


class WireRte(Rte):
    """A run-time environment over the wire: the component under test finds its peers through the kit."""

    def __init__(self, wire: Wire) -> None:
        setting = wire.setting
        self.wire = wire
        self.job = setting.job
        self.rank = self.local_rank = wire.rank
        self.size = self.local_size = setting.size
        self.secret = setting.secret
        self.published: dict[str, bytes] = {}
        self.cards: list[dict[str, bytes]] = []

    def put(self, key: str, value: bytes) -> None:
        self.published[key] = value

    def commit_and_fence(self) -> None:
        self.cards = self.wire.exchange(self.published)

    def get(self, rank: int, key: str) -> bytes:
        if not 0 <= rank < len(self.cards) or key not in self.cards[rank]:
            raise MPIError(ERR_INTERN, f"rank {rank} has published nothing under {key}")
        return self.cards[rank][key]

    def abort(self, code: int, message: str) -> NoReturn:
        print(message, flush=True)
        os._exit(code or 1)


def connect() -> Wire:
    """The wire that the kit told this process of."""
    told = os.environ.get(RANK, os.environ.get("PMI_RANK"))
    return Wire(None if told is None else int(told), os.environ[ADDRESS])
