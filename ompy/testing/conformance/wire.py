"""The wire between a rank under test and the kit: out of band, so that nothing depends on what is being tested."""

from __future__ import annotations

import os
from collections.abc import Callable
from multiprocessing.connection import Client, Connection
from typing import Any, NamedTuple, NoReturn

from ompy.core.errors import ERR_INTERN, MPIError
from ompy.mca.rte import Rte

# What a rank says: (word, value).
EXCHANGE, SIGN, OUTCOME, LEAVING = "exchange", "sign", "outcome", "leaving"
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
        rank: this process's.
        address: where the kit listens.
    """

    def __init__(self, rank: int, address: str) -> None:
        self.rank = rank
        self.connection: Connection[Any, Any] = Client(address, family="AF_UNIX")
        self.connection.send((rank, os.getpid()))
        self.setting: Setting = self.connection.recv()

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
    return Wire(int(os.environ[RANK] if RANK in os.environ else os.environ["PMI_RANK"]), os.environ[ADDRESS])
