"""coll/sm: the same results as the collectives over messages, for every size around its slots and pieces."""

from __future__ import annotations

import numpy
import pytest

CHUNK = 8192
INLINE = 40
SHORT = 4096
# Elements of 8 bytes: nothing, one, around a line, around a slot, around a piece, several pieces and a rest.
COUNTS = (
    0,
    1,
    INLINE // 8,
    INLINE // 8 + 1,
    SHORT // 8 - 1,
    SHORT // 8,
    SHORT // 8 + 1,
    CHUNK // 8 - 1,
    CHUNK // 8,
    CHUNK // 8 + 1,
    5 * CHUNK // 8 + 3,
)
COLL_SM = {"coll": "sm,tuned,basic"}
SMALL_PIECES = {**COLL_SM, "coll_sm_chunk_size": str(CHUNK)}


def expected(size, count):
    """What each rank contributes, a row each."""
    return numpy.arange(count) * 1.0 + 1000 * numpy.arange(size)[:, None]


def all_collectives(comm, count, root):
    """Every collective that coll/sm serves, checked, with and without MPI_IN_PLACE."""
    from ompy import MPI

    rank, size = comm.Get_rank(), comm.Get_size()
    rows = expected(size, count)
    mine = rows[rank].copy()
    is_root = rank == root

    got = numpy.zeros(count)
    comm.Allreduce(mine, got)
    assert (got == rows.sum(0)).all()
    got = mine.copy()
    comm.Allreduce(MPI.IN_PLACE, got, MPI.MAX)
    assert (got == rows.max(0)).all()

    got = mine.copy()
    comm.Bcast(got, root)
    assert (got == rows[root]).all()

    got = numpy.zeros(count)
    comm.Reduce(mine, got if is_root else None, MPI.SUM, root)
    assert not is_root or (got == rows.sum(0)).all()
    got = mine.copy()
    comm.Reduce(MPI.IN_PLACE if is_root else mine, got if is_root else None, MPI.SUM, root)
    assert not is_root or (got == rows.sum(0)).all()

    got = numpy.zeros((size, count))
    comm.Allgather(mine, got)
    assert (got == rows).all()
    got = numpy.zeros((size, count))
    got[rank] = mine
    comm.Allgather(MPI.IN_PLACE, got)
    assert (got == rows).all()

    got = numpy.zeros((size, count)) if is_root else None
    comm.Gather(mine, got, root)
    assert not is_root or (got == rows).all()
    if is_root:
        got[:] = 0
        got[rank] = mine
    comm.Gather(MPI.IN_PLACE if is_root else mine, got, root)
    assert not is_root or (got == rows).all()

    got = numpy.zeros(count)
    comm.Scatter(rows if is_root else None, got, root)
    assert (got == mine).all()
    comm.Scatter(rows if is_root else None, MPI.IN_PLACE if is_root else got, root)
    assert (got == mine).all()

    sent = rows + 0.5 * rank
    got = numpy.zeros((size, count))
    comm.Alltoall(sent, got)
    assert (got == rows[rank] + 0.5 * numpy.arange(size)[:, None]).all()
    comm.Alltoall(MPI.IN_PLACE, sent)
    assert (sent == got).all()

    got = numpy.zeros(count)
    comm.Reduce_scatter_block(rows + rank, got)
    assert (got == size * rows[rank] + sum(range(size))).all()

    got = numpy.zeros(count)
    comm.Scan(mine, got)
    assert (got == rows[: rank + 1].sum(0)).all()
    got = mine.copy()
    comm.Exscan(MPI.IN_PLACE, got)
    assert rank == 0 or (got == rows[:rank].sum(0)).all()


@pytest.mark.ompy(2, 3, 5, mca=SMALL_PIECES)
def test_every_size_around_slots_and_pieces_is_served_alike(comm):
    assert comm.Get_size() > 1
    for number, count in enumerate(COUNTS):
        all_collectives(comm, count, number % comm.Get_size())
        comm.Barrier()


@pytest.mark.ompy(2, 4, mca={**SMALL_PIECES, "coll_sm_spins": "0"})
def test_who_sleeps_at_once_is_woken(comm):
    rank = comm.Get_rank()
    for number, count in enumerate(COUNTS):
        all_collectives(comm, count, number % comm.Get_size())
    for turn in range(200):
        got = numpy.full(1, float(turn)) if rank == 0 else numpy.zeros(1)
        comm.Bcast(got, 0)
        assert got[0] == turn


@pytest.mark.ompy(3, mca={**SMALL_PIECES, "coll_sm_backing": "file"})
def test_shared_memory_may_live_in_a_file_that_is_gone_once_attached(comm):
    import os

    all_collectives(comm, 100, 1)
    comm.Barrier()
    assert not [name for name in os.listdir("/dev/shm") if name.startswith("ompy-coll") and os.environ["OMPY_JOB"] in name]


@pytest.mark.ompy(3, mca=COLL_SM)
def test_collectives_go_over_messages_where_no_memory_can_be_shared(comm):
    import resource

    # The transport makes its memory first.
    for other in range(comm.Get_size()):
        comm.sendrecv(None, other, source=other)
    if comm.Get_rank() == 0:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    all_collectives(comm, 5000, 2)


@pytest.mark.ompy(4, mca=SMALL_PIECES)
def test_a_root_runs_ahead_of_slow_readers_without_overwriting(comm):
    rank = comm.Get_rank()
    for count in (1, 100, CHUNK // 8):
        for turn in range(200):
            got = numpy.full(count, float(turn)) if rank == 0 else numpy.zeros(count)
            comm.Bcast(got, 0)
            assert (got == turn).all()
            if rank == turn % 4:
                sum(range(2000))


@pytest.mark.ompy(3, mca=SMALL_PIECES)
def test_typed_memory_is_packed_on_one_side_and_unpacked_on_the_other(comm):
    from ompy import MPI

    rank, size = comm.Get_rank(), comm.Get_size()
    count = 700
    column = MPI.DOUBLE.Create_vector(count, 1, 2).Create_resized(0, 16 * count).Commit()
    rows = expected(size, count)
    spread = numpy.zeros((count, 2))
    spread[:, 0] = rows[rank]
    flat = rows[rank].copy()
    if rank == 1:
        comm.Bcast([spread, 1, column], 1)
    else:
        comm.Bcast([flat, count, MPI.DOUBLE], 1)
        assert (flat == rows[1]).all()
    got = numpy.zeros((size, count, 2))
    comm.Allgather([rows[rank].copy(), count, MPI.DOUBLE], [got, 1, column])
    assert (got[:, :, 0] == rows).all()
    assert (got[:, :, 1] == 0).all()
    back = numpy.zeros((size, count))
    comm.Gather([spread, 1, column], [back, count, MPI.DOUBLE] if rank == 2 else None, 2)
    assert rank != 2 or (back == rows).all()


@pytest.mark.ompy(3, mca=COLL_SM)
def test_operations_of_the_program_keep_rank_order(comm):
    from ompy import MPI

    def compose(left, right, datatype):
        a, b = (numpy.frombuffer(side, "d").reshape(-1, 2) for side in (left, right))
        b[:] = numpy.stack([a[:, 0] * b[:, 0], a[:, 0] * b[:, 1] + a[:, 1]], axis=1)

    rank, size = comm.Get_rank(), comm.Get_size()
    pair = MPI.DOUBLE.Create_contiguous(2).Commit()
    operation = MPI.Op.Create(compose, commute=False)
    mine = numpy.array([2.0 + rank, 1.0 + rank])
    got = numpy.zeros(2)
    comm.Allreduce([mine, 1, pair], [got, 1, pair], operation)
    scale, shift = 1.0, 0.0
    for other in range(size):
        scale, shift = scale * (2.0 + other), scale * (1.0 + other) + shift
    assert got.tolist() == [scale, shift]


@pytest.mark.ompy(2, 3, mca=COLL_SM)
def test_nothing_at_address_zero_is_a_contribution(comm):
    from ompy import MPI

    nothing = [None, MPI.INT]
    for root in range(comm.size):
        comm.Reduce(nothing, nothing, root=root)
    comm.Allreduce(nothing, nothing)
    comm.Reduce_scatter_block(nothing, nothing)
    comm.Scan(nothing, nothing)
    comm.Exscan(nothing, nothing)
    assert comm.allreduce(1) == comm.size


@pytest.mark.ompy(3, mca=COLL_SM)
def test_lengths_that_differ_are_an_error_and_harm_nothing_else(comm):
    from ompy import MPI

    rank = comm.Get_rank()
    for shorter in (0, 5, 5000):
        mine = numpy.zeros(10000 if rank == 1 else shorter)
        with pytest.raises(MPI.Exception, match=r"rank \d has \d+ bytes"):
            comm.Allreduce(mine, mine.copy())
        if rank == 1:
            comm.Bcast(mine, 1)
        else:
            with pytest.raises(MPI.Exception, match=f"80000 bytes from rank 1, but there is room for {8 * shorter} bytes"):
                comm.Bcast(mine, 1)
        assert comm.allreduce(1) == 3
    for there, here in ((50000, 20000), (20000, 50000), (50000, 0), (10, 5), (0, 50000)):
        if rank == 1:
            comm.Scatter(numpy.zeros((3, there)), numpy.zeros(there), 1)
        else:
            with pytest.raises(MPI.Exception, match=rf"rank 1 has another length .* {8 * here} bytes"):
                comm.Scatter(None, numpy.zeros(here), 1)
        assert comm.allreduce(1) == 3


def in_place():
    from ompy import MPI

    return MPI.IN_PLACE


ONE_WAY = {
    "gather": lambda comm, mine: comm.Gather(mine, numpy.zeros((3, len(mine))) if comm.rank == 0 else None, 0),
    "reduce": lambda comm, mine: comm.Reduce(mine, mine.copy(), root=0),
    "reduce in place": lambda comm, mine: comm.Reduce(in_place() if comm.rank == 0 else mine, mine, root=0),
    "scan": lambda comm, mine: comm.Scan(mine, mine.copy()),
    "exscan": lambda comm, mine: comm.Exscan(mine, mine.copy()),
}


@pytest.mark.ompy(3, mca=SMALL_PIECES)
@pytest.mark.parametrize("function", ONE_WAY)
def test_lengths_that_differ_where_data_go_one_way_are_an_error_and_harm_nothing_else(comm, function):
    from ompy import MPI

    rank, where = comm.rank, 2 if function.endswith("scan") else 0
    for another in range(3):
        for there, here in ((5, 10), (10, 5), (0, 2000), (2000, 0), (5000, 2000), (2000, 5000), (700, 5000), (5000, 600)):
            mine = numpy.ones(there if rank == another else here)
            error = None
            try:
                ONE_WAY[function](comm, mine)
            except MPI.Exception as raised:
                error = raised
            # Whoever gets nothing of the others need not notice.
            assert error or rank != where
            assert error is None or error.Get_error_class() == MPI.ERR_TRUNCATE
            assert error is None or "has another length in this collective" in str(error)
            total = numpy.zeros(3000)
            comm.Allreduce(numpy.ones(3000), total)
            assert (total == 3).all()


OWN_SIDES = {
    "scatter": lambda comm, mine, there: comm.Scatter(
        numpy.ones(2 * there) if comm.rank == 0 else None, mine if comm.rank == 0 else numpy.zeros(there)
    ),
    "gather": lambda comm, mine, there: comm.Gather(
        mine if comm.rank == 0 else numpy.zeros(there), numpy.zeros(2 * there) if comm.rank == 0 else None
    ),
    "allgather": lambda comm, mine, there: comm.Allgather(
        mine if comm.rank == 0 else numpy.zeros(there), numpy.zeros(2 * there)
    ),
    "alltoall": lambda comm, mine, there: comm.Alltoall(
        numpy.resize(mine, 2 * len(mine)) if comm.rank == 0 else numpy.zeros(2 * there), numpy.zeros(2 * there)
    ),
}


@pytest.mark.ompy(2, mca=SMALL_PIECES)
@pytest.mark.parametrize("function", OWN_SIDES)
def test_sides_of_one_rank_that_differ_are_an_error_and_no_memory_beside_them_is_touched(comm, function):
    from ompy import MPI

    for here, there in ((1, 1000), (1000, 1), (0, 5), (5, 0), (1, 5000), (5000, 1)):
        memory = numpy.full(here + 6000, 7.0)
        if comm.rank == 0 or function.startswith("all"):
            with pytest.raises(MPI.Exception, match=r"for itself|has \d+ bytes in this collective") as caught:
                OWN_SIDES[function](comm, memory[:here], there)
            assert caught.value.Get_error_class() == MPI.ERR_TRUNCATE
        else:
            OWN_SIDES[function](comm, memory[:here], there)
        assert (memory[here:] == 7.0).all()
        assert comm.allreduce(1) == 2


def folded(rows):
    """What a reduction of these operands is to the bit: the last two first."""
    result = rows[-1].copy()
    for row in rows[-2::-1]:
        result = row + result
    return result


def one_of_many(comm, source, generator):
    """A collective of any kind and length, checked to the bit; every rank draws the same."""
    from ompy import MPI

    rank, size = comm.Get_rank(), comm.Get_size()
    count = source.choice((0, 1, 3, 5, 6, 40, 500, 700, 1500, 2500))
    root = source.randrange(size)
    kind = source.choice(("bcast", "reduce", "allreduce", "scan", "allgather", "alltoall", "block", "blocks"))
    in_place = source.random() < 0.5
    if kind == "blocks":
        counts = [source.choice((0, 1, 7, 600, 1300)) for _ in range(size)]
        count = sum(counts)
    elif kind in ("alltoall", "block"):
        counts = [count] * size
        count *= size
    rows = generator.random((size, count))
    mine = rows[rank].copy()
    if kind == "bcast":
        comm.Bcast(mine, root)
        assert (mine == rows[root]).all()
    elif kind == "reduce":
        got = (mine if in_place else numpy.zeros(count)) if rank == root else None
        comm.Reduce(MPI.IN_PLACE if in_place and rank == root else mine, got, MPI.SUM, root)
        assert rank != root or (got == folded(rows)).all()
    elif kind == "allreduce":
        got = mine if in_place else numpy.zeros(count)
        comm.Allreduce(MPI.IN_PLACE if in_place else mine, got)
        assert (got == folded(rows)).all()
    elif kind == "scan":
        got = mine if in_place else numpy.zeros(count)
        comm.Scan(MPI.IN_PLACE if in_place else mine, got)
        assert (got == folded(rows[: rank + 1])).all()
    elif kind == "allgather":
        got = numpy.zeros((size, count))
        got[rank] = mine
        comm.Allgather(MPI.IN_PLACE if in_place else mine, got)
        assert (got == rows).all()
    elif kind == "alltoall":
        got = mine if in_place else numpy.zeros(count)
        comm.Alltoall(MPI.IN_PLACE if in_place else mine, got)
        assert (got.reshape(size, -1) == rows.reshape(size, size, -1)[:, rank]).all()
    else:
        begin = sum(counts[:rank])
        got = mine if in_place else numpy.zeros(counts[rank])
        if kind == "block":
            comm.Reduce_scatter_block(MPI.IN_PLACE if in_place else mine, got)
        else:
            comm.Reduce_scatter(MPI.IN_PLACE if in_place else mine, got, counts)
        assert (got[: counts[rank]] == folded(rows[:, begin : begin + counts[rank]])).all()


@pytest.mark.ompy(2, 3, 5, mca=SMALL_PIECES)
def test_short_and_long_ones_of_every_kind_follow_one_another(comm):
    import random

    seed = comm.bcast(random.randrange(1 << 30) if comm.Get_rank() == 0 else None)
    print("seed", seed)
    source, generator = random.Random(seed), numpy.random.default_rng(seed)
    for _ in range(300):
        one_of_many(comm, source, generator)
