"""Messages: sizes, tags, order, who owns which memory when."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable

import psutil

from ompy.core.memory import address_of
from ompy.mca.btl import FREE_TAGS, Descriptor, Endpoint
from ompy.testing.conformance.btl.rank import SPOILT, Arrival, BtlRank, Plan, Sending
from ompy.testing.conformance.check import Breach, Collection

check = Collection()

MOST_READY = 8  # messages that lie ready at once
SMALL = 200  # messages of the checks that send small ones to each peer
WARM_UP, MEASURED = 2, 3  # batches
TAG = FREE_TAGS[0]


def everybody(rank: BtlRank, sizes: list[int], tags: int = 1) -> Callable[[int], Plan]:
    """A plan: from each rank to each, messages of these sizes, the tags in turn."""

    def plan(source: int) -> Plan:
        return [
            (target, TAG + number % tags, rank.content(source, target, number, size))
            for number, size in enumerate(sizes)
            for target in range(rank.size)
        ]

    return plan


def sizes_around_limits(rank: BtlRank) -> list[int]:
    """0, the largest, and what lies next to every limit and to powers of two."""
    btl = rank.btl
    edges = [btl.eager_limit, btl.rndv_eager_limit, *(1 << bit for bit in range(4, btl.max_send_size.bit_length()))]
    near = {edge + step for edge in edges for step in (-1, 0, 1)} | {btl.max_send_size - 1, btl.max_send_size, *range(10)}
    return sorted(size for size in near if 0 <= size <= btl.max_send_size)


@check("delivery", "sender", "completion")
def messages_arrive_once_and_unchanged(rank: BtlRank) -> None:
    shared = rank.common_random("small")
    rank.transfer(everybody(rank, [shared.randrange(24, 600) for _ in range(SMALL)]))


@check("size", "delivery")
def every_size_around_a_limit_arrives(rank: BtlRank) -> None:
    rank.transfer(everybody(rank, sizes_around_limits(rank)))


@check("size", "ownership")
def a_header_and_the_program_s_memory_arrive_as_one_message(rank: BtlRank) -> None:
    """`prepare_src`: the payload may be sent from where it lies, and is overwritten as soon as the callback has run."""
    largest = rank.btl.max_send_size
    sizes = [size for size in sizes_around_limits(rank) if size >= 16] + [largest] * 3

    def send(peer: int, data: bytes, tag: int) -> Sending:
        memory = bytearray(data[16:])

        def attempt() -> Sending | None:
            descriptor = rank.btl.prepare_src(rank.peers[peer], address_of(memory) if memory else 0, 16, len(memory))
            if descriptor is None:
                return None
            if len(descriptor.view) < 16 or descriptor.total_length != len(data):
                raise Breach("size", f"prepare_src of 16 and {len(memory)} bytes gave room for {descriptor.total_length}")
            descriptor.view[:16] = data[:16]

            def spoil() -> None:
                memory[:] = bytes([SPOILT]) * len(memory)

            return rank.launch(peer, descriptor, tag, spoil)

        return rank.insist(attempt)

    rank.clause = "ownership"
    rank.transfer(everybody(rank, sizes), send)


@check("delivery")
def bytes_sent_at_once_arrive(rank: BtlRank) -> None:
    """`sendi`, header and payload in every proportion, after which the caller's memory is free."""
    shared = rank.common_random("sendi")
    sizes = [0, 1, 8, 24, *(shared.randrange(24, 4096) for _ in range(60))]
    sizes = [min(size, rank.btl.max_send_size) for size in sizes]

    def send(peer: int, data: bytes, tag: int) -> None:
        memory = bytearray(data)
        rank.post(peer, memory, tag, shared.choice([-1, 0, shared.randint(0, len(memory)), len(memory)]))
        memory[:] = bytes([SPOILT]) * len(memory)

    rank.transfer(everybody(rank, sizes), send)


@check("tag")
def every_tag_has_its_receiver(rank: BtlRank) -> None:
    for size in (40, 0):
        rank.transfer(everybody(rank, [size] * len(FREE_TAGS), len(FREE_TAGS)))


@check("order", needs="in_order")
def messages_do_not_overtake(rank: BtlRank) -> None:
    """Of all sizes, by `send` and `sendi` in turn, with back-pressure in between."""
    shared = rank.common_random("order")
    limit = min(rank.btl.max_send_size, 20_000)
    sizes = [shared.choice((24, 60, 200, 1000, rank.btl.eager_limit, limit)) for _ in range(2 * SMALL)]
    sizes = [max(24, min(size, limit)) for size in sizes]
    numbers = iter(range(1 << 30))

    def send(peer: int, data: bytes, tag: int) -> None:
        if next(numbers) % 3:
            rank.send(peer, data, tag)
        else:
            rank.post(peer, data, tag)

    rank.transfer(everybody(rank, sizes, 3), send, ordered=True)


@check("order", needs="in_order", idle=True)
def a_long_message_is_not_overtaken_by_a_short_one_behind_it(rank: BtlRank) -> None:
    """Pairs of both lie ready when their receiver looks for the first time; each rank in turn is the receiver."""
    largest = rank.btl.max_send_size
    sizes = [largest, largest * 3 // 4, largest // 2, largest // 4, rank.btl.eager_limit + 1, rank.btl.eager_limit]
    sizes = [max(24, min(size, largest)) for size in sizes]
    for target in range(rank.size):
        for turn, size in enumerate(sizes):
            rank.meet()
            sent = 0
            if target in rank.peers:
                while sent < MOST_READY and rank.start(target, rank.content(rank.rank, target, sent, 24 if sent % 2 else size)):
                    sent += 1
            counts = rank.wire.exchange(sent)
            if target != rank.rank:
                continue
            wanted = sum(counts[source] for source in rank.sources)
            rank.receive(wanted)
            for source in rank.sources:
                found = [arrival.data for arrival in rank.arrived if arrival.source == source]
                lengths = [24 if number % 2 else size for number in range(counts[source])]
                expected = [rank.content(source, target, number, length) for number, length in enumerate(lengths)]
                if found != expected:
                    raise Breach("order", f"round {turn}: of rank {source}'s messages of {size} and 24 bytes one was overtaken")
            rank.arrived.clear()
    rank.meet()
    rank.land()


@check("receipt", sole=True)
def a_receiver_that_raises_has_received(rank: BtlRank) -> None:
    """What it raises comes out of `progress`; no message is lost, changed or handed over again because of it."""

    class Dissatisfied(Exception):
        """What the receiver raises of some messages."""

    count = 24
    raised = 0

    def react(arrival: Arrival, endpoint: Endpoint | None, view: memoryview) -> None:
        if arrival.data[0] % 3 == 0:
            raise Dissatisfied

    def look() -> None:
        nonlocal raised
        try:
            rank.step()
        except Dissatisfied:
            raised += 1
            rank.last_event = time.monotonic()

    def plan(source: int) -> Plan:
        return [
            (target, TAG, bytes([number]) + rank.content(source, target, number, 400 if number % 2 else 60))
            for number in range(count)
            for target in range(rank.size)
        ]

    rank.react = react
    rank.wire.exchange(None, look)
    rank.last_event = time.monotonic()
    waiting = [(target, tag, data) for target, tag, data in plan(rank.rank) if target in rank.peers]
    while waiting or len(rank.arrived) < count * len(rank.sources):
        if waiting and rank.start(waiting[0][0], waiting[0][2], waiting[0][1]):
            waiting.pop(0)
        else:
            look()
        if time.monotonic() - rank.last_event > rank.patience:
            words = f"{len(rank.arrived)} messages arrived, after some receivers had raised"
            raise Breach("receipt", f"{words}; nothing happened for {rank.patience:g} s", symptom=True)
    rank.wire.exchange(None, look)
    rank.react = None
    rank.meet()
    rank.land()
    rank.afterthoughts()
    expected = [
        Arrival(source, tag, data) for source in rank.sources for target, tag, data in plan(source) if target == rank.rank
    ]
    if problem := rank.judge(expected):
        raise Breach("receipt", f"after a receiver had raised: {problem}")
    if raised != sum(arrival.data[0] % 3 == 0 for arrival in expected):
        raise Breach("receipt", f"of {len(expected)} messages {raised} times a receiver's exception came out of `progress`")
    rank.arrived.clear()
    rank.transfer(everybody(rank, [100, 24, 1000]))


@check("receipt")
def what_a_receiver_is_handed_stays_while_it_looks(rank: BtlRank) -> None:
    """The receiver sends from within, then looks again."""
    answered = TAG + 1
    answers = dict.fromkeys(rank.peers, 0)

    def react(arrival: Arrival, endpoint: Endpoint | None, view: memoryview) -> None:
        if arrival.tag == TAG and arrival.source is not None:
            answers[arrival.source] += rank.start(arrival.source, bytes(reversed(arrival.data)), answered) is not None
            if bytes(view) != arrival.data:
                raise Breach("receipt", "the message changed under its receiver, which had sent another meanwhile")

    rank.react = react
    rank.meet()
    count = 20
    for peer in rank.peers:
        for number in range(count):
            rank.send(peer, rank.content(rank.rank, peer, number, 300))
    rank.until(lambda: sum(it.tag == TAG for it in rank.arrived) >= count * len(rank.sources), "messages are missing")
    answers_to_me = sum(sent.get(rank.rank, 0) for sent in rank.exchange(answers))
    rank.until(lambda: len(rank.arrived) >= count * len(rank.sources) + answers_to_me, "answers are missing")
    rank.meet()
    rank.land()
    rank.afterthoughts()
    rank.arrived.clear()


@check("nesting", "completion")
def receivers_and_callbacks_may_send(rank: BtlRank) -> None:
    """Each message is sent back from its receiver until it has made so many hops; each callback sends one more."""
    hops, balls = 40, 3
    depth = 0
    waiting: list[Callable[[], bool]] = []

    def throw(peer: int, data: bytes) -> None:
        if waiting or not rank.start(peer, data):
            waiting.append(lambda: rank.start(peer, data) is not None)

    def react(arrival: Arrival, endpoint: Endpoint | None, view: memoryview) -> None:
        nonlocal depth
        depth += 1
        if depth > 1:
            raise Breach("nesting", "a receiver was called while another was running: progress was called from within")
        left = arrival.data[0]
        if left and arrival.source is not None:
            throw(arrival.source, bytes([left - 1]) + arrival.data[1:])
        depth -= 1

    rank.react = react
    rank.meet()
    for peer in rank.peers:
        for ball in range(balls):
            throw(peer, bytes([hops, ball]) * 20)
    wanted = balls * (hops + 1) * len(rank.peers)

    def done() -> bool:
        while waiting and waiting[0]():
            waiting.pop(0)
        return len(rank.arrived) >= wanted and not waiting

    rank.until(done, lambda: f"{len(rank.arrived)} of {wanted} messages came back")
    rank.meet()
    rank.land()
    rank.afterthoughts()
    if len(rank.arrived) != wanted:
        raise Breach("delivery", f"{len(rank.arrived)} messages arrived, {wanted} were sent")
    rank.arrived.clear()


def held() -> tuple[int, int, int, int]:
    """Descriptors, blocks of Python's allocator, bytes of memory and open files of this process."""
    gc.collect()
    process = psutil.Process()
    descriptors = sum(type(it) is Descriptor for it in gc.get_objects())
    return descriptors, sys.getallocatedblocks(), process.memory_info().rss, process.num_fds()


def compare(before: tuple[int, ...], after: tuple[int, ...], count: int, what: str) -> None:
    """Raises Breach when so many messages or the like have left more than noise."""
    names = ("descriptors", "blocks of memory", "bytes of memory", "open files")
    for name, first, last, allowed in zip(names, before, after, (64, count // 4, 2048 * count, 8), strict=True):
        if last - first > allowed:
            raise Breach("thrift", f"{count} {what} have left {last - first} more {name} than there were before")


@check("thrift")
def nothing_grows_with_the_number_of_messages(rank: BtlRank) -> None:
    size = min(rank.btl.max_send_size, 8192)
    batch = 250
    seen = batches = 0

    def count(arrival: Arrival, endpoint: Endpoint | None, view: memoryview) -> None:
        nonlocal seen
        seen += 1
        rank.arrived.clear()

    def exchange() -> None:
        nonlocal batches
        batches += 1
        for number in range(batch):
            for peer in rank.peers:
                rank.send(peer, bytes(size if number % 4 == 0 else 64))
            rank.poll()
        rank.until(lambda: seen >= batches * batch * len(rank.sources), "messages are missing")
        rank.meet()
        rank.land()
        rank.meet()

    rank.react = count
    rank.meet()
    for _ in range(WARM_UP):
        exchange()
    before = held()
    for _ in range(MEASURED):
        exchange()
    after = held()
    messages = MEASURED * batch * len(rank.peers)
    rank.meet()
    compare(before, after, messages, "messages")
