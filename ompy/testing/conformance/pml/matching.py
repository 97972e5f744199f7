"""Who takes which message: random sequences against the model."""

from __future__ import annotations

from ompy.testing.conformance.check import Breach, Collection
from ompy.testing.conformance.pml.rank import STANDARD, PmlRank
from ompy.testing.conformance.pml.sequence import Sequence

check = Collection()

EVERY = (
    "match", "order", "posted", "unexpected", "probe", "mprobe", "cancel", "delivery", "truncation", "status",
    "completion", "synchronous", "object",
)  # fmt: skip
STEPS = 250
TAKEN = 12  # messages that are taken out one by one
# Lengths that tell each message from every other one.
TELLING = (8, 64, 65, 500, 1500, 4000)
LONG = (8, 3000, 9000, 70_000, 200_000)


@check("mprobe", "probe")
def what_is_taken_out_is_met_by_nobody(rank: PmlRank) -> None:
    """Messages with tags of their own: each is seen by a probe, taken out, seen no more, and received."""
    before, after = (rank.rank - 1) % rank.size, (rank.rank + 1) % rank.size
    status = rank.MPI.Status()
    for tag in range(TAKEN):
        sent, got = bytearray(tag.to_bytes(8, "little")), bytearray(8)
        send = rank.isend(sent, after, tag, STANDARD, rank.world)
        if not rank.until(lambda tag=tag: bool(rank.comm.Iprobe(before, tag))):  # type: ignore[misc]
            raise Breach("delivery", f"a message with tag {tag} does not come")
        message = rank.pml.improbe(before, tag, rank.world)
        if message is None:
            raise Breach("mprobe", f"a message with tag {tag} is seen by a probe, and can't be taken out")
        if rank.comm.Iprobe(before, tag, status):
            clause = "mprobe" if status.tag == tag else "probe"
            raise Breach(clause, f"a message with tag {tag} was taken out, and a probe for it sees one with tag {status.tag}")
        request = rank.imrecv(got, 8, message)
        if not rank.until(lambda request=request, send=send: request.complete and send.complete):  # type: ignore[misc]
            raise Breach("mprobe", f"the receive of a message with tag {tag} that was taken out does not complete")
        if got != sent:
            raise Breach("mprobe", f"a message with tag {tag} was taken out, and {got!r} was received")
        request.release()
        send.release()
    rank.meet()


@check(*EVERY)
def single_messages_find_their_receives(rank: PmlRank) -> None:
    """A sequence in which a message is where it belongs before there is another one."""
    Sequence(rank, rank.channels[:1], rank.common_random("one"), TELLING, bursts=(1,)).run(STEPS)


@check("separate", *EVERY)
def messages_of_several_communicators_find_their_receives(rank: PmlRank) -> None:
    """Bursts of messages of any short length, on communicators of all kinds."""
    Sequence(rank, rank.channels, rank.common_random("several")).run(STEPS)


@check("order", *EVERY)
def messages_of_all_lengths_find_their_receives(rank: PmlRank) -> None:
    """Bursts in which short ones have long ones to overtake."""
    Sequence(rank, rank.channels[:2], rank.common_random("long"), LONG).run(STEPS // 2)
