"""Whole MPI programs over the transport: order, wildcards, sizes, modes, floods."""

from __future__ import annotations

from mmap import mmap

from ompy.testing.conformance.check import Breach, Collection
from ompy.testing.conformance.mpi.rank import MpiRank

check = Collection()

# How far below a limit a message still meets it: a PML puts a header before the program's bytes.
LONGEST_HEADER = 80
LARGEST = 8 << 20  # bytes of one message, unless more are asked for
FLOOD, ORDERED = 400, 150


def neighbours(rank: MpiRank) -> tuple[int, int]:
    """Who sends to this rank in a ring, and whom it sends to."""
    return (rank.rank - 1) % rank.size, (rank.rank + 1) % rank.size


def compare(rank: MpiRank, clause: str, got: bytes | bytearray, sent: bytes, words: str) -> None:
    if got != sent:
        places = [index for index, (one, other) in enumerate(zip(got, sent, strict=False)) if one != other]
        at = places[0] if places else min(len(got), len(sent))
        raise Breach(clause, f"{words}: {len(sent)} bytes were sent, and from byte {at} on others arrived")


@check("reach")
def the_transport_under_test_carries_the_messages(rank: MpiRank) -> None:
    name = rank.wire.setting.component
    own = rank.component.capabilities.get("reach") == "process"
    for peer in range(rank.size):
        chosen = rank.chosen_for(peer)
        if (peer == rank.rank) == own and name not in chosen:
            raise Breach("reach", f"messages to rank {peer} go by {chosen}")


def sizes(rank: MpiRank) -> list[int]:
    """All sizes around each limit, then twice and three times the largest message."""
    btl = rank.btl
    limits = {
        btl.eager_limit, btl.rndv_eager_limit, btl.max_send_size, btl.min_rdma_pipeline_size, btl.rdma_pipeline_frag_size,
        btl.rdma_pipeline_send_length, btl.put_limit, btl.get_limit,
    }  # fmt: skip
    found = {0, 1, 7, 8, 9, 3 * btl.max_send_size + 1, 2 * btl.max_send_size, 2 * btl.max_send_size - 2 * LONGEST_HEADER}
    for limit in limits:
        found |= set(range(limit - LONGEST_HEADER, limit + 3))
    return sorted(size for size in found if 0 <= size <= LARGEST)


@check("size", "delivery")
def all_sizes_around_each_limit_arrive(rank: MpiRank) -> None:
    MPI = rank.MPI
    before, after = neighbours(rank)
    everything = sizes(rank)
    text = rank.content(rank.rank, 0, 0, max(everything))
    theirs = rank.content(before, 0, 0, max(everything))
    got = bytearray(max(everything))
    for size in everything:
        got[:size] = bytes(size)
        rank.comm.Sendrecv([text, size, MPI.BYTE], after, size, [got, size, MPI.BYTE], before, size)
        if memoryview(got)[:size] != memoryview(theirs)[:size]:
            compare(rank, "size", got[:size], theirs[:size], "Sendrecv")
        rank.alive()


@check("order", "delivery")
def messages_are_received_in_the_order_sent(rank: MpiRank) -> None:
    """From every rank to every rank, small and large mixed, with one tag."""
    MPI = rank.MPI
    shared = rank.common_random("order")
    lengths = [shared.choice((0, 8, 100, 5000, rank.btl.eager_limit + 1, 70_000)) for _ in range(ORDERED)]
    sends = []
    for number, length in enumerate(lengths):
        for peer in range(rank.size):
            sends.append(rank.comm.Isend(bytearray(number.to_bytes(4, "little") + bytes(length)), peer, 1))
    for number, length in enumerate(lengths):
        for peer in range(rank.size):
            got = bytearray(max(lengths) + 4)
            status = MPI.Status()
            rank.comm.Recv(got, peer, 1, status)
            found = int.from_bytes(got[:4], "little")
            if found != number or status.Get_count(MPI.BYTE) != length + 4:
                raise Breach("order", f"message {found} of rank {peer} was received where {number} was due")
        rank.alive()
    MPI.Request.Waitall(sends)


@check("delivery", "sender", "tag")
def wildcards_match_what_has_arrived(rank: MpiRank) -> None:
    """ANY_SOURCE and ANY_TAG in turn; status says who it was, and what one sender sent with one tag stays in order."""
    MPI = rank.MPI
    tags, each = 5, 20
    sends = [
        rank.comm.isend((rank.rank, tag, number), peer, tag)
        for number in range(each)
        for tag in range(tags)
        for peer in range(rank.size)
    ]
    expected = {(source, tag): 0 for source in range(rank.size) for tag in range(tags)}
    for index in range(rank.size * tags * each):
        status = MPI.Status()
        open_tags = [tag for tag in range(tags) if any(expected[source, tag] < each for source in range(rank.size))]
        tag_wanted = MPI.ANY_TAG if index % 2 else open_tags[0]
        source, tag, number = rank.comm.recv(None, MPI.ANY_SOURCE, tag_wanted, status)
        if (status.source, status.tag) != (source, tag):
            raise Breach("sender", f"a message of rank {source}, tag {tag} was said to be of {status.source}, {status.tag}")
        if number != expected[source, tag]:
            raise Breach("order", f"message {number} of rank {source}, tag {tag} came, where {expected[source, tag]} was due")
        expected[source, tag] += 1
    MPI.Request.waitall(sends)


@check("completion", "delivery")
def every_mode_and_form_sends(rank: MpiRank) -> None:
    """Standard, buffered, synchronous and ready; blocking, non-blocking and persistent; short and long."""
    MPI = rank.MPI
    before, after = neighbours(rank)
    comm = rank.comm
    lengths = (0, 40, rank.btl.eager_limit + 100, 200_000)
    MPI.Attach_buffer(bytearray(16 * (max(lengths) + MPI.BSEND_OVERHEAD)))
    try:
        number = 0
        for length in lengths:
            for name in ("send", "bsend", "ssend", "rsend"):
                for form in ("blocking", "nonblocking", "persistent"):
                    number += 1
                    sent, got = bytearray(rank.content(rank.rank, after, number, length)), bytearray(length)
                    receive = comm.Irecv(got, before, number)
                    # A ready send is right only when the receive is posted.
                    rank.exchange(None) if name == "rsend" else None
                    if form == "blocking":
                        getattr(comm, name.capitalize())(sent, after, number)
                        receive.Wait()
                    elif form == "nonblocking":
                        MPI.Request.Waitall([getattr(comm, f"I{name}")(sent, after, number), receive])
                    else:
                        request = getattr(comm, f"{name.capitalize()}_init")(sent, after, number)
                        for again in range(2):
                            if again:
                                got[:] = bytes(length)
                                receive = comm.Irecv(got, before, number)
                                rank.exchange(None) if name == "rsend" else None
                            request.Start()
                            MPI.Request.Waitall([request, receive])
                        request.Free()
                    compare(rank, "delivery", got, rank.content(before, rank.rank, number, length), f"{form} {name}")
                    rank.alive()
    finally:
        MPI.Detach_buffer()


@check("delivery")
def probes_and_cancelled_receives(rank: MpiRank) -> None:
    MPI = rank.MPI
    before, after = neighbours(rank)
    comm = rank.comm
    never = comm.Irecv(bytearray(8), MPI.ANY_SOURCE, 99)
    for number, length in enumerate((0, 10, 300_000)):
        text = rank.content(rank.rank, after, number, length)
        send = comm.Isend(bytearray(text), after, 7)
        status = MPI.Status()
        message = comm.Mprobe(before, MPI.ANY_TAG, status)
        if status.Get_count(MPI.BYTE) != length or status.tag != 7:
            raise Breach("delivery", f"Mprobe says {status.Get_count(MPI.BYTE)} bytes, tag {status.tag}; {length} were sent")
        got = bytearray(length)
        message.Recv(got)
        compare(rank, "delivery", got, rank.content(before, rank.rank, number, length), "a matched receive")
        send.Wait()
    never.Cancel()
    status = MPI.Status()
    never.Wait(status)
    if not status.Is_cancelled():
        raise Breach("delivery", "a receive that nothing was sent to could not be cancelled")


@check("back-pressure", "delivery")
def a_flood_of_unexpected_messages_is_kept(rank: MpiRank) -> None:
    """Everybody sends before anybody receives, and receives in the opposite order of tags."""
    MPI = rank.MPI
    before, after = neighbours(rank)
    lengths = [(number * 37) % 900 if number % 40 else rank.btl.eager_limit for number in range(FLOOD)]
    sends = [
        rank.comm.Isend(bytearray(rank.content(rank.rank, after, number, length)), after, number)
        for number, length in enumerate(lengths)
    ]
    rank.comm.Barrier()
    for number, length in reversed(list(enumerate(lengths))):
        got = bytearray(length)
        rank.comm.Recv(got, before, number)
        compare(
            rank, "delivery", got, rank.content(before, rank.rank, number, length), f"of {FLOOD} unexpected messages {number}"
        )
    rank.alive()
    MPI.Request.Waitall(sends)


@check("back-pressure")
def long_messages_both_ways_at_once(rank: MpiRank) -> None:
    MPI = rank.MPI
    length = 600_000
    requests, buffers = [], []
    for peer in range(rank.size):
        for number in range(4):
            got = bytearray(length)
            buffers.append((peer, number, got))
            requests.append(rank.comm.Irecv(got, peer, number))
    for number in range(4):
        for peer in range(rank.size):
            requests.append(rank.comm.Isend(bytearray(rank.content(rank.rank, peer, number, length)), peer, number))
    MPI.Request.Waitall(requests)
    for peer, number, got in buffers:
        compare(
            rank, "back-pressure", got, rank.content(peer, rank.rank, number, length), f"long message {number} of rank {peer}"
        )


@check("delivery")
def data_with_gaps_arrive(rank: MpiRank) -> None:
    """Columns of a matrix, shorter and longer than a fragment."""
    MPI = rank.MPI
    before, after = neighbours(rank)
    for rows in (3, 5000):
        width = 16
        column = MPI.BYTE.Create_vector(rows, 3, width).Commit()
        sent = bytearray(rank.content(rank.rank, after, rows, rows * width))
        got = bytearray(rows * width)
        rank.comm.Sendrecv([sent, 1, column], after, 0, [got, 1, column], before, 0)
        theirs = rank.content(before, rank.rank, rows, rows * width)
        wanted = bytearray(rows * width)
        for row in range(rows):
            wanted[row * width : row * width + 3] = theirs[row * width : row * width + 3]
        compare(rank, "delivery", got, bytes(wanted), f"a column of {rows} rows")
        column.Free()


@check("size", option="bytes")
def one_message_of_so_many_bytes_arrives(rank: MpiRank) -> None:
    MPI = rank.MPI
    before, after = neighbours(rank)
    total = int(rank.wire.setting.options["bytes"])
    piece = rank.content(rank.rank, 0, 0, 1 << 20)
    sent, got = mmap(-1, total), mmap(-1, total)
    for at in range(0, total, len(piece)):
        sent[at : at + len(piece)] = piece[: total - at]
        rank.alive()
    requests = [rank.comm.Irecv([got, total, MPI.BYTE], before, 0), rank.comm.Isend([sent, total, MPI.BYTE], after, 0)]
    while not MPI.Request.Testall(requests):
        rank.alive()
    theirs = rank.content(before, 0, 0, 1 << 20)
    for at in range(0, total, len(theirs)):
        if got[at : at + len(theirs)] != theirs[: total - at]:
            raise Breach("size", f"of {total} bytes those from {at} on are wrong")
        rank.alive()


@check("close", last=True)
def the_program_ends(rank: MpiRank) -> None:
    rank.MPI.Finalize()
