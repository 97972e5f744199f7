"""Collectives between processes, in their blocking, non-blocking and persistent forms, against NumPy."""

from __future__ import annotations

import subprocess
import sys

import numpy
import pytest

ROWS = 5


def rows(size, count=ROWS):
    """One row a rank, every number different."""
    return numpy.arange(size * count, dtype="d").reshape(size, count) + 1


def blocking(comm, name, *arguments, **options):
    getattr(comm, name)(*arguments, **options)


def nonblocking(comm, name, *arguments, **options):
    getattr(comm, "I" + name.lower())(*arguments, **options).Wait()


def persistent(comm, name, *arguments, **options):
    request = getattr(comm, name + "_init")(*arguments, **options)
    request.Start()
    request.Wait()
    request.Free()


FORMS = (blocking, nonblocking, persistent)


@pytest.mark.ompy(1, 2, 5)
def test_data_reach_the_ranks_they_are_for(comm):
    rank, size = comm.Get_rank(), comm.Get_size()
    every = rows(size)
    for run in FORMS:
        run(comm, "Barrier")
        for root in range(size):
            got = every[root].copy() if rank == root else numpy.zeros(ROWS)
            run(comm, "Bcast", got, root=root)
            assert (got == every[root]).all()
            got = numpy.zeros((size, ROWS)) if rank == root else None
            run(comm, "Gather", every[rank], got, root=root)
            assert rank != root or (got == every).all()
            got = numpy.zeros(ROWS)
            run(comm, "Scatter", every if rank == root else None, got, root=root)
            assert (got == every[rank]).all()
        got = numpy.zeros((size, ROWS))
        run(comm, "Allgather", every[rank], got)
        assert (got == every).all()
        sent = every * 100 + rank
        run(comm, "Alltoall", sent, got)
        assert (got == every[rank] * 100 + numpy.arange(size)[:, None]).all()


@pytest.mark.ompy(2, 5)
def test_blocks_of_different_lengths_reach_the_ranks_they_are_for(comm):
    rank, size = comm.Get_rank(), comm.Get_size()
    counts = [peer % 3 for peer in range(size)]
    starts = [sum(counts[:peer]) + peer for peer in range(size)]
    length = sum(counts) + size
    whole = numpy.full(length, -1.0)
    for peer in range(size):
        whole[starts[peer] : starts[peer] + counts[peer]] = peer + 1
    own = numpy.full(counts[rank], rank + 1.0)
    for run in FORMS:
        got = numpy.full(length, -1.0)
        run(comm, "Allgatherv", own, [got, counts, starts, "d"])
        assert (got == whole).all()
        got = numpy.full(length, -1.0)
        run(comm, "Gatherv", own, [got, counts, starts, "d"] if rank == 1 else None, root=1)
        assert rank != 1 or (got == whole).all()
        got = numpy.zeros(counts[rank])
        run(comm, "Scatterv", [whole, counts, starts, "d"] if rank == 1 else None, got, root=1)
        assert (got == own).all()
        got = numpy.zeros(size * counts[rank])
        there = [counts[rank]] * size
        run(comm, "Alltoallv", [whole, counts, starts, "d"], [got, there, [peer * counts[rank] for peer in range(size)], "d"])
        assert (got == rank + 1).all()


@pytest.mark.ompy(1, 2, 5)
def test_reductions_agree_with_numpy(comm):
    from ompy import MPI

    rank, size = comm.Get_rank(), comm.Get_size()
    every = rows(size)
    for run in FORMS:
        for op, expected in ((MPI.SUM, every.sum(axis=0)), (MPI.MAX, every.max(axis=0)), (MPI.PROD, every.prod(axis=0))):
            got = numpy.zeros(ROWS)
            run(comm, "Allreduce", every[rank], got, op=op)
            assert numpy.allclose(got, expected)
            got = every[rank].copy()
            run(comm, "Allreduce", MPI.IN_PLACE, got, op=op)
            assert numpy.allclose(got, expected)
            got = numpy.zeros(ROWS)
            run(comm, "Reduce", every[rank], got if rank == size - 1 else None, op=op, root=size - 1)
            assert rank != size - 1 or numpy.allclose(got, expected)
        run(comm, "Scan", every[rank], got, op=MPI.SUM)
        assert (got == every[: rank + 1].sum(axis=0)).all()
        run(comm, "Exscan", every[rank], got, op=MPI.SUM)
        assert rank == 0 or (got == every[:rank].sum(axis=0)).all()
        wide = numpy.tile(every[rank], (size, 1))
        run(comm, "Reduce_scatter_block", wide, got, op=MPI.SUM)
        assert (got == every.sum(axis=0)).all()
        got = numpy.zeros(rank % 2 + 1)
        counts = [peer % 2 + 1 for peer in range(size)]
        run(comm, "Reduce_scatter", numpy.arange(sum(counts)) * 1.0, got, counts, op=MPI.SUM)
        start = sum(counts[:rank])
        assert (got == size * numpy.arange(start, start + counts[rank])).all()


@pytest.mark.ompy(2, 4, 5)
def test_an_operation_that_does_not_commute_gets_its_operands_in_rank_order(comm):
    """Matrix products: of types with a gap, so that the memory between the messages is laid out as the program expects."""
    from ompy import MPI

    def multiply(left, right, datatype):
        a = numpy.frombuffer(left, "d").reshape(-1, 5)
        b = numpy.frombuffer(right, "d").reshape(-1, 5)
        for x, y in zip(a, b, strict=True):
            y[:4] = (x[:4].reshape(2, 2) @ y[:4].reshape(2, 2)).ravel()

    rank, size = comm.Get_rank(), comm.Get_size()
    op = MPI.Op.Create(multiply, commute=False)
    datatype = MPI.DOUBLE.Create_contiguous(4).Create_resized(0, 40).Commit()
    every = numpy.zeros((size, 3, 5))
    every[:, :, :4] = numpy.random.default_rng(7).integers(0, 4, (size, 3, 4))

    def product(ranks):
        total = numpy.array([numpy.eye(2)] * 3)
        for peer in ranks:
            total = total @ every[peer, :, :4].reshape(3, 2, 2)
        return total.reshape(3, 4)

    def message(array):
        return [array, 3, datatype]

    for run in FORMS:
        got = numpy.zeros((3, 5))
        run(comm, "Allreduce", message(every[rank]), message(got), op=op)
        assert (got[:, :4] == product(range(size))).all()
        run(comm, "Scan", message(every[rank]), message(got), op=op)
        assert (got[:, :4] == product(range(rank + 1))).all()
        run(comm, "Exscan", message(every[rank]), message(got), op=op)
        assert rank == 0 or (got[:, :4] == product(range(rank))).all()
        for root in range(size):
            run(comm, "Reduce", message(every[rank]), message(got) if rank == root else None, op=op, root=root)
            assert rank != root or (got[:, :4] == product(range(size))).all()


def bits_are_the_same_everywhere(comm, seed):
    from ompy import MPI

    generator = numpy.random.default_rng(seed)
    for count in (1, 17, 5000):
        every = generator.standard_normal((comm.Get_size(), count)) * 10.0 ** generator.integers(
            -12, 12, (comm.Get_size(), count)
        )
        first, again = numpy.zeros(count), numpy.zeros(count)
        comm.Allreduce(every[comm.Get_rank()], first, op=MPI.SUM)
        comm.Allreduce(every[comm.Get_rank()], again, op=MPI.SUM)
        assert first.tobytes() == again.tobytes()
        assert len(set(comm.allgather(first.tobytes()))) == 1
        assert numpy.allclose(first, every.sum(axis=0))


@pytest.mark.ompy(3, mca={"coll": "tuned,basic", "coll_tuned_allreduce_algorithm": "recursive_doubling"})
def test_floating_point_sums_are_reproducible_by_recursive_doubling(comm, seed):
    bits_are_the_same_everywhere(comm, seed)


@pytest.mark.ompy(3, mca={"coll": "tuned,basic", "coll_tuned_allreduce_algorithm": "ring"})
def test_floating_point_sums_are_reproducible_round_a_ring(comm, seed):
    bits_are_the_same_everywhere(comm, seed)


@pytest.mark.ompy(5)
def test_floating_point_sums_are_reproducible_up_a_tree(comm, seed):
    bits_are_the_same_everywhere(comm, seed)


@pytest.mark.ompy(2, 5, timeout=90)
def test_large_messages_arrive_whole(comm):
    from ompy import MPI

    rank, size = comm.Get_rank(), comm.Get_size()
    count = 150_001
    own = numpy.arange(count) * (rank + 1.0)
    got = numpy.zeros(count)
    for run in FORMS:
        run(comm, "Allreduce", own, got, op=MPI.SUM)
        assert (got == numpy.arange(count) * (size * (size + 1) / 2)).all()
        got[:] = own
        run(comm, "Bcast", got, root=size - 1)
        assert (got == numpy.arange(count) * size).all()
        every = numpy.zeros((size, count))
        run(comm, "Allgather", own, every)
        assert all((every[peer] == numpy.arange(count) * (peer + 1)).all() for peer in range(size))
        sent = numpy.tile(own, (size, 1))
        run(comm, "Alltoall", sent, every)
        assert all((every[peer] == numpy.arange(count) * (peer + 1)).all() for peer in range(size))
        run(comm, "Reduce_scatter_block", sent, got, op=MPI.SUM)
        assert (got == numpy.arange(count) * (size * (size + 1) / 2)).all()


@pytest.mark.ompy(3)
def test_many_collectives_at_once_complete_in_any_order(comm, rng):
    from ompy import MPI

    rank, size = comm.Get_rank(), comm.Get_size()
    sums = [numpy.zeros(2) for _ in range(50)]
    begun = [comm.Iallreduce(numpy.full(2, rank + index * 1.0), sums[index], op=MPI.SUM) for index in range(50)]
    barrier = comm.Ibarrier()
    comm.Barrier()
    order = list(range(50))
    rng.shuffle(order)
    for index in order:
        begun[index].Wait()
        assert (sums[index] == sum(range(size)) + index * size).all()
    barrier.Wait()


@pytest.mark.ompy(3)
def test_a_persistent_collective_sees_new_data_each_time(comm):
    from ompy import MPI

    rank, size = comm.Get_rank(), comm.Get_size()
    own, total = numpy.zeros(4), numpy.zeros(4)
    request = comm.Allreduce_init(own, total, op=MPI.SUM)
    for round_number in range(10):
        own[:] = rank * round_number
        request.Start()
        request.Wait()
        assert (total == sum(range(size)) * round_number).all()
    request.Free()


@pytest.mark.ompy(2, 5)
def test_groups_exchange_over_an_intercommunicator(comm):
    from ompy import MPI

    rank, size = comm.Get_rank(), comm.Get_size()
    mine = rank % 2
    local = comm.Split(mine, rank)
    inter = local.Create_intercomm(0, comm, 1 - mine, 9)
    others = [peer for peer in range(size) if peer % 2 != mine]
    for run in FORMS:
        run(inter, "Barrier")
        got = numpy.zeros((len(others), 2), "d")
        run(inter, "Allgather", numpy.full(2, rank, "d"), got)
        assert (got == numpy.array(others)[:, None]).all()
        total = numpy.zeros(2)
        run(inter, "Allreduce", numpy.full(2, rank, "d"), total, op=MPI.SUM)
        assert (total == sum(others)).all()
        root = (MPI.ROOT if local.Get_rank() == 0 else MPI.PROC_NULL) if mine == 0 else 0
        got = numpy.full(2, 42.0 if root == MPI.ROOT else -1.0)
        run(inter, "Bcast", got, root=root)
        assert (got == (-1.0 if root == MPI.PROC_NULL else 42.0)).all()
        run(inter, "Alltoall", numpy.full((len(others), 2), rank, "d"), got := numpy.zeros((len(others), 2), "d"))
        assert (got == numpy.array(others)[:, None]).all()
    inter.Free()
    local.Free()


@pytest.mark.ompy(2)
def test_too_long_a_message_is_an_error_and_harms_nothing_else(comm):
    from ompy import MPI

    if comm.Get_rank() == 0:
        comm.Bcast(numpy.zeros(10), root=0)
    else:
        with pytest.raises(MPI.Exception) as caught:
            comm.Bcast(numpy.zeros(5), root=0)
        assert caught.value.Get_error_class() == MPI.ERR_TRUNCATE
        assert "rank 0" in str(caught.value)
    comm.Barrier()
    assert comm.allreduce(1) == 2


def test_an_unknown_algorithm_is_refused_with_the_known_ones():
    command = [sys.executable, "-m", "ompy.cli.ompyrun", "-n", "1", "--mca", "coll_basic_bcast_algorithm", "smoke_signals"]
    result = subprocess.run(
        [*command, sys.executable, "-c", "from ompy import MPI"], capture_output=True, text=True, timeout=60, check=False
    )
    assert result.returncode != 0
    for word in ("smoke_signals", "linear", "logarithmic"):
        assert word in result.stdout + result.stderr


@pytest.mark.ompy(2, 3, mca={"btl": "self,tcp"})
@pytest.mark.parametrize("function", ["Allgather", "Alltoall"])
def test_a_rank_without_room_for_its_own_part_sends_the_others_theirs(comm, function):
    from ompy import MPI

    count = 5 * (comm.size if function == "Alltoall" else 1)
    room = numpy.zeros((4 if comm.rank == 1 else 5) * comm.size)
    try:
        getattr(comm, function)(numpy.full(count, comm.rank + 1.0), room)
    except MPI.Exception as error:
        assert (comm.rank, error.Get_error_class()) == (1, MPI.ERR_TRUNCATE)  # noqa: PT017
    # Of an Allgather that fails somewhere, what others pass on is as long as it is there.
    if comm.rank != 1 and function == "Alltoall":
        assert (room == numpy.repeat(numpy.arange(comm.size) + 1.0, 5)).all()
    assert comm.allreduce(1) == comm.size


@pytest.mark.ompy(2, mca={"coll": "sm,basic", "btl": "self,sm"})
def test_what_is_under_way_goes_on_in_collectives_that_wait_for_nobody(comm):
    """What the root has put up is there before the other one comes for it, who would never poll."""
    from ompy.core.progress_source import ProgressSource, register_source, unregister_source

    class Busy(ProgressSource):
        asked = 0

        def progress(self):
            self.asked += 1
            return 1

    source, asked, number = Busy(), 0, numpy.zeros(1)
    comm.Bcast(number)
    for _ in range(20):
        if comm.rank == 0:
            for _ in range(4):
                comm.Bcast(number)
            comm.send(None, 1)
            comm.recv(source=1)
        else:
            comm.recv(source=0)
            register_source(source)
            for _ in range(4):
                comm.Bcast(number)
            asked, source.asked = asked + source.asked, 0
            unregister_source(source)
            comm.send(None, 0)
    assert comm.rank == 0 or asked >= 80 // 16
