"""More than there is room for, and peers that make no progress."""

from __future__ import annotations

import time
from collections import Counter
from functools import partial

from ompy.mca import btl as contract
from ompy.mca.btl import Endpoint
from ompy.testing.conformance.btl.messages import compare, everybody, held
from ompy.testing.conformance.btl.rank import Arrival, BtlRank
from ompy.testing.conformance.btl.remote_memory import WORD, Region, exposed, issue, require
from ompy.testing.conformance.check import Breach, Collection

check = Collection()

# A rank stops pushing into a transport that never refuses after so many messages, or so many bytes.
MOST_MESSAGES, MOST_BYTES = 4000, 48 << 20
FURTHER_ATTEMPTS, REFUSALS = 50, 1000
ONE_WAY = 3000  # messages to each peer, none back
LEAST_ROUNDS, UNDER_WAY = 150, 32
FLOOD_BYTES = 6 << 20
STREAM_WINDOW = 64


def push_on(rank: BtlRank, peer: int, counts: dict[int, int], size: int, attempts: int) -> int:
    """Attempts to send to a peer that has no room; how many were taken all the same."""
    before = counts[peer]
    data = rank.content(0, peer, counts[peer], size)
    for _ in range(attempts):
        if rank.start(peer, data):
            counts[peer] += 1
            data = rank.content(0, peer, counts[peer], size)
    return counts[peer] - before


@check("back-pressure", "thrift", idle=True)
def what_is_refused_was_not_taken(rank: BtlRank) -> None:
    """Rank 0 pushes while its peers make no progress; then exactly what was taken arrives, and refusals have cost nothing."""
    limit = rank.btl.max_send_size
    size = min(limit, 16384)
    targets = [peer for peer in rank.peers if peer != 0] or list(rank.peers)
    rank.meet()
    if rank.rank:
        (taken, *_) = rank.wire.exchange(None)
    else:
        counts = dict.fromkeys(targets, 0)
        for peer in targets:
            while counts[peer] < min(MOST_MESSAGES, MOST_BYTES // size):
                if not rank.start(peer, rank.content(0, peer, counts[peer], size)):
                    break
                counts[peer] += 1
            else:
                continue
            push_on(rank, peer, counts, size, FURTHER_ATTEMPTS)
            before = held()
            if not push_on(rank, peer, counts, size, REFUSALS):
                compare(before, held(), REFUSALS, "refusals")
        (taken, *_) = rank.wire.exchange(counts)
    wanted = taken.get(rank.rank, 0) if taken else 0
    expected = sorted(rank.content(0, rank.rank, number, size) for number in range(wanted))
    rank.until(lambda: len(rank.arrived) >= wanted, lambda: f"{len(rank.arrived)} of {wanted} messages arrived")
    rank.meet()
    rank.land()
    rank.afterthoughts()
    if (found := sorted(it.data for it in rank.arrived)) != expected:
        words = f"{wanted} messages of {size} bytes were taken, and {len(found)} arrived, or arrived changed"
        raise Breach("back-pressure", words)
    rank.arrived.clear()
    rank.transfer(everybody(rank, [100]))


@check("back-pressure")
def room_comes_back_though_nothing_is_sent_back(rank: BtlRank) -> None:
    """Each rank in turn sends many small messages to its peers, which only receive."""
    seen: Counter[int | None] = Counter()

    def count(arrival: Arrival, endpoint: Endpoint | None, view: memoryview) -> None:
        seen[arrival.source] += 1
        rank.arrived.clear()

    def enough(source: int) -> bool:
        return seen[source] >= ONE_WAY

    rank.react = count
    data = bytes(48)
    for source in range(rank.size):
        rank.meet()
        if source == rank.rank:
            for _ in range(ONE_WAY):
                for peer in rank.peers:
                    rank.send(peer, data)
            rank.land()
        if source in rank.sources:
            rank.until(partial(enough, source), "messages are missing")
        rank.meet()


@check("fairness", ranks=3, abroad=True, idle=True)
def no_peer_s_messages_wait_for_ever_behind_another_s(rank: BtlRank) -> None:
    """One rank sends one message, another keeps the way to their receiver full; the receiver looks once a round.

    round      flooder                        quiet one      receiver
    1          up to 32 under way             its message
               --------------------------- all meet ---------------------------
                                                             `progress`, once
               --------------------------- all meet ---------------------------
    2          as many as have arrived                       ...
    """
    for receiver, flooder, quiet in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (2, 1, 0)):
        # Who sends may have to go on for that; who receives goes on once a round.
        meet = rank.wire.exchange if rank.rank == receiver else rank.exchange
        rank.meet()
        if rank.rank == quiet:
            rank.send(receiver, b"one message")
        meet(None)
        end = time.monotonic() + rank.patience
        sent = received = rounds = 0
        done = late = False
        while not done:
            rounds += 1
            if rank.rank == flooder:
                while sent - received < UNDER_WAY and rank.start(receiver, b"one of many"):
                    sent += 1
            meet(None)
            if rank.rank == receiver:
                rank.progress()
                late = rounds > LEAST_ROUNDS and time.monotonic() > end
            found = [arrival.source for arrival in rank.arrived]
            received, done, late = meet((found.count(flooder), quiet in found, late))[receiver]
            if late and not done:
                words = f"in {rounds} calls of `progress` {received} messages of rank {flooder}'s arrived"
                raise Breach("fairness", f"{words}, and that of rank {quiet}'s did not, which was sent before them")
        sent = rank.exchange(sent)[flooder]
        if rank.rank == receiver:
            rank.receive(sent + 1)
        rank.arrived.clear()
        rank.meet()
        rank.land()


@check("back-pressure")
def all_ranks_may_push_at_once(rank: BtlRank) -> None:
    """Everybody floods everybody with the largest messages, and looks for arrivals only when there is no room."""
    largest = rank.btl.max_send_size
    count = max(8, min(300, FLOOD_BYTES // largest))
    rank.transfer(everybody(rank, [largest] * count))


@check("asynchrony", needs="asynchronous_progress", idle=True)
def what_was_taken_completes_without_the_peer(rank: BtlRank) -> None:
    """Rank 0 sends, puts and gets; its peers are in no call."""
    require(rank, contract.ASYNCHRONOUS, "asynchronous_progress")
    kinds = [kind for kind, flag in (("put", contract.PUT), ("get", contract.GET)) if rank.btl.flags & flag]
    mine, local = Region(rank, WORD, WORD), Region(rank, WORD, WORD)
    windows = exposed(rank, mine)
    counts = dict.fromkeys(rank.peers, 0)
    if rank.rank == 0:
        for peer in rank.peers:
            for number in range(8):
                counts[peer] += rank.start(peer, rank.content(0, peer, number, 64)) is not None
            for kind in kinds:
                issue(rank, kind, peer, local, 0, windows[peer], 0, WORD)
        rank.until(lambda: not rank.flying, "a transfer did not complete while its target was in no call")
    (counts, *_) = rank.wire.exchange(counts)
    rank.until(lambda: len(rank.arrived) >= counts.get(rank.rank, 0), "messages are missing")
    rank.arrived.clear()
    rank.meet()
    mine.close()
    local.close()


@check("delivery", "thrift", option="bytes")
def so_many_bytes_arrive(rank: BtlRank) -> None:
    """A stream of the largest messages to the next rank, as many as --bytes asks for, each checked as it arrives."""
    size = rank.btl.max_send_size
    count = -(-int(rank.options["bytes"]) // size)
    after = (rank.rank + 1) % rank.size
    if after not in rank.peers:
        after = next(iter(rank.peers))
    texts = [rank.content(0, 0, number, size - 8) for number in range(7)]
    source = next(peer for peer in rank.sources)
    numbers: set[int] = set()
    sent = 0

    def look() -> bool:
        for arrival in rank.arrived:
            number = int.from_bytes(arrival.data[:8], "little")
            if arrival.data[8:] != texts[number % 7]:
                raise Breach("delivery", f"message {number} of {size} bytes arrived changed")
            numbers.add(number)
        rank.arrived.clear()
        return len(numbers) >= count

    rank.meet()
    while sent < count:
        rank.send(after, sent.to_bytes(8, "little") + texts[sent % 7])
        sent += 1
        if sent % STREAM_WINDOW == 0:
            rank.poll()
            look()
    rank.until(look, lambda: f"{len(numbers)} of {count} messages arrived from rank {source}")
    rank.meet()
    rank.land()
