"""btl/chaos around a transport that only writes down what it is given: which faults fire, and what each does."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest
from ompy_btl_chaos.component import COMPONENT, RATES
from ompy_btl_chaos.dice import Dice
from ompy_btl_chaos.module import ChaosBtl

from ompy.core.memory import address_of
from ompy.core.proc import Proc
from ompy.mca.btl import BACK_PRESSURE, GET, IN_ORDER, PUT, SEND, TAKEN, Btl, Descriptor, Endpoint
from ompy.mca.btl_wrapper import Wrapper

TAG = 20
PATIENCE = 20.0
DEFAULTS = {parameter.name: parameter.default for parameter in COMPONENT.parameters}


class Notebook(Btl):
    """Takes everything, and does nothing but note it; `room` messages at most."""

    def __init__(self, room: int = 1 << 30) -> None:
        self.name = "notebook"
        self.flags = SEND | PUT | GET | IN_ORDER
        self.room = room
        self.sent: list[bytes] = []
        self.moved: list[tuple[str, bytes]] = []

    def add_procs(self, procs: Sequence[Proc]) -> list[Endpoint | str]:
        return [Endpoint(self, proc) for proc in procs]

    def send(self, endpoint: Endpoint, descriptor: Descriptor, tag: int) -> int:
        assert endpoint.btl is self
        assert tag == TAG
        if len(self.sent) >= self.room:
            return BACK_PRESSURE
        self.sent.append(bytes(descriptor.view) + bytes(descriptor.payload_view))
        descriptor.complete()
        return TAKEN

    def put(self, endpoint: Endpoint, descriptor: Descriptor) -> int:
        self.moved.append(("put", bytes(descriptor.local_view)))
        descriptor.complete()
        return TAKEN

    def get(self, endpoint: Endpoint, descriptor: Descriptor) -> int:
        self.moved.append(("get", b""))
        descriptor.local_view[:] = bytes(descriptor.size)
        descriptor.complete()
        return TAKEN

    def progress(self) -> int:
        return 0


class Chaos:
    """A chaos around a notebook, and one peer."""

    def __init__(self, room: int = 1 << 30, seed: int = 5, rank: int = 0, **values: float) -> None:
        values = DEFAULTS | values
        self.notebook = Notebook(room)
        self.told: list[str] = []
        dice = Dice(seed, rank, {name: values[name] for name in RATES})
        self.btl = ChaosBtl(self.notebook, dice, values, self.told.append)
        (self.endpoint,) = self.btl.add_procs([Proc(1, 1, "job", "here", 1, False, True, {})])

    def post(self, number: int) -> int:
        return self.btl.post(self.endpoint, number.to_bytes(8, "big"), TAG)

    def run(self, count: int) -> list[int]:
        """So many numbered messages; returns what was sent, as numbers."""
        for number in range(count):
            self.until(lambda number=number: self.post(number) == TAKEN)
        self.until(lambda: not (self.endpoint.queue or self.endpoint.aside))
        return [int.from_bytes(message, "big") for message in self.notebook.sent]

    def until(self, condition) -> None:
        end = time.monotonic() + PATIENCE
        while not condition():
            self.btl.progress()
            assert time.monotonic() < end, "nothing happened"


def test_without_a_fault_everything_goes_as_it_came() -> None:
    chaos = Chaos()
    assert chaos.run(100) == list(range(100))
    assert not any(chaos.btl.counters.values())


def test_dropped_messages_are_those_that_are_missing() -> None:
    chaos = Chaos(drop=0.2)
    sent = chaos.run(500)
    assert sent == sorted(set(sent))
    assert 50 < chaos.btl.counters["dropped"] == 500 - len(sent) < 200


def test_duplicated_messages_come_twice_in_a_row() -> None:
    chaos = Chaos(duplicate=0.2)
    sent = chaos.run(500)
    assert sent == sorted(sent)
    assert set(sent) == set(range(500))
    assert 50 < chaos.btl.counters["duplicated"] == len(sent) - 500 < 200


def test_a_corrupted_message_differs_in_one_bit() -> None:
    chaos = Chaos(corrupt=0.2)
    changed = [bin(got ^ number).count("1") for number, got in enumerate(chaos.run(500))]
    assert set(changed) == {0, 1}
    assert 50 < chaos.btl.counters["corrupted"] == sum(changed) < 200


def test_delayed_messages_are_late_and_in_order() -> None:
    chaos = Chaos(delay=0.3, delay_time=1.0)
    assert chaos.btl.flags & IN_ORDER
    waited = 0
    for number in range(200):
        chaos.until(lambda number=number: chaos.post(number) == TAKEN)
        waited += bool(chaos.endpoint.queue)
    assert waited > 20
    assert chaos.run(0) == list(range(200))
    assert chaos.btl.counters["delayed"] > 20


def test_reordered_messages_are_overtaken_by_a_few_and_no_order_is_promised() -> None:
    chaos = Chaos(reorder=0.3, reorder_distance=3, delay_time=10_000.0)
    assert not chaos.btl.flags & IN_ORDER
    for number in range(200):
        assert chaos.post(number) == TAKEN
        chaos.btl.progress()
    sent = [int.from_bytes(message, "big") for message in chaos.notebook.sent]
    assert len(sent) >= 195
    assert sent != sorted(sent)
    assert chaos.btl.counters["reordered"] > 20
    for place, number in enumerate(sent):
        assert sum(later < number for later in sent[place:]) <= 3 * 3, "held back for too long"


def test_the_last_message_is_not_held_for_ever() -> None:
    chaos = Chaos(reorder=1.0, delay_time=1.0)
    assert sorted(chaos.run(1)) == [0]


def test_a_stall_shuts_the_way_for_a_while() -> None:
    chaos = Chaos(stall=0.1, stall_time=1.0)
    refused = 0
    for number in range(100):
        if chaos.post(number) == BACK_PRESSURE:
            refused += 1
            chaos.until(lambda number=number: chaos.post(number) == TAKEN)
    assert chaos.run(0) == list(range(100))
    assert 0 < refused == chaos.btl.counters["stalls"] < 50


def test_the_seed_decides_and_nothing_else_does() -> None:
    faults = {"drop": 0.1, "duplicate": 0.1, "corrupt": 0.1}
    first = Chaos(**faults).run(300)
    assert Chaos(**faults).run(300) == first
    assert Chaos(seed=6, **faults).run(300) != first
    assert Chaos(rank=1, **faults).run(300) != first


def test_back_pressure_changes_no_fate() -> None:
    faults = {"drop": 0.1, "duplicate": 0.1}
    freely = Chaos(**faults).run(100)
    chaos = Chaos(room=3, **faults)
    for number in range(100):
        while chaos.post(number) != TAKEN:
            chaos.notebook.room += 1
            chaos.btl.progress()
    chaos.notebook.room = 1 << 30
    assert chaos.run(0) == freely


def test_raising_one_rate_leaves_the_other_faults_where_they_were() -> None:
    few, many = (Dice(3, 0, {"drop": 0.1, "stall": rate}) for rate in (0.1, 0.9))
    for number in range(300):
        assert ("drop" in few.faults(1, number)) == ("drop" in many.faults(1, number))


def test_what_is_held_back_is_bounded() -> None:
    chaos = Chaos(delay=1.0, delay_time=10_000.0)
    taken = 0
    while chaos.post(taken) == TAKEN:
        taken += 1
    assert taken == 64


@pytest.mark.parametrize("what", ["put", "get"])
@pytest.mark.parametrize("fault", ["drop", "duplicate", "corrupt", "delay", "reorder"])
def test_puts_and_gets_meet_faults_too(what: str, fault: str) -> None:
    chaos = Chaos(delay_time=1.0, **{fault: 1.0})
    memory = bytearray(b"x" * 1000)
    over: list[int] = []
    like = Descriptor(chaos.btl)
    like.size = len(memory)
    above = Wrapper(chaos.btl)
    (endpoint,) = above.add_procs([chaos.endpoint.proc])
    taken = above.access(endpoint, what == "put", like, address_of(memory), None, lambda _, status: over.append(status))
    assert taken == TAKEN
    chaos.until(lambda: over)
    assert over == [0]
    moved = chaos.notebook.moved
    assert [name for name, _ in moved] == [what] * {"drop": 0, "duplicate": 2}.get(fault, 1)
    if fault == "corrupt":
        seen, right = (moved[0][1], b"x" * 1000) if what == "put" else (bytes(memory), bytes(1000))
        assert sum(bin(a ^ b).count("1") for a, b in zip(seen, right, strict=True)) == 1
    if what == "put":
        assert memory == b"x" * 1000, "the program's memory was changed"
    assert sum(chaos.btl.counters.values()) == 1


def test_what_happened_is_told_at_the_end() -> None:
    chaos = Chaos(drop=1.0)
    chaos.run(3)
    chaos.btl.finalize()
    assert chaos.told == ["rank 0: of 3 messages: 3 dropped"]
