"""What a peer's card may say: an endpoint, or a reason why there is none."""

from __future__ import annotations

import os
import random

from mutation import mutated

CARDS = (
    b"tcp://127.0.0.1:4711 plain -", b"tcp://[::1]:80 curve " + b"k" * 40, b"tcp://0.0.0.0:0 none -", b"tcp://node7:1 plain -",
    b"host|0|1|2", b"1:2", b"/dev/shm/x", b"", b" ", b"\xff",
)  # fmt: skip


class Cards:
    """Cards as the modex unpacks them, put to some transports.

    Parameters:
        name: of the driver.
        settings: parameters under which the transports are chosen.
        with_zmq: btl/zmq too, which is not chosen in a job of one process.
    """

    def __init__(self, name: str, settings: dict[str, str], with_zmq: bool = False) -> None:
        self.name, self.settings, self.with_zmq = name, settings, with_zmq

    def begin(self) -> None:
        from ompy.core.errors import MPIError
        from ompy.core.proc import Proc, process_table
        from ompy.mca import selection
        from ompy.mca.btl import Endpoint
        from ompy.runtime import modex

        self.proc, self.modex, self.endpoint, self.error = Proc, modex, Endpoint, MPIError
        os.environ |= {f"OMPY_MCA_{name}": value for name, value in self.settings.items()}
        (self.rte,) = selection.select("rte")
        process_table().extend(2)
        self.btls = list(selection.select("btl"))
        if self.with_zmq:
            self.btls.append(self.make_zmq())
        self.own = modex.own_card() | {"pml": b"ob1", "coll": b"basic=10"}
        for btl in self.btls:
            self.own |= btl.cards()
        self.spoken = [name for name in self.own if name not in ("host", "boot", "pid", "pml", "coll")]

    def make_zmq(self) -> object:
        from ompy_btl_zmq.component import COMPONENT
        from ompy_btl_zmq.module import ZmqBtl

        from ompy.mca.rte import Rte

        rte = Rte()
        rte.job, rte.size, rte.local_size, rte.secret = "hostile", 2, 2, os.urandom(32)
        values = {it.name: it.default for it in COMPONENT.parameters}
        return ZmqBtl(rte, values.__getitem__)

    def make(self, rng: random.Random) -> object:
        return rng.random(), rng.randrange(1 << 30), rng.choice(CARDS)

    def carry_out(self, given: object) -> str:
        how, seed, other = given  # type: ignore[misc]
        rng = random.Random(seed)
        card = dict(self.own)
        name = rng.choice([*self.spoken, *card])
        card[name] = other if how < 0.1 else mutated(rng, card.get(name, b""), CARDS)
        packed = self.modex.pack(card)
        if how > 0.7:
            packed = mutated(rng, packed, (packed,))
        try:
            card = self.modex.unpack(packed)
        except self.error:
            return ""
        if sum(len(key) + len(value) for key, value in card.items()) > len(packed):
            return "a card holds more than was sent"
        proc = self.proc(1, 1, "hostile", "here", os.getpid(), False, True, card)
        for btl in self.btls:
            (answer,) = btl.add_procs([proc])
            if isinstance(answer, self.endpoint):
                btl.del_procs([answer])
            elif not isinstance(answer, str) or not answer:
                return f"{btl.name} answers {answer!r}"
        return ""

    def settle(self) -> None:
        pass

    def show(self, given: object) -> str:
        return repr(given)


CARD_DRIVERS = (
    Cards("cards", {"btl": "self,sm"}, with_zmq=True),
    Cards("cards-gdn", {"btl": "self,gdn"}),
    Cards("cards-portals", {"btl": "self,portals", "btl_portals_carrier": "sm"}),
    Cards("cards-chaos", {"btl": "self,chaos", "btl_chaos_wraps": "sm"}),
)
