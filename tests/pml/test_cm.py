"""pml/cm over an MTL in Python."""

from __future__ import annotations

from test_mtl_abandoned_sends import side_of

from ompy.core.communicator import Communicator
from ompy.core.owner import is_owned
from ompy.mca.mtl import Mtl
from ompy.mca.pml import Message


class Watching(Mtl):
    """Notes whether it is called inside the engine; its one message has always come."""

    def __init__(self) -> None:
        super().__init__("watching")
        self.calls: list[tuple[str, bool]] = []

    def seen(self, source: int, tag: int, comm: Communicator) -> tuple[int, int, int]:
        self.calls.append(("seen", is_owned()))
        return 1, 5, 10

    def improbe(self, source: int, tag: int, comm: Communicator) -> Message:
        self.calls.append(("improbe", is_owned()))
        return Message()


def test_probes_ask_the_mtl_inside_the_engine() -> None:
    mtl = Watching()
    side = side_of(mtl)
    side.pml.mprobe(1, 5, side.comm)
    assert {"seen", "improbe"} == {name for name, _ in mtl.calls}
    assert all(inside for _, inside in mtl.calls)
