"""Packets of pml/dr that the wire has damaged, or that come from elsewhere: none is delivered, and what was sent is."""

from __future__ import annotations

import random
import struct
import sys
from pathlib import Path

from mutation import mutated

FRAME = 40
# The checksum covers the rest of the frame; then the data's checksum, the sender's job and rank.
BEGINNING = struct.Struct("<IIIi")
STEPS = 2000


class DrPackets:
    name = "dr-packets"

    def begin(self) -> None:
        sys.path.insert(0, str(Path(__file__).parent.parent / "pml"))
        import test_dr
        from wire import Pair

        from ompy.core.checksum import checksum

        self.tools, self.checksum = test_dr, checksum
        limits = {"timeout": 10_000.0, "timeout_min": 10_000.0, "timeout_max": 20_000.0, "ack_delay": 0.0}
        flags = test_dr.SEND
        self.pair = Pair(lambda: [test_dr.LossyWire("wire", flags=flags, **test_dr.LIMITS)], test_dr.dr, **limits)

    def make(self, rng: random.Random) -> object:
        return (
            rng.randrange(1 << 30),
            rng.randbytes(rng.choice((0, 1, 8, 100, 250))),
            rng.choice(("damage", "damage", "damage", "stranger")),
        )

    def carry_out(self, given: object) -> str:
        seed, data, kind = given  # type: ignore[misc]
        rng = random.Random(seed)
        left, right = self.pair.sides
        received = bytearray(b"\xee" * len(data))
        receive = right.irecv(received, 1)
        send = left.isend(bytearray(data), 1)
        queue = right.btls[0].queue
        tag, packet = queue.pop()
        for _ in range(rng.choice((1, 1, 3))):
            forged = self.of_a_stranger(rng, packet) if kind == "stranger" else mutated(rng, packet, (packet,))
            if forged != packet:
                queue.append((tag, forged))
        while queue:
            self.tools.step(self.pair)
        if receive.complete or received != b"\xee" * len(data):
            return "what nobody sent was delivered"
        queue.append((tag, packet))
        for _ in range(STEPS):
            if receive.complete and send.complete:
                break
            self.tools.step(self.pair)
        return "" if receive.complete and send.complete and received == data else "what was sent has not come"

    def of_a_stranger(self, rng: random.Random, packet: bytes) -> bytes:
        """The packet as somebody else's, with the right checksums."""
        _, of_data, job, rank = BEGINNING.unpack_from(packet)
        job, rank = rng.choice(((job ^ 1 << rng.randrange(32), rank), (job, rng.choice((2, 3, -1, 1 << 30, -(1 << 31))))))
        frame = BEGINNING.pack(0, of_data, job, rank) + packet[BEGINNING.size : FRAME]
        return struct.pack("<I", self.checksum(frame[4:])) + frame[4:] + packet[FRAME:]

    def settle(self) -> None:
        for _ in range(100):
            self.tools.step(self.pair)

    def show(self, given: object) -> str:
        return repr(given)[:1000]
