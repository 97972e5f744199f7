"""The life of requests: when they complete, that they start again, and what becomes of abandoned ones."""

from __future__ import annotations

import time

from ompy.testing.conformance.check import Breach, Collection
from ompy.testing.conformance.pml.messages import complete, neighbours, same
from ompy.testing.conformance.pml.rank import STANDARD, SYNCHRONOUS, PmlRank

check = Collection()

LENGTHS = (0, 10, 600, 5000, 70_000, 300_000)


@check("synchronous", "completion")
def a_synchronous_send_waits_for_its_receive(rank: PmlRank) -> None:
    """And for nothing else: not for the receives of messages before it, nor for a probe."""
    before, after = neighbours(rank)
    for length in LENGTHS:
        sent, got = bytearray(rank.content(rank.rank, after, 1, length)), bytearray(length)
        first = rank.isend(bytearray(b"first"), after, 2, SYNCHRONOUS, rank.world)
        send = rank.isend(sent, after, 1, SYNCHRONOUS, rank.world)
        rank.meet()
        rank.linger()
        words = f"a synchronous send of {length} bytes"
        if not rank.until(lambda: bool(rank.comm.Iprobe(before, 1))):
            raise Breach("probe", f"{words} can't be seen by a probe")
        rank.linger()
        if send.complete or first.complete:
            raise Breach("synchronous", f"{words} is complete, and there is no receive for it")
        rank.meet()
        complete(rank, "synchronous", words, rank.irecv(got, length, before, 1, rank.world), send)
        same(rank, "delivery", got, rank.content(before, rank.rank, 1, length), words)
        rank.meet()
        if first.complete:
            raise Breach("synchronous", "a synchronous send is complete with the receive of another one")
        rank.meet()
        complete(rank, "synchronous", words, rank.irecv(bytearray(5), 5, before, 2, rank.world), first)
        rank.alive()


@check("persistent", "delivery")
def persistent_requests_start_again(rank: PmlRank) -> None:
    """With other data each time; sends of both modes, receives from one rank and from any."""
    before, after = neighbours(rank)
    for mode in (STANDARD, SYNCHRONOUS):
        for length in LENGTHS:
            sent, got = bytearray(length), bytearray(length)
            send = rank.isend_init(sent, after, 6, mode, rank.world)
            receive = rank.irecv_init(got, length, before if length % 100 else -1, 6, rank.world)
            rank.linger()
            if rank.comm.Iprobe(before, 6):
                raise Breach("persistent", "a persistent send that was not started can be seen by a probe")
            rank.meet()
            for turn in range(4):
                words = f"start {turn} of persistent requests of {length} bytes in mode {mode}"
                sent[:] = rank.content(rank.rank, after, turn, length)
                got[:] = bytes(length)
                early = turn % 2 == 0
                if early:
                    receive.start()
                    if receive.complete:
                        raise Breach("persistent", f"{words}: the receive is complete before there is a message")
                rank.meet()
                send.start()
                if not early:
                    rank.meet()
                    receive.start()
                if not rank.until(lambda receive=receive, send=send: receive.complete and send.complete):  # type: ignore[misc]
                    raise Breach("persistent", f"{words} does not complete")
                if receive.error is not None or receive.result[0] != before or receive.result[4] != length:
                    raise Breach("persistent", f"{words}: {receive.error or receive.result}")
                same(rank, "persistent", got, rank.content(before, rank.rank, turn, length), words)
            rank.meet()
            never = rank.irecv_init(got, length, before, 7, rank.world)
            never.start()
            never.cancel()
            if not rank.until(lambda never=never: never.complete) or not never.result[3]:  # type: ignore[misc]
                raise Breach("cancel", "a persistent receive that was started can't be cancelled")
            for request in (send, receive, never):
                request.release()
            rank.alive()


@check("completion", "delivery")
def memory_is_free_when_a_request_is_complete(rank: PmlRank) -> None:
    """The sender changes its memory at once, the receiver reads its own at once and sees it unchanged later."""
    before, after = neighbours(rank)
    for length in LENGTHS:
        for early in (True, False):
            words = f"a message of {length} bytes, {'with' if early else 'before'} its receive,"
            sent, got = bytearray(rank.content(rank.rank, after, 1, length)), bytearray(length)
            wanted = rank.content(before, rank.rank, 1, length)
            receive = rank.irecv(got, length, before, 1, rank.world) if early else None
            rank.meet()
            send = rank.isend(sent, after, 1, STANDARD, rank.world)
            if send.complete:
                sent[:] = bytes(length)
            if not early:
                rank.meet()
            receive = receive or rank.irecv(got, length, before, 1, rank.world)
            reads: list[bytes] = []
            end = time.monotonic() + rank.patience
            while not (send.complete and receive.complete) and time.monotonic() < end:
                rank.progress()
                if receive.complete and not reads:
                    reads.append(bytes(got))
                if send.complete:
                    sent[:] = bytes(length)
            if not (send.complete and receive.complete):
                raise Breach("completion", f"{words} does not complete", symptom=True)
            read = reads[0] if reads else bytes(got)
            sent[:] = bytes(length)
            got[:] = b"\x33" * length
            rank.meet()
            rank.linger()
            if read != wanted:
                same(rank, "completion", read, wanted, f"{words} when its requests were complete")
            same(rank, "completion", got, b"\x33" * length, f"the memory of {words} after the receive was complete")
            send.release()
            receive.release()
        rank.alive()


@check("status", "match")
def a_status_tells_of_the_message(rank: PmlRank) -> None:
    """Received with more room than needed, by wishes of every kind, posted and unexpected."""
    before, after = neighbours(rank)
    for length in (0, 7, 2000, 70_000):
        for source, tag in ((before, 77), (-1, 77), (before, -1), (-1, -1)):
            for early in (True, False):
                got = bytearray(80_000)
                receive = rank.irecv(got, len(got), source, tag, rank.world) if early else None
                rank.meet()
                send = rank.isend(bytearray(length), after, 77, STANDARD, rank.world)
                rank.meet()
                receive = receive or rank.irecv(got, len(got), source, tag, rank.world)
                words = f"a receive for ({source}, {tag}) of a message ({before}, 77) of {length} bytes"
                if not rank.until(lambda receive=receive: receive.complete):  # type: ignore[misc]
                    raise Breach("delivery", f"{words} does not complete")
                if receive.result != (before, 77, 0, False, length):
                    raise Breach("status", f"{words} tells (source, tag, error, cancelled, bytes) {receive.result}")
                receive.release()
                complete(rank, "completion", "its send", send)
        rank.alive()


@check("cancel", "match")
def a_cancelled_receive_takes_nothing(rank: PmlRank) -> None:
    """And one that was matched keeps its message."""
    before, after = neighbours(rank)
    for length in LENGTHS:
        wanted = rank.content(before, rank.rank, 1, length)
        gone, got = bytearray(length), bytearray(length)
        first = rank.irecv(gone, length, before, 1, rank.world)
        second = rank.irecv(got, length, -1, 1, rank.world)
        first.cancel()
        if not rank.until(lambda first=first: first.complete) or not first.result[3]:  # type: ignore[misc]
            raise Breach("cancel", f"a receive of {length} bytes that nothing was sent to can't be cancelled")
        rank.meet()
        send = rank.isend(bytearray(rank.content(rank.rank, after, 1, length)), after, 1, STANDARD, rank.world)
        if not rank.until(lambda second=second: second.complete):  # type: ignore[misc]
            raise Breach("cancel", f"a message of {length} bytes does not come to the receive behind a cancelled one")
        second.cancel()
        if second.result[3]:
            raise Breach("cancel", f"a receive that has its message of {length} bytes is said to be cancelled afterwards")
        same(rank, "cancel", got, wanted, f"{length} bytes behind a cancelled receive")
        same(rank, "cancel", gone, bytes(length), f"memory of a cancelled receive of {length} bytes")
        first.release()
        second.release()
        complete(rank, "completion", "its send", send)
        rank.alive()


@check("progress", "completion")
def no_call_waits_for_another_rank(rank: PmlRank) -> None:
    """Long and synchronous messages from all to all are begun before anybody receives; then both ways at once."""
    everyone = range(rank.size)
    length = 400_000
    begin = time.monotonic()
    sends = [rank.isend(bytearray(rank.content(rank.rank, peer, 1, length)), peer, 1, mode, rank.world)
             for peer in everyone for mode in (STANDARD, SYNCHRONOUS, STANDARD)]  # fmt: skip
    if rank.pml.improbe(rank.rank, 99, rank.world) is not None or rank.comm.Iprobe(rank.rank, 99):
        raise Breach("probe", "a probe for a tag that nobody uses finds a message")
    if time.monotonic() - begin > rank.patience:
        raise Breach("progress", f"sends of {length} bytes that nobody receives take {time.monotonic() - begin:.1f} s to begin")
    rank.meet()
    buffers = [(peer, bytearray(length)) for peer in everyone for _ in range(3)]
    receives = [rank.irecv(got, length, peer, 1, rank.world) for peer, got in buffers]
    complete(rank, "progress", f"{length} bytes from all to all, three times,", *receives, *sends)
    for peer, got in buffers:
        same(rank, "delivery", got, rank.content(peer, rank.rank, 1, length), f"{length} bytes of rank {peer}")


@check("progress", "completion", ranks=2)
def what_can_go_on_does_while_a_rank_waits_for_something_else(rank: PmlRank) -> None:
    """A long message goes out while its sender waits for a receive of another tag, which its receiver answers only then."""
    length, world = 500_000, rank.world
    for sender in range(rank.size):
        receiver = (sender + 1) % rank.size
        if rank.rank == sender:
            answer = bytearray(4)
            send = rank.isend(bytearray(rank.content(sender, receiver, 1, length)), receiver, 1, STANDARD, world)
            complete(
                rank,
                "progress",
                "an answer that is given when a long message is there",
                rank.irecv(answer, 4, receiver, 2, world),
            )
            complete(rank, "completion", "the long message's send", send)
        elif rank.rank == receiver:
            got = bytearray(length)
            complete(rank, "progress", "a long message whose sender waits", rank.irecv(got, length, sender, 1, world))
            complete(rank, "completion", "a short answer", rank.isend(bytearray(b"done"), sender, 2, STANDARD, world))
            same(rank, "delivery", got, rank.content(sender, receiver, 1, length), "a long message whose sender waits")
        rank.meet()
        rank.alive()


@check("abandon", "delivery")
def an_abandoned_request_is_nobodys(rank: PmlRank) -> None:
    """A receive that was not matched takes nothing; a send arrives as it was."""
    before, after = neighbours(rank)
    for length in LENGTHS:
        words = f"{length} bytes"
        gone, got = bytearray(length), bytearray(length)
        rank.irecv(gone, length, before, 8, rank.world).abandon(gone)
        rank.meet()
        sent = bytearray(rank.content(rank.rank, after, 1, length))
        send = rank.isend(sent, after, 8, STANDARD, rank.world)
        send.abandon(sent)
        sent[:] = bytes(length)
        rank.meet()
        complete(
            rank,
            "abandon",
            f"a message of {words} whose sender has abandoned it",
            rank.irecv(got, length, before, 8, rank.world),
        )
        same(rank, "abandon", got, rank.content(before, rank.rank, 1, length), f"an abandoned send of {words}")
        same(rank, "abandon", gone, bytes(length), f"memory of an abandoned receive of {words}")
        rank.meet()
        rank.alive()
