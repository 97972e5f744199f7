"""The transport beside another one: both lead to each peer, and the bytes are shared out between them."""

from __future__ import annotations

from ompy.testing.conformance.check import Breach, Collection
from ompy.testing.conformance.mpi.point_to_point import compare, neighbours
from ompy.testing.conformance.mpi.rank import MpiRank

check = Collection()

MESSAGES = 120


@check("reach", ranks=2, abroad=True)
def both_transports_lead_to_each_peer(rank: MpiRank) -> None:
    names = {module.name for module in rank.modules()} - {"self"}
    for peer in range(rank.size):
        if peer != rank.rank and set(rank.chosen_for(peer)) != names:
            raise Breach("reach", f"messages to rank {peer} go by {rank.chosen_for(peer)}, not by {sorted(names)}")


@check("order", "delivery", ranks=2, abroad=True)
def messages_over_both_keep_their_order(rank: MpiRank) -> None:
    MPI = rank.MPI
    shared = rank.common_random("mixed")
    before, after = neighbours(rank)
    lengths = [shared.choice((4, 100, 3000, 50_000, 400_000)) for _ in range(MESSAGES)]
    sends = [
        rank.comm.Isend(bytearray(rank.content(rank.rank, after, number, length)), after, 5)
        for number, length in enumerate(lengths)
    ]
    for number, length in enumerate(lengths):
        got, status = bytearray(max(lengths)), MPI.Status()
        rank.comm.Recv(got, before, 5, status)
        found = bytes(got[: status.Get_count(MPI.BYTE)])
        compare(rank, "order", found, rank.content(before, rank.rank, number, length), f"message {number} over both")
        rank.alive()
    MPI.Request.Waitall(sends)


@check("delivery", ranks=2, abroad=True)
def one_long_message_goes_over_both(rank: MpiRank) -> None:
    before, after = neighbours(rank)
    for length in (1_000_001, 5_000_000):
        sent, got = bytearray(rank.content(rank.rank, after, length, length)), bytearray(length)
        rank.comm.Sendrecv(sent, after, 0, got, before, 0)
        compare(rank, "delivery", got, rank.content(before, rank.rank, length, length), "over both")
        rank.alive()
