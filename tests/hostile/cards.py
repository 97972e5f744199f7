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
    """Cards of each transport that works between processes, as the modex unpacks them."""

    name = "cards"

    def begin(self) -> None:
        from ompy_btl_zmq.component import COMPONENT
        from ompy_btl_zmq.module import ZmqBtl

        from ompy.core.errors import MPIError
        from ompy.core.proc import Proc
        from ompy.mca import selection
        from ompy.mca.btl import Endpoint
        from ompy.mca.rte import Rte
        from ompy.runtime import modex

        self.proc, self.modex, self.endpoint, self.error = Proc, modex, Endpoint, MPIError
        rte = Rte()
        rte.job, rte.size, rte.local_size, rte.secret = "hostile", 2, 2, os.urandom(32)
        values = {it.name: it.default for it in COMPONENT.parameters}
        os.environ |= {"OMPY_MCA_btl": "self,sm"}
        selection.select("rte")
        self.btls = [*selection.select("btl"), ZmqBtl(rte, values.__getitem__)]
        self.own = modex.own_card() | {"pml": b"ob1"}
        for btl in self.btls:
            self.own |= btl.cards()

    def make(self, rng: random.Random) -> object:
        return rng.random(), rng.randrange(1 << 30), rng.choice(CARDS)

    def carry_out(self, given: object) -> str:
        how, seed, other = given  # type: ignore[misc]
        rng = random.Random(seed)
        card = dict(self.own)
        name = rng.choice(["sm", "zmq", *card])
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
