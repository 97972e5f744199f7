"""Matching against the plainest model of it: two lists, searched from the front."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wire import Pair, WireBtl

from ompy.mca.btl import SEND

ANY = -1
INTERNAL = -20

sends = st.tuples(st.just("send"), st.sampled_from([0, 1, 2, INTERNAL]), st.sampled_from([0, 8, 400]))
receives = st.tuples(st.just("receive"), st.sampled_from([0, ANY]), st.sampled_from([0, 1, 2, ANY, INTERNAL]))
cancels = st.tuples(st.just("cancel"), st.integers(0, 30), st.just(0))


class Model:
    """What MPI-4.1, 3.5 asks: the oldest receive that fits a message, the oldest message that fits a receive."""

    def __init__(self) -> None:
        self.posted: list[tuple[int, int]] = []
        self.unexpected: list[tuple[int, int]] = []
        self.matched: dict[int, int] = {}

    @staticmethod
    def fits(wanted: int, tag: int) -> bool:
        return wanted == tag or (wanted == ANY and tag >= 0)

    def send(self, message: int, tag: int) -> None:
        for entry in self.posted:
            if self.fits(entry[1], tag):
                self.posted.remove(entry)
                self.matched[entry[0]] = message
                return
        self.unexpected.append((message, tag))

    def receive(self, receive: int, wanted: int) -> None:
        for entry in self.unexpected:
            if self.fits(wanted, entry[1]):
                self.unexpected.remove(entry)
                self.matched[receive] = entry[0]
                return
        self.posted.append((receive, wanted))


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(sends, receives, receives, sends, cancels), max_size=60))
def test_each_receive_gets_the_message_that_a_search_from_the_front_finds(operations):
    pair = Pair(lambda: [WireBtl("wire", flags=SEND, eager_limit=256, rndv_eager_limit=64, max_send_size=512)])
    left, right = pair.sides
    model = Model()
    message = 0
    receives = []
    for name, first, second in operations:
        if name == "send":
            data = bytearray(message.to_bytes(4, "big") * (second // 4))
            left.isend(bytearray(message.to_bytes(4, "big")) + data, first)
            model.send(message, first)
            message += 1
        elif name == "receive":
            buffer = bytearray(404)
            receives.append(right.irecv(buffer, second, source=first))
            model.receive(len(receives) - 1, second)
        elif first < len(receives) and not receives[first].complete:
            receives[first].cancel()
            model.posted = [entry for entry in model.posted if entry[0] != first]
        while pair.step():
            pass
    found = {
        index: int.from_bytes(receive.buffer[:4], "big")
        for index, receive in enumerate(receives)
        if receive.complete and not receive.result[3]
    }
    assert found == model.matched
    queues = right.pml.dump(right.comm)
    assert len(queues["posted"]) == len(model.posted)
    assert [(tag) for _, tag, _ in sorted(queues["unexpected"])] == sorted(tag for _, tag in model.unexpected)


@pytest.mark.parametrize("depth", [10, 3000])
def test_many_tags_and_many_of_one_tag_leave_nothing_behind(depth):
    seed = 17
    generator = random.Random(seed)
    pair = Pair(lambda: [WireBtl("wire", flags=SEND)])
    left, right = pair.sides
    tags = [generator.randrange(depth) for _ in range(depth)]
    for number, tag in enumerate(tags):
        left.isend(bytearray(number.to_bytes(4, "big")), tag)
    while pair.step():
        pass
    by_tag: dict[int, list[int]] = {}
    for number, tag in enumerate(tags):
        by_tag.setdefault(tag, []).append(number)
    order = list(tags)
    generator.shuffle(order)
    for tag in order:
        buffer = bytearray(4)
        assert right.irecv(buffer, tag).complete
        assert int.from_bytes(buffer, "big") == by_tag[tag].pop(0)
    assert right.pml.dump(right.comm) == {"posted": [], "unexpected": []}
