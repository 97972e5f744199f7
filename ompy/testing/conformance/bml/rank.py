"""A rank of a job whose routes the component under test makes, and modules of it over transports of the kit's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ompy.core.proc import Proc
from ompy.mca import discovery, loading, selection
from ompy.mca.btl import SEND, Btl, Endpoint
from ompy.mca.component import Context, Offer
from ompy.mca.hook import hooks
from ompy.mca.verdicts import record
from ompy.testing.conformance.check import Breach
from ompy.testing.conformance.pml.rank import PmlRank
from ompy.testing.conformance.wire import Wire

if TYPE_CHECKING:
    from ompy.mca.bml import Bml


class Told(Btl):
    """A transport that carries nothing, and notes what is asked of it.

    Parameters:
        name: of the component that it stands for.
        reaches: ranks; the others it refuses.
        flags, exclusivity, latency, bandwidth: as a transport has them.
    """

    def __init__(
        self,
        name: str,
        reaches: Sequence[int],
        flags: int = SEND,
        exclusivity: int = 1,
        latency: int = 100,
        bandwidth: int = 100,
    ) -> None:
        self.name = name
        self.reaches = reaches
        self.flags, self.exclusivity, self.latency, self.bandwidth = flags, exclusivity, latency, bandwidth
        self.notes: list[tuple[str, Any]] = []

    def add_procs(self, procs: Sequence[Proc]) -> list[Endpoint | str]:
        self.notes += [("asked", proc.rank) for proc in procs]
        return [Endpoint(self, proc) if proc.rank in self.reaches else f"{self.name} ends at its horizon" for proc in procs]

    def del_procs(self, endpoints: Sequence[Endpoint]) -> int:
        self.notes += [("given back", endpoint.proc.rank) for endpoint in endpoints]
        return 0

    def register(self, tag: int, receiver: Any) -> int:
        self.notes.append(("register", (tag, receiver)))
        return 0

    def register_error(self, handler: Any) -> int:
        self.notes.append(("register_error", handler))
        return 0

    def progress(self) -> int:
        return 0

    def release_registrations(self) -> int:
        self.notes.append(("released", None))
        return 0

    def finalize(self) -> int:
        self.notes.append(("closed", None))
        return 0

    def noted(self, what: str) -> list[Any]:
        return [value for word, value in self.notes if word == what]


class BmlRank(PmlRank):
    """One rank."""

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire)
        self.loaded = loading.load(discovery.installed()["bml"][wire.setting.component])
        self.bml: Bml = selection.chosen_modules["bml"][0]

    def module(self, btls: Sequence[Btl]) -> Bml:
        """The component's module over these transports."""
        answer = hooks.query(self.loaded.plugin, Context(self.loaded.component, record.rte, None, {"btl": list(btls)}))
        if not isinstance(answer, Offer) or len(answer.modules) != 1:
            raise Breach("open", f"asked with {len(btls)} transports, the query answered {answer!r}, not one module")
        made: Bml = answer.modules[0]
        return made

    @staticmethod
    def peer(rank: int) -> Proc:
        """A process that nobody has routes to."""
        return Proc(1000 + rank, rank, "kit", "a-host", 4711, False, True, {})
