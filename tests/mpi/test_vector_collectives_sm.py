"""coll/sm's v and w forms: parts of any lengths, whichever fit a slot and whichever go in pieces, wherever they lie."""

from __future__ import annotations

import contextlib
import os
import random
import signal

import numpy
import pytest
from late_signals import overwritten, pids, told, until_late

CHUNK = 8192
SMALL_PIECES = {"coll": "sm,tuned,basic", "coll_sm_chunk_size": str(CHUNK), "btl": "self,sm"}
# In elements of 8 bytes: none, few, around a slot shared by the ranks, and several pieces.
LENGTHS = (0, 0, 1, 7, 100, 254, 509, 1024, 3000)


def drawn(source, size):
    """Lengths of what each rank has for each other."""
    most = source.choice(LENGTHS)
    return [[source.choice([length for length in LENGTHS if length <= most]) for _ in range(size)] for _ in range(size)]


def part(sender, receiver, length):
    """What goes from one to another."""
    return numpy.arange(length) + 1e6 * sender + 1e4 * receiver


def spread(lengths, gap):
    """Displacements that leave gaps, in reverse order of ranks."""
    at, found = 0, [0] * len(lengths)
    for rank in reversed(range(len(lengths))):
        found[rank] = at
        at += lengths[rank] + gap
    return found, at


def filled(lengths, displacements, room, of):
    """An array whose parts are where they belong, and -1 elsewhere."""
    array = numpy.full(room, -1.0)
    for rank, length in enumerate(lengths):
        array[displacements[rank] : displacements[rank] + length] = of(rank, length)
    return array


def all_vectors(comm, lengths, gap, root):
    from ompy import MPI

    rank, size = comm.rank, comm.size
    out, into = lengths[rank], [row[rank] for row in lengths]
    out_at, out_room = spread(out, gap)
    into_at, into_room = spread(into, gap)
    sent = filled(out, out_at, out_room, lambda other, length: part(rank, other, length))
    wanted = filled(into, into_at, into_room, lambda other, length: part(other, rank, length))
    empty = numpy.full(into_room, -1.0)

    got = empty.copy()
    comm.Alltoallv([sent, out, out_at, MPI.DOUBLE], [got, into, into_at, MPI.DOUBLE])
    assert (got == wanted).all()

    got = empty.copy()
    types = [MPI.DOUBLE] * size
    in_bytes = [8 * at for at in out_at], [8 * at for at in into_at]
    comm.Alltoallw([sent, out, in_bytes[0], types], [got, into, in_bytes[1], types])
    assert (got == wanted).all()

    # Between two ranks in place, both must have the same length for each other.
    same = [max(out[other], into[other]) for other in range(size)]
    same_at, same_room = spread(same, gap)
    got = filled(same, same_at, same_room, lambda other, length: part(rank, other, length))
    comm.Alltoallv(MPI.IN_PLACE, [got, same, same_at, MPI.DOUBLE])
    assert (got == filled(same, same_at, same_room, lambda other, length: part(other, rank, length))).all()

    each = [lengths[other][other] for other in range(size)]
    each_at, each_room = spread(each, gap)
    wanted = filled(each, each_at, each_room, lambda other, length: part(other, root, length))
    mine = part(rank, root, each[rank])
    got = numpy.full(each_room, -1.0)
    comm.Gatherv(mine, [got, each, each_at, MPI.DOUBLE] if rank == root else None, root)
    assert rank != root or (got == wanted).all()
    comm.Gatherv(MPI.IN_PLACE if rank == root else mine, [got, each, each_at, MPI.DOUBLE] if rank == root else None, root)
    assert rank != root or (got == wanted).all()

    got = numpy.full(each_room, -1.0)
    comm.Allgatherv(mine, [got, each, each_at, MPI.DOUBLE])
    assert (got == wanted).all()
    got = filled(each, each_at, each_room, lambda other, length: part(other, root, length) * (other == rank))
    comm.Allgatherv(MPI.IN_PLACE, [got, each, each_at, MPI.DOUBLE])
    assert (got == wanted).all()

    got = numpy.zeros(each[rank])
    comm.Scatterv([wanted, each, each_at, MPI.DOUBLE] if rank == root else None, got, root)
    assert (got == mine).all()
    comm.Scatterv([wanted, each, each_at, MPI.DOUBLE] if rank == root else None, MPI.IN_PLACE if rank == root else got, root)
    assert (got == mine).all()

    whole = numpy.concatenate([part(rank, other, each[other]) for other in range(size)])
    got = numpy.zeros(each[rank])
    comm.Reduce_scatter(whole, got, each)
    total = sum(part(other, rank, each[rank]) for other in range(size))
    assert (got == total).all()
    comm.Reduce_scatter(MPI.IN_PLACE, whole, each)
    assert (whole[: each[rank]] == total).all()


@pytest.mark.ompy(2, 3, 5, mca=SMALL_PIECES)
def test_parts_of_any_lengths_arrive_where_they_belong(comm):
    seed = comm.bcast(random.randrange(1 << 32))
    print("seed", seed)
    source = random.Random(seed)
    for number in range(12):
        all_vectors(comm, drawn(source, comm.size), number % 3, number % comm.size)


@pytest.mark.ompy(3, mca=SMALL_PIECES | {"coll_sm_chunk_size": "4096"})
def test_who_exchanges_in_place_keeps_what_others_have_yet_to_take(comm):
    """Rank 1 has one step, ranks 0 and 2 have many: 0 takes no more from 1 in the first one than it has put up itself."""
    all_vectors(comm, [[1, 250, 3000], [250, 1, 2], [3000, 2, 1]], 0, 0)


@pytest.mark.ompy(3, mca=SMALL_PIECES)
def test_every_vector_form_is_served_through_shared_memory(comm):
    from ompy.mca.pml import chosen

    def messages():
        return sum(btl.statistics()["messages_sent"] for btl in chosen().bml.btls if btl.name == "sm")

    lengths = [[9, 900, 0], [3000, 1, 2], [5, 600, 7]]
    all_vectors(comm, lengths, 0, 1)
    comm.Barrier()
    before = messages()
    all_vectors(comm, lengths, 0, 1)
    assert messages() == before


@pytest.mark.ompy(3, mca=SMALL_PIECES)
def test_typed_parts_of_different_types_are_packed_and_unpacked(comm):
    from ompy import MPI

    rank, size = comm.rank, comm.size
    # To rank r go the first 1000 + r numbers of a column; they arrive one after the other.
    columns = [MPI.DOUBLE.Create_vector(1000 + other, 1, 2).Commit() for other in range(size)]
    matrix = numpy.zeros((2000, 2))
    matrix[:, 0] = numpy.arange(2000) + 1e6 * rank
    got = numpy.zeros((size, 1000 + rank))
    row = 8 * (1000 + rank)
    comm.Alltoallw(
        [matrix, [1] * size, [0] * size, columns],
        [got, [1000 + rank] * size, [row * other for other in range(size)], [MPI.DOUBLE] * size],
    )
    assert (got == numpy.arange(1000 + rank) + 1e6 * numpy.arange(size)[:, None]).all()


@pytest.mark.ompy(2, mca=SMALL_PIECES)
def test_a_part_longer_than_its_place_is_cut_off_with_an_error_that_names_its_rank(comm):
    from ompy import MPI

    other = 1 - comm.rank
    for length in (10, 5000):
        got = numpy.full(length, -1.0)
        room = length // 2 if comm.rank else length
        counts = [room if source == other else 0 for source in range(2)]
        out = [part(comm.rank, other, length), [length if to == other else 0 for to in range(2)], MPI.DOUBLE]
        into = [got, counts, [0, 0], MPI.DOUBLE]
        if comm.rank == 0:
            comm.Alltoallv(out, into)
        else:
            with pytest.raises(MPI.Exception, match="rank 0") as caught:
                comm.Alltoallv(out, into)
            assert caught.value.Get_error_class() == MPI.ERR_TRUNCATE
        assert (got[:room] == part(other, comm.rank, room)).all()
        assert (got[room:] == -1).all()
        comm.Barrier()


@pytest.mark.ompy(3, mca=SMALL_PIECES, timeout=30)
def test_nobody_waits_in_a_collective_to_or_from_a_root_but_for_what_it_gets(comm):
    """The root gathers when the others are through; the others receive when the root is."""
    from ompy import MPI

    comm.Barrier()  # all share memory from here on
    rank, counts = comm.rank, [3, 1, 700]
    whole = numpy.concatenate([part(0, other, length) for other, length in enumerate(counts)])
    mine = part(0, rank, counts[rank])
    for _ in range(3):
        if rank:
            comm.Gatherv(mine, None)
            comm.send(None, 0)
        else:
            got = numpy.zeros(sum(counts))
            for other in (1, 2):
                comm.recv(None, other)
            comm.Gatherv(mine, [got, counts, MPI.DOUBLE])
            assert (got == whole).all()
        if rank == 0:
            comm.Scatterv([whole, counts, MPI.DOUBLE], numpy.zeros(3))
            for other in (1, 2):
                comm.send(None, other)
        else:
            got = numpy.zeros(counts[rank])
            comm.recv(None, 0)
            comm.Scatterv(None, got)
            assert (got == mine).all()


@pytest.mark.ompy(3, mca=SMALL_PIECES)
@pytest.mark.parametrize("lengths", [(5, 10, 10), (5, 10, 4000), (5, 4000, 10), (5, 4000, 4000), (3000, 10, 10)], ids=str)
def test_parts_of_a_root_that_are_too_long_are_cut_off_and_harm_nothing_else(comm, lengths):
    """The first one too long; put up or sent as messages, and the root's own."""
    from ompy import MPI

    rank, length = comm.rank, lengths[comm.rank]
    for too_long in range(3):
        counts = [each // 2 if other == too_long else each for other, each in enumerate(lengths)]
        places = [0, 5000, 10_000]
        got, mine = numpy.full(15_000, -1.0), part(rank, 0, length)
        error = None
        try:
            comm.Gatherv(mine, [got, counts, places, MPI.DOUBLE] if rank == 0 else None)
        except MPI.Exception as raised:
            error = raised
        assert (error is not None) == (rank == 0)
        if rank == 0:
            assert error.Get_error_class() == MPI.ERR_TRUNCATE
            for other, count in enumerate(counts):
                assert (got[places[other] :][:count] == part(other, 0, count)).all()
                assert (got[places[other] + count : places[other] + 5000] == -1).all()
        assert comm.allreduce(1) == 3

        whole = numpy.concatenate([part(0, other, each) for other, each in enumerate(lengths)])
        got, error = numpy.full(length, -1.0), None
        room = counts[rank]
        try:
            comm.Scatterv([whole, list(lengths), MPI.DOUBLE] if rank == 0 else None, got[:room])
        except MPI.Exception as raised:
            error = raised
        assert (error is not None) == (rank == too_long)
        assert error is None or error.Get_error_class() == MPI.ERR_TRUNCATE
        assert (got[:room] == part(0, rank, room)).all()
        assert (got[room:] == -1).all()
        assert comm.allreduce(1) == 3


@pytest.mark.ompy(9, mca={"coll": "sm,basic", "btl": "self,sm", "btl_sm_single_copy": "cma"})
def test_a_part_that_is_too_long_keeps_nobody_from_sending_the_root_its_own(comm):
    """So many ranks make contact with one another by the first message, which comes late."""
    from ompy import MPI

    root, length = 4, 250_000
    for too_long in (0, 8):
        counts = [length // 2 if rank == too_long else length for rank in range(comm.size)]
        got = numpy.full(sum(counts), -1.0)
        error = contextlib.nullcontext() if comm.rank != root else pytest.raises(MPI.Exception, match="truncated")
        with error:
            comm.Gatherv(part(comm.rank, 0, length), [got, counts, MPI.DOUBLE] if comm.rank == root else None, root)
        assert comm.rank != root or (got == numpy.concatenate([part(rank, 0, each) for rank, each in enumerate(counts)])).all()
        comm.Barrier()


@pytest.mark.ompy(3, mca={"coll": "sm,basic", "btl": "self,portals"})
def test_long_parts_whose_senders_are_interrupted_while_they_may_be_read_arrive_as_they_were(comm):
    from ompy import MPI

    length = 1 << 19
    comm.Gatherv(numpy.zeros(1), [numpy.zeros(3), [1] * 3, MPI.DOUBLE])
    processes = pids(comm)
    if comm.rank:
        data = numpy.full(length, 7.0)
        until_late(lambda: comm.Gatherv(data, None))
        del data
        others = overwritten(8 * length)
        if comm.rank == 2:
            comm.send(None, 1)
        else:
            comm.recv(source=2)
            os.kill(processes[0], signal.SIGUSR1)
        comm.Barrier()
        assert all((other == 1).all() for other in others)
    else:
        told()
        got = numpy.zeros(3 * length)
        comm.Gatherv(numpy.full(length, 7.0), [got, [length] * 3, MPI.DOUBLE])
        comm.Barrier()
        assert (got == 7).all()
