"""coll/sm's v and w forms: parts of any lengths, whichever fit a slot and whichever go in pieces, wherever they lie."""

from __future__ import annotations

import random

import numpy
import pytest

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
