"""What becomes of a send that is abandoned below cm, by what its MTL can do; MTLs in Python."""

from __future__ import annotations

from ompy_pml_cm.module import Cm
from wire import Side

from ompy.core.proc import Proc, process_table
from ompy.core.progress_source import ProgressSource, register_source, unregister_source
from ompy.mca.mtl import Mtl, MtlSend

BODY = b"as it was" * 100


class Slow(Mtl):
    """Looks at a message only after some rounds of progress."""

    def __init__(self) -> None:
        super().__init__("slow")
        self.sends: list[MtlSend] = []
        self.copies: list[bytes | None] = []
        self.arrived: list[bytes] = []

    def isend(self, request: MtlSend) -> int:
        self.sends.append(request)
        self.copies.append(None)
        return 0

    def deliver(self) -> None:
        for request, copy in zip(self.sends, self.copies, strict=True):
            self.arrived.append(copy or bytes(request.view))
            request.succeed()
        self.sends, self.copies = [], []


class Copying(Slow):
    """Can go on from a copy."""

    def set_aside(self, request: MtlSend) -> bool:
        self.copies[self.sends.index(request)] = bytes(request.view)
        return True


class Later(ProgressSource):
    """Lets an MTL deliver after some rounds."""

    def __init__(self, mtl: Slow) -> None:
        self.mtl = mtl
        self.rounds = 0

    def progress(self) -> int:
        self.rounds += 1
        if self.rounds == 5:
            self.mtl.deliver()
        return 1


def side_of(mtl: Mtl) -> Side:
    process_table().clear()
    process_table().extend(2)
    process_table().set_resolver(lambda index: Proc(index, index, "pair", "here", 1, False, True, {}))
    return Side(0, [], lambda bml, rank: (Cm(mtl), lambda: 0))


def test_a_send_whose_mtl_makes_no_copy_is_waited_for():
    mtl = Slow()
    memory = bytearray(BODY)
    request = side_of(mtl).isend(memory, 5)
    later = Later(mtl)
    register_source(later)
    try:
        request.abandon(memory)
    finally:
        unregister_source(later)
    assert request.complete
    assert mtl.arrived == [BODY]


def test_a_send_whose_mtl_makes_a_copy_is_not_waited_for():
    mtl = Copying()
    memory = bytearray(BODY)
    request = side_of(mtl).isend(memory, 5)
    request.abandon(memory)
    assert not request.complete
    memory[:] = bytes(len(BODY))
    mtl.deliver()
    assert mtl.arrived == [BODY]
