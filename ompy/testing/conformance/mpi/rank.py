"""A rank of an MPI program over the transport under test, alone or beside another one."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from ompy.mca.component import PROJECT, Component, Context, Offer, Refusal
from ompy.mca.hook import hooks
from ompy.testing.conformance.check import Check
from ompy.testing.conformance.content import content
from ompy.testing.conformance.wire import SIGN, Wire

if TYPE_CHECKING:
    from ompy.mca.btl import Btl

# What transports that share one peer between them have in common; see bml/r2.
EXCLUSIVITY, LATENCY, BANDWIDTH = 1 << 20, 100, 1000


PAUSE = 0.1  # seconds
# Seconds in which what must not happen gets its chance.
CHANCE = 0.02


class Equaliser:
    """A watcher of queries, by which transports of any exclusivity serve a peer together, at equal shares."""

    @staticmethod
    def ompy_query(context: Context) -> Generator[None, Offer | Refusal, Offer | Refusal]:
        answer = yield
        if context.component.framework == "btl" and context.component.name != "self" and isinstance(answer, Offer):
            for module in answer.modules:
                module.exclusivity, module.latency, module.bandwidth = EXCLUSIVITY, LATENCY, BANDWIDTH
        return answer


def watch_queries(watcher: object) -> None:
    """Before bring-up: its `ompy_query` sees, and may change, every component's answer."""
    import pluggy

    pluggy.HookimplMarker(PROJECT)(wrapper=True)(type(watcher).ompy_query)  # type: ignore[attr-defined]
    hooks.pluggy().register(watcher)


class MpiRank:
    """One rank.

    Attributes:
        MPI: the module, which the kit itself must not import: that would make it a rank.
        comm: COMM_WORLD of the job.
        clause: name of the clause that is being examined.
    """

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        if wire.setting.level == "mixed":
            watch_queries(Equaliser())
        from ompy import MPI

        self.MPI: Any = MPI
        self.comm = MPI.COMM_WORLD
        self.rank, self.size = self.comm.rank, self.comm.size
        self.random = random.Random(f"{wire.setting.seed} {self.rank}")
        self.clause = self.sole = ""

    def begin(self, check: Check) -> None:
        """Before a check."""
        self.clause = check.clauses[0]
        self.alive()

    def step(self) -> None:
        """Between checks: wait a little for the kit's next word."""
        self.wire.connection.poll(PAUSE)

    def alive(self) -> None:
        """A sign of life, which a check gives after each of its steps."""
        self.wire.say(SIGN, self.clause)

    def common_random(self, purpose: str) -> random.Random:
        """A generator in the same state on every rank."""
        return random.Random(f"{self.wire.setting.seed} {purpose}")

    def content(self, source: int, target: int, number: int, size: int) -> bytes:
        """The bytes of one message: the same for whoever asks, and different from every other's."""
        return content(self.wire.setting.seed, source, target, number, size)

    def modules(self) -> list[Btl]:
        """The transports that were chosen."""
        from ompy.mca import selection

        modules: list[Btl] = selection.chosen_modules["btl"]
        return modules

    @property
    def btl(self) -> Btl:
        """The one under test."""
        (module, *_) = [it for it in self.modules() if it.name == self.wire.setting.component]
        return module

    @property
    def component(self) -> Component:
        from ompy.mca import discovery, loading

        return loading.load(discovery.installed()["btl"][self.wire.setting.component]).component

    def chosen_for(self, peer: int) -> list[str]:
        """Names of the transports that lead to a peer."""
        import ompy

        return [told.component for told in ompy.explain_peer(peer) if told.chosen]

    def exchange(self, value: object) -> list[Any]:
        """Every rank's value, out of band."""
        return self.wire.exchange(value)

    def meet(self, value: object = None) -> list[Any]:
        """As `exchange`; meanwhile this rank does what others want of it."""
        return self.wire.exchange(value, self.comm.Iprobe)

    def linger(self, most: float = CHANCE, enough: Callable[[], bool] = lambda: False) -> bool:
        """Let a while go by inside MPI, in seconds: what must not happen yet gets its chance.  Whether there was enough."""
        end = time.monotonic() + most
        while not enough():
            if time.monotonic() > end:
                return False
            self.comm.Iprobe()
        return True
