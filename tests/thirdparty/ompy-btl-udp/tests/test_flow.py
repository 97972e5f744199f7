"""Two flows and a channel that drops, doubles and reorders, from a seed: every message arrives once, whole, in order."""

from __future__ import annotations

import random

import pytest
from ompy_btl_udp.datagram import DATA, HEADER_SIZE, Header, Seal
from ompy_btl_udp.flow import BEYOND, LONGEST, Flow


class Channel:
    """Fragments and acknowledgements between two flows, in simulated time."""

    def __init__(self, rng: random.Random, drop: float, double: float, window: int) -> None:
        self.rng = rng
        self.drop = drop
        self.double = double
        self.left, self.right = Flow(window), Flow(window)
        self.on_the_way: list[tuple[float, str, tuple]] = []
        self.now = 0.0
        self.received: list[tuple[int, bytes]] = []
        self.dropped = 0

    def post(self, kind: str, content: tuple) -> None:
        for _ in range(2 if self.rng.random() < self.double else 1):
            if self.rng.random() < self.drop:
                self.dropped += 1
            else:
                self.on_the_way.append((self.now + self.rng.uniform(0.001, 0.03), kind, content))

    def transmit(self, fragment) -> None:
        self.post("data", (fragment.sequence, fragment.tag, fragment.last, fragment.payload))

    def step(self) -> None:
        self.now += 0.002
        arrived = sorted(entry for entry in self.on_the_way if entry[0] <= self.now)
        self.on_the_way = [entry for entry in self.on_the_way if entry[0] > self.now]
        for _, kind, content in arrived:
            if kind == "data":
                self.received += [(tag, bytes(message)) for tag, message in self.right.take(*content)]
            else:
                self.left.acknowledged(*content, self.now)
        if self.right.owes:
            self.post("acknowledgement", self.right.acknowledgement())
        for fragment in self.left.due(self.now):
            self.transmit(fragment)


@pytest.mark.parametrize(("drop", "double"), [(0.0, 0.0), (0.1, 0.1), (0.4, 0.3)])
@pytest.mark.parametrize("window", [4, 16, 64])
def test_nothing_is_lost_doubled_or_out_of_order(drop: float, double: float, window: int, ompy_rng: random.Random) -> None:
    channel = Channel(ompy_rng, drop, double, window)
    messages = [(number % 256, ompy_rng.randbytes(ompy_rng.choice((0, 1, 99, 1000)))) for number in range(150)]
    waiting = list(messages)
    while len(channel.received) < len(messages) or channel.left.sent:
        while waiting:
            tag, data = waiting[0]
            pieces = [data[start : start + 100] for start in range(0, len(data), 100)] or [b""]
            if not channel.left.has_room(len(pieces)):
                break
            waiting.pop(0)
            for number, piece in enumerate(pieces, 1):
                channel.transmit(channel.left.add(tag, number == len(pieces), piece, channel.now))
        channel.step()
        assert channel.now < 2000, "it does not come to an end"
    assert channel.received == messages
    assert (channel.left.resent > 0) >= (channel.dropped > 0)
    assert not channel.right.early


def test_a_silent_peer_is_not_flooded() -> None:
    flow = Flow(16)
    flow.add(1, True, b"x", 0.0)
    times = [step / 100 for step in range(2000) if flow.due(step / 100)]
    assert len(times) < 30
    assert times[-1] - times[-2] == pytest.approx(LONGEST, abs=0.02)


def test_what_lies_beyond_the_acknowledgement_is_not_kept() -> None:
    flow = Flow(16)
    assert flow.take(BEYOND + 1, 1, True, b"too early") == []
    assert not flow.early


@pytest.mark.parametrize("window", [0, 3, 65])
def test_a_window_out_of_range_is_refused(window: int) -> None:
    with pytest.raises(ValueError, match="window"):
        Flow(window)


def test_only_the_jobs_own_datagrams_are_taken() -> None:
    seal, header = Seal(b"secret", "job"), Header(DATA, 7, 1, 0, 1, 5, 2, 3)
    datagram = seal.pack(header, b"payload")
    unpacked = seal.unpack(memoryview(datagram))
    assert unpacked is not None
    assert unpacked[0] == header
    assert unpacked[1] == b"payload"
    assert Seal(b"other", "job").unpack(memoryview(datagram)) is None
    assert Seal(b"secret", "another job").unpack(memoryview(datagram)) is None
    for position in (0, HEADER_SIZE - 1, len(datagram) - 1):
        changed = bytearray(datagram)
        changed[position] ^= 1
        assert seal.unpack(memoryview(changed)) is None
    assert seal.unpack(memoryview(datagram[: HEADER_SIZE - 1])) is None
