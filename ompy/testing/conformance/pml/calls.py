"""MPI programs over the layer: what its blocking functions and probes tell a program, in the forms that a program uses."""

from __future__ import annotations

import sys
import threading
import time
from types import FrameType
from typing import Any

from ompy.testing.conformance.check import Breach, Collection
from ompy.testing.conformance.pml.messages import expect, neighbours, same
from ompy.testing.conformance.pml.rank import PmlRank

check = Collection()

LENGTHS = (0, 1, 100, 4000, 9000, 70_000, 400_000)
EXCHANGES = 200
# Seconds between two threads' turns at the GIL.
TURN = 1e-6


def told_by(rank: PmlRank, status: Any) -> tuple[int, int, int]:
    """Source, tag and bytes."""
    return status.source, status.tag, status.Get_count(rank.MPI.BYTE)


@check("delivery", "status")
def blocking_calls_exchange_messages(rank: PmlRank) -> None:
    """Send and Recv of every mode, by the parity of ranks; then Sendrecv, in place too, by exact envelopes and wildcards."""
    MPI, comm = rank.MPI, rank.comm
    before, after = neighbours(rank)
    MPI.Attach_buffer(bytearray(4 * (max(LENGTHS) + MPI.BSEND_OVERHEAD)))
    for number, length in enumerate(LENGTHS):
        wanted, status = rank.content(before, rank.rank, number, length), MPI.Status()
        sent, got = bytearray(rank.content(rank.rank, after, number, length)), bytearray(length + 8)
        for turn, name in enumerate(("Send", "Ssend", "Bsend") if rank.size > 1 else ()):
            source, tag = (before, MPI.ANY_SOURCE)[turn % 2], (number, MPI.ANY_TAG)[turn // 2]
            # Rank 0 receives first: the others' sends come to an end one after the other.
            if rank.rank == 0:
                comm.Recv(got, source, tag, status)
            getattr(comm, name)(sent, after, number)
            if rank.rank:
                comm.Recv(got, source, tag, status)
            expect("status", f"{name} of {length} bytes", told_by(rank, status), (before, number, length))
            same(rank, "delivery", got[:length], wanted, f"{name} of {length} bytes")
            rank.meet()
        got = bytearray(length)
        comm.Sendrecv(sent, after, number, got, MPI.ANY_SOURCE, MPI.ANY_TAG, status)
        expect(
            "status",
            f"Sendrecv of {length} bytes",
            told_by(rank, status),
            (before, number, length),
        )
        same(rank, "delivery", got, wanted, f"Sendrecv of {length} bytes")
        rank.meet()
        comm.Sendrecv_replace(sent, after, number, before, number, status)
        same(rank, "delivery", sent, wanted, f"Sendrecv_replace of {length} bytes")
        rank.alive()
    MPI.Detach_buffer()


@check("probe", "mprobe", "status")
def probes_tell_a_program_of_its_messages(rank: PmlRank) -> None:
    """Probe, Iprobe, Mprobe and Improbe by every wish; then the message comes to who asks for it."""
    MPI, comm = rank.MPI, rank.comm
    before, after = neighbours(rank)
    for length in LENGTHS:
        for source, tag in ((before, 7), (MPI.ANY_SOURCE, 7), (before, MPI.ANY_TAG), (MPI.ANY_SOURCE, MPI.ANY_TAG)):
            for form in ("Probe", "Iprobe", "Mprobe", "Improbe"):
                words, status = f"{form}({source}, {tag}) of {length} bytes", MPI.Status()
                message: Any = None
                send = comm.Isend(bytearray(rank.content(rank.rank, after, 7, length)), after, 7)
                if form == "Iprobe":
                    while not comm.Iprobe(source, tag, status):
                        pass
                elif form == "Improbe":
                    while message is None:
                        message = comm.Improbe(source, tag, status)
                else:
                    message = getattr(comm, form)(source, tag, status)
                clause = "mprobe" if form[-6:] != "Iprobe" and form != "Probe" else "probe"
                expect(clause, words, told_by(rank, status), (before, 7, length))
                got = bytearray(length)
                if clause == "mprobe":
                    if comm.Iprobe(before, 7):
                        raise Breach("mprobe", f"{words}: a probe meets a message that was taken out")
                    message.Recv(got, status)
                else:
                    comm.Recv(got, before, 7, status)
                expect(
                    "status",
                    f"the receive after {words}",
                    told_by(rank, status),
                    (before, 7, length),
                )
                same(rank, "delivery", got, rank.content(before, rank.rank, 7, length), words)
                send.Wait()
                rank.meet()
        rank.alive()


@check("object", "order", "delivery")
def objects_of_all_sizes_are_exchanged(rank: PmlRank) -> None:
    """Pickled ones, whose receivers know no length, to every rank, with wildcards that take them in the order sent."""
    MPI, comm = rank.MPI, rank.comm
    shared = rank.common_random("objects")
    lengths = [shared.choice((0, 10, 3000, 9000, 100_000)) for _ in range(20)]
    sends = [comm.isend((rank.rank, number, rank.content(rank.rank, peer, number, length)), peer, number % 3)
             for number, length in enumerate(lengths) for peer in range(rank.size)]  # fmt: skip
    due = dict.fromkeys(range(rank.size), 0)
    for _ in range(len(lengths) * rank.size):
        status = MPI.Status()
        source, number, content = comm.recv(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=status)
        expect("status", f"object {number} of rank {source}", (status.source, status.tag), (source, number % 3))
        expect("order", f"an object of rank {source}", number, due[source])
        due[source] += 1
        same(
            rank,
            "object",
            content,
            rank.content(source, rank.rank, number, lengths[number]),
            f"object {number} of rank {source}",
        )
    MPI.Request.waitall(sends)
    rank.meet()


@check("completion", "persistent", "cancel")
def requests_complete_in_every_form_of_waiting(rank: PmlRank) -> None:
    """Wait, Test, Waitany, Waitsome, Testall; persistent ones by Startall; a cancelled one among them."""
    MPI, comm = rank.MPI, rank.comm
    before, after = neighbours(rank)
    for length in LENGTHS:
        sent = [bytearray(rank.content(rank.rank, after, number, length)) for number in range(6)]
        got = [bytearray(length) for _ in sent]
        receives = [comm.Irecv(memory, before, number) for number, memory in enumerate(got)]
        sends = [comm.Isend(memory, after, number) for number, memory in enumerate(sent)]
        never = comm.Irecv(bytearray(1), before, 99)
        first = MPI.Request.Waitany(receives)
        seen = {first, *MPI.Request.Waitsome([*receives[:2], *sends[:2]])}
        del seen
        never.Cancel()
        status = MPI.Status()
        never.Wait(status)
        if not status.Is_cancelled():
            raise Breach("cancel", "a receive that nothing was sent to could not be cancelled")
        while not MPI.Request.Testall([*receives, *sends]):
            pass
        for number, memory in enumerate(got):
            same(rank, "completion", memory, rank.content(before, rank.rank, number, length), f"{length} bytes after Testall")
        persistent = [comm.Recv_init(got[0], before, 1), comm.Ssend_init(sent[0], after, 1)]
        for turn in range(3):
            sent[0][:] = rank.content(rank.rank, after, 100 + turn, length)
            MPI.Prequest.Startall(persistent)
            MPI.Request.Waitall(persistent)
            same(
                rank,
                "persistent",
                got[0],
                rank.content(before, rank.rank, 100 + turn, length),
                f"start {turn} of {length} bytes",
            )
        for request in persistent:
            request.Free()
        rank.meet()
        rank.alive()


@check("truncation")
def what_is_too_long_raises(rank: PmlRank) -> None:
    """Out of Recv, Sendrecv and a wait: an error of class ERR_TRUNCATE; the next message is received."""
    MPI, comm = rank.MPI, rank.comm
    before, after = neighbours(rank)
    for length in LENGTHS[2:]:
        for form in ("Recv", "Irecv", "matched"):
            sends = [comm.Isend(bytearray(length), after, 1), comm.Isend(bytearray(b"next"), after, 1)]
            got = bytearray(length // 2)
            try:
                if form == "Recv":
                    comm.Recv(got, before, 1)
                elif form == "Irecv":
                    comm.Irecv(got, before, 1).Wait()
                else:
                    comm.Mprobe(before, 1).Recv(got)
            except MPI.Exception as error:
                if error.Get_error_class() != MPI.ERR_TRUNCATE:
                    raise Breach("truncation", f"{form} of {length} bytes into {length // 2} raises {error}") from None
            else:
                raise Breach("truncation", f"{form} of {length} bytes into {length // 2} raises nothing")
            following = bytearray(4)
            comm.Recv(following, before, 1)
            same(rank, "truncation", following, b"next", f"what follows {length} bytes that were too many")
            MPI.Request.Waitall(sends)
        rank.alive()
    rank.meet()


def give_way(frame: FrameType, event: str, argument: object) -> Any:
    """A trace function: other threads have a turn before each line of Python, those of components too."""
    time.sleep(0)
    return give_way


@check("threads", idle=True)
def threads_exchange_messages_at_once(rank: PmlRank) -> None:
    """Four threads of each rank, each on a communicator of its own, in blocking calls; the GIL goes wherever it can."""
    MPI = rank.MPI
    before, after = neighbours(rank)
    comms = [rank.comm.Dup() for _ in range(4)]
    broken: list[Exception] = []

    def exchange(number: int, comm: Any) -> None:
        sys.settrace(give_way)
        try:
            for turn in range(EXCHANGES // 4):
                # Threads have messages of the same length at a time, and none the same content.
                length, message = (0, 8, 1000, 20_000)[turn % 4], 4 * turn + number
                sent, got = bytearray(rank.content(rank.rank, after, message, length)), bytearray(length)
                if turn % 8 < 4:
                    comm.Sendrecv(sent, after, turn, got, before, MPI.ANY_TAG)
                else:
                    send = comm.Isend(sent, after, turn)
                    comm.Probe(before, MPI.ANY_TAG)
                    comm.Recv(got, before, MPI.ANY_TAG)
                    send.Wait()
                wanted = rank.content(before, rank.rank, message, length)
                same(rank, "threads", got, wanted, f"message {turn} of thread {number}")
        except Exception as error:
            broken.append(error)

    threads = [threading.Thread(target=exchange, args=pair, daemon=True) for pair in enumerate(comms)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(TURN)
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        for thread in threads:
            thread.join(0.1)
    sys.setswitchinterval(interval)
    if broken:
        raise broken[0]
    rank.meet()
    for comm in comms:
        comm.Free()


@check("end", last=True)
def the_program_ends(rank: PmlRank) -> None:
    """With messages that are under way until the last moment."""
    before, after = neighbours(rank)
    send = rank.comm.Isend(bytearray(50_000), after, 1)
    rank.comm.Recv(bytearray(50_000), before, 1)
    send.Wait()
    rank.MPI.Finalize()
