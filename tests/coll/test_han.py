"""coll/han: right results on hosts of any shape, by the two levels where they can serve, and nothing where there are none."""

from __future__ import annotations

import sys

import numpy
import pytest

# Ranks in runs, in turn, and neither; hosts of one rank and of several.
RUNS, IN_TURN, MIXED = "0,0,0,1,1,2", "0,1", "0,1,1,0,2"
COUNTS = (1, 3, 1000, 40_000)


def options(hosts: str, **more: object) -> dict[str, object]:
    return {"coll_han_priority": 50, "coll_han_first_calls": 0, "coll_han_pretended_hosts": hosts} | {
        f"coll_han_{name}": value for name, value in (TWO_LEVEL | more).items()
    }


FUNCTIONS = ("barrier", "bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "alltoall")
TWO_LEVEL: dict[str, object] = {f"{function}_algorithm": "two_level" for function in FUNCTIONS}
IN_PIECES = {"bcast_segmentsize": 4096, "allreduce_segmentsize": 4096}


def collectives(comm, count: int, root: int) -> None:
    """Each function once, in place as well."""
    from ompy import MPI

    rank, size = comm.rank, comm.size
    is_root = rank == root
    rows = numpy.arange(count) * 1.0 + 1000 * numpy.arange(size)[:, None]
    own, got, all_rows = rows[rank].copy(), numpy.zeros(count), numpy.zeros((size, count))
    comm.Barrier()
    got[:] = rows[root] if is_root else 0
    comm.Bcast(got, root)
    assert (got == rows[root]).all()
    comm.Reduce(own, got if is_root else None, MPI.SUM, root)
    assert not is_root or (got == rows.sum(0)).all()
    got[:] = own
    comm.Reduce(MPI.IN_PLACE if is_root else own, got if is_root else None, MPI.MAX, root)
    assert not is_root or (got == rows.max(0)).all()
    comm.Allreduce(own, got)
    assert (got == rows.sum(0)).all()
    got[:] = own
    comm.Allreduce(MPI.IN_PLACE, got)
    assert (got == rows.sum(0)).all()
    comm.Gather(own, all_rows if is_root else None, root)
    assert not is_root or (all_rows == rows).all()
    all_rows[:] = 0
    all_rows[rank] = own
    comm.Gather(MPI.IN_PLACE if is_root else own, all_rows if is_root else None, root)
    assert not is_root or (all_rows == rows).all()
    comm.Scatter(rows if is_root else None, got, root)
    assert (got == own).all()
    comm.Scatter(rows if is_root else None, MPI.IN_PLACE if is_root else got, root)
    assert (got == own).all()
    comm.Allgather(own, all_rows)
    assert (all_rows == rows).all()
    all_rows[:] = 0
    all_rows[rank] = own
    comm.Allgather(MPI.IN_PLACE, all_rows)
    assert (all_rows == rows).all()
    sent = numpy.arange(size * count).reshape(size, count) + 1e6 * rank
    wanted = numpy.arange(rank * count, (rank + 1) * count) + 1e6 * numpy.arange(size)[:, None]
    comm.Alltoall(sent.copy(), all_rows)
    assert (all_rows == wanted).all()
    comm.Alltoall(MPI.IN_PLACE, sent)
    assert (sent == wanted).all()
    assert (own == rows[rank]).all()


def served_by(function: str) -> set[str]:
    """Who serves the world, and by which algorithm."""
    import ompy

    return {it.component for it in ompy.explain_collective(function, 8) if it.chosen}


@pytest.mark.ompy(4, 6, mca=options(RUNS), timeout=120)
def test_hosts_with_runs_of_ranks(comm):
    for count in COUNTS:
        for root in range(comm.size):
            collectives(comm, count, root)
    for function in FUNCTIONS:
        assert served_by(function) == {"han", "han: two_level"}


@pytest.mark.ompy(3, 4, 5, mca=options(IN_TURN), timeout=120)
def test_hosts_that_ranks_take_in_turn(comm):
    for count in COUNTS:
        for root in range(comm.size):
            collectives(comm, count, root)


@pytest.mark.ompy(5, mca=options(MIXED, **IN_PIECES), timeout=120)
def test_long_messages_in_pieces(comm):
    for count in (511, 512, 513, 1024, 40_000):
        for root in range(comm.size):
            collectives(comm, count, root)


@pytest.mark.ompy(5, mca=options(MIXED, **IN_PIECES))
def test_pieces_of_types_that_differ_from_rank_to_rank(comm):
    """The same signature with gaps and without."""
    from ompy import MPI

    count = 5000
    every_other = MPI.INT.Create_vector(count, 1, 2).Commit()
    for root in range(comm.size):
        data = numpy.arange(2 * count, dtype="i") if comm.rank == root else numpy.full(2 * count, -1, "i")
        if comm.rank % 2:
            data = data[::2].copy()
            comm.Bcast(data, root)
            assert (data == numpy.arange(0, 2 * count, 2)).all()
        else:
            comm.Bcast([data, 1, every_other], root)
            assert (data[::2] == numpy.arange(0, 2 * count, 2)).all()
            assert comm.rank == root or (data[1::2] == -1).all()
    every_other.Free()


@pytest.mark.ompy(5, mca=options(MIXED))
def test_blocks_of_types_of_absolute_addresses(comm):
    from ompy import MPI

    data = numpy.arange(100, dtype="i") if comm.rank == 4 else numpy.full(100, -1, "i")
    where_it_lies = MPI.INT.Create_hindexed([100], [MPI.Get_address(data)]).Commit()
    comm.Bcast([MPI.BOTTOM, 1, where_it_lies], 4)
    assert (data == numpy.arange(100)).all()
    sums = numpy.zeros(100, "i")
    comm.Reduce(data, sums, MPI.SUM, 3)
    assert comm.rank != 3 or (sums == 5 * data).all()
    where_it_lies.Free()


def rows_appended(comm, count: int, root: int) -> None:
    """By an operation that keeps the left operand's beginning and the right one's end."""
    from ompy import MPI

    def join(left, right, _):
        first, last = numpy.frombuffer(left, "i8").reshape(-1, 2), numpy.frombuffer(right, "i8").reshape(-1, 2)
        assert (first[:, 1] + 1 == last[:, 0]).all()
        last[:, 0] = first[:, 0]

    operation = MPI.Op.Create(join, commute=False)
    pair = MPI.INT64_T.Create_contiguous(2).Commit()
    data, got = numpy.full((count, 2), comm.rank, "i8"), numpy.zeros((count, 2), "i8")
    comm.Allreduce([data, count, pair], [got, count, pair], operation)
    assert (got == [0, comm.size - 1]).all()
    got[:] = 0
    comm.Reduce([data, count, pair], [got, count, pair], operation, root)
    assert comm.rank != root or (got == [0, comm.size - 1]).all()
    operation.Free()
    pair.Free()


@pytest.mark.ompy(6, mca=options(RUNS))
def test_operands_meet_in_rank_order_where_hosts_have_runs_of_ranks(comm):
    for root in range(comm.size):
        rows_appended(comm, 7, root)


@pytest.mark.ompy(5, mca=options(IN_TURN))
def test_an_operation_that_does_not_commute_is_left_to_others_where_hosts_have_none(comm):
    for root in range(comm.size):
        rows_appended(comm, 7, root)


@pytest.mark.ompy(5, mca=options(MIXED))
def test_communicators_of_all_kinds_come_and_go(comm):
    """As long as they live they serve, also with collectives under way when they are freed."""
    from ompy import MPI

    for turn in range(30):
        made = comm.Dup() if turn % 2 else comm.Split(turn % 3 and comm.rank % 2, -comm.rank)
        request = made.Iallreduce(numpy.ones(1), numpy.zeros(1))
        collectives(made, 5, made.size - 1)
        made.Free()
        request.Wait()
    inter = comm.Split(comm.rank % 2).Create_intercomm(0, comm, 1 - comm.rank % 2)
    got = numpy.zeros(1)
    inter.Allreduce(numpy.ones(1), got, MPI.SUM)
    assert got[0] == inter.remote_size
    inter.Free()


@pytest.mark.ompy(5, mca=options(RUNS, first_calls=3))
def test_a_communicator_that_is_used_a_few_times_is_not_divided(comm):
    """Its collectives are right before, then and afterwards."""
    for number in range(8):
        got = numpy.full(3, number if comm.rank == 2 else -1)
        comm.Bcast(got, 2)
        assert (got == number).all()


@pytest.mark.ompy(6, mca=options("4,4,4,7,7,7"))
def test_parts_on_one_host_and_ranks_alone_have_no_levels(comm):
    host = comm.Split(comm.rank // 3)
    alone = comm.Split(comm.rank % 3)
    for part in (host, alone):
        collectives(part, 3, part.size - 1)
    for part in (host, alone):
        part.Free()


@pytest.mark.ompy(3, mca=options("1"))
def test_a_world_on_one_host_says_that_it_has_no_levels(comm):
    collectives(comm, 3, 1)
    assert served_by("bcast") == {"han", "han: flat"}


@pytest.mark.ompy(4, mca=options(IN_TURN))
def test_calls_without_data_wait_for_nobody_and_harm_nobody(comm):
    empty, got = numpy.zeros(0), numpy.zeros(0)
    for root in range(4):
        comm.Bcast(empty, root)
        comm.Gather(empty, got, root)
        comm.Reduce(empty, got, root=root)
    comm.Alltoall(empty, got)
    collectives(comm, 2, 3)


@pytest.mark.ompy(4, mca=options(RUNS))
def test_non_blocking_and_persistent_forms_are_the_next_components(comm):
    got = numpy.zeros(2)
    request = comm.Allreduce_init(numpy.ones(2), got)
    for _ in range(3):
        request.Start()
        request.Wait()
        assert (got == 4).all()
    request.Free()
    first, second = numpy.zeros(2), numpy.zeros(2)
    pending = [comm.Iallreduce(numpy.ones(2), first), comm.Iallreduce(numpy.full(2, 2.0), second)]
    collectives(comm, 3, 1)
    for it in pending:
        it.Wait()
    assert (first == 4).all()
    assert (second == 8).all()


@pytest.mark.ompy(3, mca=options(RUNS))
def test_threads_have_collectives_on_their_own_communicators(comm):
    import threading

    comms, failures = [comm.Dup() for _ in range(3)], []

    def work(made) -> None:
        try:
            for turn in range(20):
                collectives(made, 4, turn % 3)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(made,)) for made in comms]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    for made in comms:
        made.Free()


def test_on_one_host_it_says_why_it_does_not_serve(run):
    told = run("-c", "from ompy.cli.ompy import main; main()", "explain", "bcast", "-n", "3").stdout
    (row,) = [line for line in told.splitlines() if "han" in line]
    assert "all ranks of the job are on one host" in row


@pytest.mark.parametrize("hosts", ["a", "0,,1", "0,-1", "1" * 11, "0, 1"])
def test_hosts_that_are_no_numbers_end_the_start_with_words(run, hosts):
    words = ("--mca", "coll_han_pretended_hosts", hosts, sys.executable, "-c", "from ompy import MPI")
    told = run("-m", "ompy.cli.ompyrun", "-n", "1", *words)
    assert told.returncode
    assert "coll_han_pretended_hosts is" in told.stderr


def test_rules_of_a_file_decide_by_bytes(run, tmp_path):
    (tmp_path / "rules.toml").write_text('[bcast.2]\n0 = "flat"\n4KiB = { algorithm = "two_level", segmentsize = "8KiB" }\n')
    mca = {"coll_han_pretended_hosts": "0,0,1", "coll_han_priority": "50", "coll_han_dynamic_rules_filename": "rules.toml"}
    words = [word for pair in mca.items() for word in ("--mca", *pair)]
    for nbytes, algorithm in (("4095", "flat"), ("4096", "two_level")):
        explain = ("explain", "bcast", "-n", "3", "--bytes", nbytes, *words)
        told = run("-c", "from ompy.cli.ompy import main; main()", *explain)
        lines = [line for line in told.stdout.splitlines() if "han: " in line and " chosen " in line]
        assert [algorithm in line for line in lines] == [True], told.stdout
