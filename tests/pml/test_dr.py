"""Packets under pml/dr, over a wire that loses, repeats, damages and reorders them as a test says."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator

import pytest
from ompy_pml_dr.channels import Channels
from ompy_pml_dr.module import ReliableBtl
from wire import Pair, Side, WireBtl, ob1, payload

from ompy.core.errors import ERR_PROC_FAILED, MPIError
from ompy.core.proc import Proc
from ompy.core.request import Request
from ompy.mca.bml import Bml
from ompy.mca.btl import RENEWAL, SEND, TAKEN, Descriptor, Endpoint
from ompy.mca.pml import Pml

PATIENCE = 30.0
LIMITS = {"eager_limit": 300, "rndv_eager_limit": 100, "max_send_size": 600}
QUICK = {"timeout": 1.0, "timeout_min": 0.5, "timeout_max": 5.0, "ack_delay": 0.2}


class LossyWire(WireBtl):
    """A wire where each packet may be lost, repeated or damaged.

    Attributes:
        chances: of each, 0 to 1.
        cut: everything is lost.
        gone: nobody is there, and whoever sends is told so.
        broken: whoever sends meets an error in it.
        most_waiting: packets that have waited at the other end at once.
    """

    chances = (0.0, 0.0, 0.0)
    generator = random.Random(0)
    cut = gone = broken = False
    most_waiting = 0
    lost = repeated = damaged = 0

    def send(self, endpoint: Endpoint, descriptor: Descriptor, tag: int) -> int:
        if self.gone:
            raise MPIError(ERR_PROC_FAILED, "nobody is there")
        if self.broken:
            raise ZeroDivisionError
        taken = super().send(endpoint, descriptor, tag)
        if taken != TAKEN:
            return taken
        queue = self.peer.queue
        tag, packet = queue.pop()
        loss, repetition, damage = (self.generator.random() < chance for chance in self.chances)
        if loss or self.cut:
            self.lost += 1
            return taken
        if damage:
            self.damaged += 1
            place = self.generator.randrange(len(packet))
            packet = packet[:place] + bytes([packet[place] ^ 4]) + packet[place + 1 :]
        queue.extend([(tag, packet)] * (2 if repetition else 1))
        self.repeated += repetition
        self.most_waiting = max(self.most_waiting, len(queue))
        return taken


def reliable(side: Side) -> ReliableBtl:
    return side.pml.bml.btls[0]


def dr(bml: Bml, rank: int, **options: float) -> tuple[Pml, Callable[[], int]]:
    """What pml/dr makes of a BML."""
    own = {name: options.pop(name) for name in ("packet_size", "window", "window_bytes") if name in options}
    channels = Channels(**options)
    bml.wrap(lambda btl: ReliableBtl(btl, "pair", rank, 2, channels, **own))
    return ob1(bml, rank)


@pytest.fixture
def make() -> Iterator[Callable[..., Pair]]:
    pairs = []

    def make(chances=(0.0, 0.0, 0.0), disorder: random.Random | None = None, room: int = 1 << 30, **options: float) -> Pair:
        pair = Pair(
            lambda: [LossyWire("wire", room, disorder, flags=SEND, **LIMITS)],
            dr,
            **(QUICK | options),
        )
        for side in pair.sides:
            side.btls[0].chances = chances
            side.btls[0].generator = disorder or random.Random(1)
        pairs.append(pair)
        return pair

    yield make
    for pair in pairs:
        for side in pair.sides:
            reliable(side).finalize()


def step(pair: Pair) -> None:
    pair.step()
    for side in pair.sides:
        reliable(side).channels.progress()


def drive(pair: Pair, done: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not done():
        step(pair)
        assert time.monotonic() < end, f"nothing moves: {[reliable(side).statistics() for side in pair.sides]}"


def complete(*requests: Request) -> Callable[[], bool]:
    return lambda: all(request.complete for request in requests)


@pytest.mark.parametrize(
    "chances", [(0.2, 0.0, 0.0), (0.0, 0.2, 0.0), (0.0, 0.0, 0.2), (0.1, 0.1, 0.1)], ids=["lost", "repeated", "damaged", "all"]
)
def test_nothing_is_lost_repeated_changed_or_out_of_order(make, chances: tuple[float, float, float], seed: int) -> None:
    generator = random.Random(seed)
    pair = make(chances, generator)
    sizes = [generator.choice([0, 8, 200, 1000, 5000]) for _ in range(150)]
    sent = [[bytearray(generator.randbytes(size)) for size in sizes] for _ in pair.sides]
    received = [[bytearray(size) for size in sizes] for _ in pair.sides]
    requests = []
    for side in pair.sides:
        requests += [side.irecv(buffer, 1) for buffer in received[side.rank]]
        requests += [side.isend(data, 1) for data in sent[side.rank]]
    drive(pair, complete(*requests))
    assert received == [sent[1], sent[0]]
    assert [request.error for request in requests] == [None] * len(requests)
    for fault, chance in zip(("lost", "repeated", "damaged"), chances, strict=True):
        assert bool(chance) == any(getattr(side.btls[0], fault) for side in pair.sides), f"{fault}: the fault did not fire"
    told = [reliable(side).statistics() for side in pair.sides]
    if chances[1]:
        assert sum(it["repeated_packets_dropped"] for it in told)
    if chances[2]:
        # One that is damaged and then repeated counts twice here; the last ones may not have been looked at yet.
        assert sum(it["damaged_packets_dropped"] for it in told)
    if chances[0] or chances[2]:
        assert sum(it["packets_sent_again"] for it in told)


def test_over_a_good_wire_acknowledgements_ride_and_nothing_is_sent_again(make) -> None:
    pair = make(timeout=10_000.0, timeout_min=10_000.0, timeout_max=10_000.0, ack_delay=10_000.0)
    for number in range(200):
        for side in pair.sides:
            send = side.isend(bytearray([number]), 1)
            receive = pair.sides[1 - side.rank].irecv(bytearray(1), 1)
            drive(pair, complete(send, receive))
    for side in pair.sides:
        told = reliable(side).statistics()
        assert told["packets_sent"] == 200
        assert told["packets_sent_again"] == told["acknowledgements_sent"] == told["repeated_packets_dropped"] == 0


def test_what_is_kept_for_a_peer_that_does_not_answer_is_bounded(make) -> None:
    pair = make(window=20, timeout=10_000.0)
    left = pair.sides[0]
    sends = [left.isend(bytearray(8), 1) for _ in range(500)]
    assert left.btls[0].most_waiting == 20
    assert sum(not send.complete for send in sends) == 480
    receives = [pair.sides[1].irecv(bytearray(8), 1) for _ in sends]
    drive(pair, complete(*sends, *receives))


def test_the_window_is_bounded_in_bytes_too(make) -> None:
    pair = make(window_bytes=1000, timeout=10_000.0)
    left = pair.sides[0]
    for _ in range(50):
        left.isend(bytearray(200), 1)
    assert left.btls[0].most_waiting <= 4


def test_a_peer_that_is_never_heard_of_is_given_up_by_name(make) -> None:
    pair = make(retry_limit=4)
    left, right = pair.sides
    left.btls[0].cut = True
    send = left.isend(bytearray(8), 1)
    assert send.complete, "a short message is out of the program's hands once it is kept"
    receive = left.irecv(bytearray(8), 1)
    drive(pair, complete(receive))
    assert receive.error.code == ERR_PROC_FAILED
    assert "rank 1 of pair (host here, pid 1)" in str(receive.error)
    assert "sent 5 times over btl wire" in str(receive.error)
    assert left.btls[0].lost == 5
    with pytest.raises(Exception, match="rank 1 of pair"):
        left.isend(bytearray(8), 1)
    assert not right.irecv(bytearray(8), 1).complete


def test_a_send_in_which_the_transport_raises_has_not_been(make) -> None:
    pair = make(window=3, timeout=10_000.0)
    left, right = pair.sides
    left.btls[0].broken = True
    # At first contact it is an error of the request, later of the call.
    assert isinstance(left.isend(bytearray([7]), 1).error, ZeroDivisionError)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            left.isend(bytearray([7]), 1)
    left.btls[0].broken = False
    received = [bytearray(1) for _ in range(100)]
    receives = [right.irecv(data, 1) for data in received]
    drive(pair, complete(*(left.isend(bytearray([number]), 1) for number in range(100)), *receives))
    assert [data[0] for data in received] == [*range(100)]


def test_what_is_late_is_sent_again_after_the_transport_has_raised(make) -> None:
    pair = make()
    left = pair.sides[0]
    left.btls[0].cut = True
    left.isend(bytearray([7]), 1)
    data = bytearray(1)
    receive = pair.sides[1].irecv(data, 1)
    left.btls[0].cut = False
    left.btls[0].broken = True
    with pytest.raises(ZeroDivisionError):
        drive(pair, complete(receive))
    left.btls[0].broken = False
    drive(pair, complete(receive))
    assert data == bytearray([7])


def test_each_time_out_is_twice_the_one_before_it(make) -> None:
    pair = make(retry_limit=6, timeout=2.0, timeout_max=16.0)
    left = pair.sides[0]
    left.btls[0].cut = True
    begun = time.monotonic()
    left.isend(bytearray(8), 1)
    receive = left.irecv(bytearray(8), 1)
    drive(pair, complete(receive))
    # A lower bound holds however slow the machine is.
    assert time.monotonic() - begun >= (2 + 4 + 8 + 16 + 16 + 16 + 16) / 1000


def test_a_lost_packet_is_sent_again_once_later_ones_have_arrived(make) -> None:
    pair = make(timeout=10_000.0, timeout_min=10_000.0, timeout_max=10_000.0)
    left, right = pair.sides
    received = [bytearray(1) for _ in range(10)]
    receives = [right.irecv(buffer, 1) for buffer in received]
    left.btls[0].cut = True
    left.isend(bytearray([0]), 1)
    left.btls[0].cut = False
    for number in range(1, 10):
        left.isend(bytearray([number]), 1)
    drive(pair, complete(*receives))
    assert [buffer[0] for buffer in received] == list(range(10))
    assert reliable(left).statistics()["packets_sent_again"] == 1


def test_acknowledgements_that_come_late_have_nothing_sent_again_twice(make) -> None:
    pair = make(timeout=10_000.0, timeout_min=10_000.0, timeout_max=10_000.0)
    left, right = pair.sides
    left.btls[0].cut = True
    left.isend(bytearray([0]), 1)
    left.btls[0].cut = False
    for number in range(1, 10):
        left.isend(bytearray([number]), 1)
    while right.btls[0].queue:
        right.btls[0].progress()
        reliable(right).channels.progress()
    assert len(left.btls[0].queue) > 5
    while left.btls[0].queue:
        pause = time.monotonic() + 0.002  # of a busy machine: longer than a round trip here
        while time.monotonic() < pause:
            pass
        left.btls[0].progress()
    assert reliable(left).statistics()["packets_sent_again"] == 1


def test_a_full_transport_delays_and_loses_nothing(make, seed: int) -> None:
    generator = random.Random(seed)
    pair = make((0.1, 0.1, 0.1), generator, room=3)
    left, right = pair.sides
    sent = [bytearray(generator.randbytes(500)) for _ in range(100)]
    received = [bytearray(500) for _ in sent]
    receives = [right.irecv(buffer, 1) for buffer in received]
    sends = [left.isend(data, 1) for data in sent]
    drive(pair, complete(*receives, *sends))
    assert received == sent


def test_a_peer_that_its_transport_reports_lost_is_lost_at_once(make) -> None:
    pair = make()
    left = pair.sides[0]
    left.isend(bytearray(8), 1)
    receive = left.irecv(bytearray(8), 1)
    left.btls[0].report_error(left.comm.group.member(1), ConnectionError("connection reset"))
    assert receive.complete
    assert "connection reset" in str(receive.error)
    before = reliable(left).statistics()["packets_sent_again"]
    end = time.monotonic() + 0.02
    drive(pair, lambda: time.monotonic() > end)
    assert reliable(left).statistics()["packets_sent_again"] == before


def test_a_peer_that_has_gone_is_not_answered_and_lost_to_who_waits_for_it(make) -> None:
    left, right = (pair := make()).sides
    receive, another = right.irecv(buffer := bytearray(8), 1), right.irecv(bytearray(8), 1)
    left.isend(bytearray(b"received"), 1)
    right.btls[0].gone = True
    drive(pair, complete(receive, another))
    assert (buffer, receive.error) == (b"received", None)
    assert "nobody is there" in str(another.error)
    assert reliable(right).statistics()["acknowledgements_sent"] == 0


def test_a_peer_that_has_gone_before_it_has_answered_is_lost(make) -> None:
    pair = make()
    left = pair.sides[0]
    receive = left.irecv(bytearray(8), 1)
    left.isend(bytearray(8), 1)
    left.btls[0].peer.queue.clear()
    left.btls[0].gone = True
    drive(pair, complete(receive))
    assert "nobody is there" in str(receive.error)
    assert reliable(left).statistics()["peers_lost"] == 1


class Renewable(LossyWire):
    """A wire that breaks, and can be joined again.

    Attributes:
        away: it can't be joined yet.
        broken: what is sent is refused, and what was on its way is lost.
        renewals: times that somebody has tried.
    """

    away = broken = False
    renewals = 0

    def send(self, endpoint: Endpoint, descriptor: Descriptor, tag: int) -> int:
        if self.broken:
            raise MPIError(ERR_PROC_FAILED, f"{self.name} is broken")
        return super().send(endpoint, descriptor, tag)

    def snap(self, *procs: Proc) -> None:
        """Both ends are broken, and told so: of each, who is at its other end."""
        for end in (self, self.peer):
            end.broken = True
            end.queue.clear()
        for end, proc in zip((self, self.peer), procs, strict=True):
            end.report_error(proc, ConnectionError(f"{self.name} has snapped"))

    def renew(self, endpoint: Endpoint) -> int:
        self.renewals += 1
        if not self.away:
            self.broken = self.peer.broken = False
        return 0


def several(flags: int = SEND | RENEWAL, count: int = 2, exclusivity: tuple[int, ...] = (1, 1), **options: float) -> Pair:
    def ends() -> list[WireBtl]:
        return [Renewable(f"wire{number}", flags=flags, exclusivity=exclusivity[number], **LIMITS) for number in range(count)]

    return Pair(ends, dr, **(QUICK | options))


@pytest.fixture
def make_several() -> Iterator[Callable[..., Pair]]:
    pairs = []

    def make(**options: object) -> Pair:
        pairs.append(several(**options))
        return pairs[-1]

    yield make
    for pair in pairs:
        for side in pair.sides:
            reliable(side).finalize()


def others(pair: Pair) -> list[Proc]:
    """Who is at the other end of side 0's wires, and of side 1's."""
    return [side.comm.group.member(1 - side.rank) for side in pair.sides]


def told(side: Side, name: str) -> int:
    return int(reliable(side).channels.statistics()[name])


def used(side: Side, number: int) -> int:
    return len(side.btls[number].kinds)


def exchange(pair: Pair, sizes: list[int], generator: random.Random, between: Callable[[], object] = lambda: None) -> None:
    """Messages of these sizes both ways, checked; `between` is called now and then."""
    sent = [[bytearray(generator.randbytes(size)) for size in sizes] for _ in pair.sides]
    received = [[bytearray(size + 1) for size in sizes] for _ in pair.sides]
    requests, receives = [], []
    for number in range(len(sizes)):
        for side in pair.sides:
            receives.append(side.irecv(received[side.rank][number], number % 3))
            requests.append(side.isend(sent[side.rank][number], number % 3))
        step(pair)
        between()
    drive(pair, complete(*requests, *receives))
    assert [request.error for request in requests + receives] == [None] * 4 * len(sizes)
    assert [[bytes(it[:-1]) for it in side] for side in received] == [[bytes(it) for it in sent[1 - at]] for at in (0, 1)]


@pytest.mark.parametrize("exclusivity", [(1, 1), (2, 1)], ids=["both carry", "one stands by"])
def test_what_a_path_loses_when_it_breaks_in_the_middle_of_anything_goes_over_another(
    make_several, exclusivity: tuple[int, int], seed: int
) -> None:
    generator = random.Random(seed)
    pair = make_several(exclusivity=exclusivity)
    breaks = 0

    def perhaps_break() -> None:
        nonlocal breaks
        whole = all(told(side, "paths_lost") == told(side, "paths_renewed") for side in pair.sides)
        if whole and generator.random() < 0.05:  # one that nobody has used would not be a break
            carried = [wire for wire in pair.sides[0].btls if wire.kinds]
            generator.choice(carried).snap(*others(pair))
            breaks += 1

    exchange(pair, [generator.choice([0, 8, 200, 1000, 5000]) for _ in range(2000)], generator, perhaps_break)
    assert breaks
    drive(pair, lambda: all(told(side, "paths_lost") == told(side, "paths_renewed") > 0 for side in pair.sides))
    assert not any(told(side, "peers_lost") for side in pair.sides)


def test_a_path_that_comes_back_is_used_again(make_several) -> None:
    pair = make_several()
    left = pair.sides[0]
    generator = random.Random(1)
    exchange(pair, [5000] * 10, generator)
    wire = left.btls[0]
    wire.away = wire.peer.away = True
    wire.snap(*others(pair))
    before = used(left, 0)
    exchange(pair, [5000] * 10, generator)
    drive(pair, lambda: wire.renewals > 1)
    assert used(left, 0) == before
    wire.away = wire.peer.away = False
    drive(pair, lambda: all(told(side, "paths_renewed") == 1 for side in pair.sides))
    before = used(left, 0)
    exchange(pair, [5000] * 10, generator)
    assert used(left, 0) > before + 10


def test_a_path_that_falls_silent_is_left_for_one_that_does_not(make_several) -> None:
    pair = make_several()
    left = pair.sides[0]
    generator = random.Random(1)
    exchange(pair, [5000] * 10, generator)
    wire = left.btls[0]
    wire.cut = wire.peer.cut = True
    exchange(pair, [5000] * 40, generator)
    assert told(left, "paths_lost") == 1
    wire.cut = wire.peer.cut = False
    drive(pair, lambda: told(left, "paths_renewed") == 1)
    exchange(pair, [5000] * 10, generator)


def test_a_path_that_takes_nothing_is_left_for_one_that_does(make_several) -> None:
    pair = make_several(exclusivity=(2, 1))
    left, right = pair.sides
    generator = random.Random(1)
    for side in pair.sides:
        side.btls[0].room = 0
    exchange(pair, [5000] * 10, generator)
    assert [told(side, "paths_lost") for side in pair.sides] == [1, 1]
    assert used(left, 0) == used(right, 0) == 0
    for side in pair.sides:
        side.btls[0].room = 1 << 30
    drive(pair, lambda: all(told(side, "paths_renewed") == 1 for side in pair.sides))
    exchange(pair, [5000] * 10, generator)
    assert used(left, 0) > 10


def test_a_path_that_takes_nothing_for_long_is_kept_where_there_is_no_other(make_several) -> None:
    pair = make_several(count=1, exclusivity=(1,))
    wire = pair.sides[0].btls[0].peer
    wire.room = 0
    data, received = payload(100), bytearray(100)
    requests = [pair.sides[0].isend(data, 1), pair.sides[1].irecv(received, 1)]
    patience = time.monotonic() + 3 * QUICK["timeout_max"] / 1000
    drive(pair, lambda: time.monotonic() > patience)
    wire.room = 1 << 30
    drive(pair, complete(*requests))
    assert received == data
    assert not told(pair.sides[0], "paths_lost")


def test_a_peer_out_of_reach_over_every_path_is_lost_after_the_parameter_and_named(make_several) -> None:
    pair = make_several(failover_timeout=60.0)
    left = pair.sides[0]
    generator = random.Random(1)
    exchange(pair, [5000] * 3, generator)
    receive = left.irecv(bytearray(8), 1)
    begun = time.monotonic()
    for wire in left.btls:
        wire.away = wire.peer.away = True
        wire.snap(*others(pair))
    assert not receive.complete
    drive(pair, complete(receive))
    assert time.monotonic() - begun >= 0.06
    assert receive.error.code == ERR_PROC_FAILED
    assert "rank 1 of pair (host here, pid 1) was out of reach over btl wire0, wire1 for 0.06 s" in str(receive.error)
    assert "pml_dr_failover_timeout" in str(receive.error)
    assert re.search("wire[01] is broken", str(receive.error))
    with pytest.raises(Exception, match="rank 1 of pair"):
        left.isend(bytearray(8), 1)


def test_without_time_for_failover_a_peer_is_lost_with_its_last_path(make_several) -> None:
    pair = make_several()
    left = pair.sides[0]
    exchange(pair, [100] * 3, random.Random(1))
    receive = left.irecv(bytearray(8), 1)
    for wire in left.btls:
        assert not receive.complete
        wire.snap(*others(pair))
    assert receive.complete
    assert "wire1 has snapped" in str(receive.error)


@pytest.mark.parametrize("count", [1, 2])
def test_what_is_sent_while_no_path_stands_arrives_when_one_is_back(make_several, count: int, seed: int) -> None:
    pair = make_several(count=count, failover_timeout=60_000.0)
    left = pair.sides[0]
    generator = random.Random(seed)
    exchange(pair, [5000] * 3, generator)
    for wire in left.btls:
        wire.away = wire.peer.away = True
        wire.snap(*others(pair))
    steps = 0

    def bring_back() -> None:
        nonlocal steps
        steps += 1
        if steps == 20:
            left.btls[-1].away = left.btls[-1].peer.away = False

    exchange(pair, [generator.choice([0, 8, 1000, 5000]) for _ in range(100)], generator, bring_back)
    assert not any(told(side, "peers_lost") for side in pair.sides)


def test_paths_that_share_have_packets_of_a_size_that_each_takes() -> None:
    def ends() -> list[WireBtl]:
        return [Renewable("narrow", flags=SEND | RENEWAL, exclusivity=1, **LIMITS | {"max_send_size": 400}),
                Renewable("wide", flags=SEND | RENEWAL, exclusivity=2, **LIMITS)]  # fmt: skip

    pair = Pair(ends, dr, **QUICK)
    exchange(pair, [5000] * 3, random.Random(1))
    pair.sides[0].btls[1].away = pair.sides[1].btls[1].away = True
    pair.sides[0].btls[1].snap(*others(pair))
    exchange(pair, [5000] * 3, random.Random(1))
    assert used(pair.sides[0], 0) > 0
    for side in pair.sides:
        reliable(side).finalize()


def test_a_peer_that_failed_elsewhere_is_not_waited_for(make_several) -> None:
    pair = make_several(failover_timeout=60_000.0)
    left = pair.sides[0]
    exchange(pair, [100] * 3, random.Random(1))
    for wire in left.btls:
        wire.away = wire.peer.away = True
        wire.snap(*others(pair))
    others(pair)[0].fail(MPIError(ERR_PROC_FAILED, "the launcher says so"))
    drive(pair, lambda: told(left, "peers_lost") == 1)
