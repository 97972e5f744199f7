"""coll/portals: right results for every length and root, one collective after another, two communicators at once."""

from __future__ import annotations

import random
import threading
import time

import numpy
import pytest

# Limits small enough that both kinds of algorithm are met often.
OPTIONS = {"coll": "portals,basic", "coll_portals_short_limit": "512", "coll_portals_drift": "3"}
COUNTS = (0, 1, 3, 63, 64, 65, 1000, 20_000)


def rows_of(size, count):
    """What each rank contributes, a row each."""
    return numpy.arange(count) * 1.0 + 1000 * numpy.arange(size)[:, None]


def bcast(comm, count, root):
    rows = rows_of(comm.size, count)
    got = rows[comm.rank].copy()
    comm.Bcast(got, root)
    assert (got == rows[root]).all()


def reduce(comm, count, root):
    from ompy import MPI

    rows = rows_of(comm.size, count)
    got = numpy.zeros(count) if comm.rank == root else None
    comm.Reduce(rows[comm.rank].copy(), got, MPI.SUM, root)
    assert got is None or (got == rows.sum(0)).all()
    got = rows[comm.rank].copy()
    comm.Reduce(MPI.IN_PLACE if comm.rank == root else got, got if comm.rank == root else None, MPI.MAX, root)
    assert comm.rank != root or (got == rows.max(0)).all()


def allreduce(comm, count, root):
    from ompy import MPI

    rows = rows_of(comm.size, count)
    got = numpy.zeros(count)
    comm.Allreduce(rows[comm.rank].copy(), got)
    assert (got == rows.sum(0)).all()
    got = rows[comm.rank].copy()
    comm.Allreduce(MPI.IN_PLACE, got, MPI.MIN)
    assert (got == rows.min(0)).all()


def gather(comm, count, root):
    from ompy import MPI

    rows = rows_of(comm.size, count)
    got = numpy.zeros((comm.size, count)) if comm.rank == root else None
    comm.Gather(rows[comm.rank].copy(), got, root)
    assert got is None or (got == rows).all()
    if got is not None:
        got[:] = 0
        got[root] = rows[root]
    comm.Gather(MPI.IN_PLACE if comm.rank == root else rows[comm.rank].copy(), got, root)
    assert got is None or (got == rows).all()


def scatter(comm, count, root):
    from ompy import MPI

    rows = rows_of(comm.size, count)
    got = numpy.zeros(count)
    comm.Scatter(rows if comm.rank == root else None, got, root)
    assert (got == rows[comm.rank]).all()
    comm.Scatter(rows if comm.rank == root else None, MPI.IN_PLACE if comm.rank == root else got, root)
    assert (got == rows[comm.rank]).all()


def allgather(comm, count, root):
    from ompy import MPI

    rows = rows_of(comm.size, count)
    got = numpy.zeros((comm.size, count))
    comm.Allgather(rows[comm.rank].copy(), got)
    assert (got == rows).all()
    got = numpy.zeros((comm.size, count))
    got[comm.rank] = rows[comm.rank]
    comm.Allgather(MPI.IN_PLACE, got)
    assert (got == rows).all()


def reduce_scatter_block(comm, count, root):
    from ompy import MPI

    vectors = rows_of(comm.size, count * comm.size)
    got = numpy.zeros(count)
    comm.Reduce_scatter_block(vectors[comm.rank].copy(), got, MPI.SUM)
    assert (got == vectors.sum(0)[comm.rank * count : (comm.rank + 1) * count]).all()


def barrier(comm, count, root):
    comm.Barrier()


FUNCTIONS = (bcast, reduce, allreduce, gather, scatter, allgather, reduce_scatter_block, barrier)


def some(comm, rng, rounds):
    """The same random collectives on every rank; ranks differ in how long they take in between."""
    for _ in range(rounds):
        function, count, root = rng.choice(FUNCTIONS), rng.choice(COUNTS), rng.randrange(comm.size)
        sum(range(random.randrange(2000)))
        function(comm, count, root)


@pytest.mark.ompy(2, 3, 5, mca=OPTIONS, timeout=120)
def test_every_function_for_every_length_and_root(comm):
    for function in FUNCTIONS:
        for count in COUNTS:
            for root in range(comm.size):
                function(comm, count, root)


@pytest.mark.ompy(4, mca=OPTIONS, timeout=120)
def test_collectives_that_follow_at_once_do_not_meet(comm, seed):
    some(comm, random.Random(seed), 200)


@pytest.mark.ompy(3, mca={**OPTIONS, "pml": "cm", "btl": "self,zmq"}, timeout=120)
def test_they_run_over_tcp_beside_messages_that_the_kernel_matches(comm, seed):
    some(comm, random.Random(seed), 40)


@pytest.mark.ompy(3, mca={**OPTIONS, "btl": "portals,self"}, timeout=120)
def test_they_run_over_btl_portals(comm, seed):
    some(comm, random.Random(seed), 60)


@pytest.mark.ompy(2, mca=OPTIONS, timeout=120)
def test_a_root_that_runs_ahead_waits_for_the_others_in_time(comm):
    # Far more than a heap holds if nobody held the root back.
    for number in range(3000):
        data = numpy.full(60, number if comm.rank == 0 else -1, "i8")
        comm.Bcast(data, 0)
        assert (data == number).all()


@pytest.mark.ompy(3, mca=OPTIONS, timeout=120)
def test_threads_run_collectives_on_their_own_communicators_at_the_same_time(comm, seed):
    comms = [comm.Dup() for _ in range(3)]
    failures = []

    def work(index):
        try:
            some(comms[index], random.Random(f"{seed} {index}"), 40)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    for made in comms:
        made.Free()


@pytest.mark.ompy(3, 5, mca=OPTIONS)
def test_threads_that_meet_a_peer_at_once_do_so_one_after_the_other(comm):
    """Each would have ways of its own to it, and those of one would be gone while the kernel still used them."""
    from ompy.mca.pml import chosen

    at_once, inside, lock = [], [], threading.Lock()
    bml = chosen().bml
    add_proc = bml.add_proc

    def meet(proc):
        with lock:
            inside.append(proc)
            at_once.append(len(inside))
        try:
            for _ in range(20):
                time.sleep(0.001)  # others may run
            return add_proc(proc)
        finally:
            with lock:
                inside.remove(proc)

    bml.add_proc = meet
    comms = [comm.Dup() for _ in range(3)]
    threads = [threading.Thread(target=allgather, args=(made, 10, 0)) for made in comms]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    del bml.add_proc
    assert max(at_once, default=1) == 1
    assert comm.allreduce(len(at_once)) > 0, "everybody had met everybody"
    for made in comms:
        made.Free()


@pytest.mark.ompy(5, mca=OPTIONS)
@pytest.mark.parametrize("count", [8, 400])
def test_operands_meet_in_rank_order_where_the_operation_does_not_commute(comm, count):
    from ompy import MPI

    right = MPI.Op.Create(lambda left, into, _: None, commute=False)  # leaves the right operand
    data = numpy.full(count, comm.rank, "i8")
    got = numpy.zeros(count, "i8")
    comm.Allreduce(data, got, right)
    assert (got == comm.size - 1).all()
    right.Free()


@pytest.mark.ompy(3, mca=OPTIONS)
@pytest.mark.parametrize("count", [5, 3000])
def test_types_with_gaps_are_packed(comm, count):
    from ompy import MPI

    every_other = MPI.INT.Create_vector(count, 1, 2).Commit()
    data = numpy.arange(2 * count, dtype="i") if comm.rank == 1 else numpy.full(2 * count, -1, "i")
    if comm.rank == 2:  # the same signature, without gaps
        packed = numpy.zeros(count, "i")
        comm.Bcast(packed, 1)
        assert (packed == numpy.arange(0, 2 * count, 2)).all()
    else:
        comm.Bcast([data, 1, every_other], 1)
        assert (data[::2] == numpy.arange(0, 2 * count, 2)).all()
        assert comm.rank == 1 or (data[1::2] == -1).all()
    every_other.Free()


@pytest.mark.ompy(3, mca=OPTIONS)
@pytest.mark.parametrize("count", [5, 3000])
def test_types_of_absolute_addresses_are_packed(comm, count):
    from ompy import MPI

    data = numpy.arange(count, dtype="i") if comm.rank == 1 else numpy.full(count, -1, "i")
    where_it_lies = MPI.INT.Create_hindexed([count], [MPI.Get_address(data)]).Commit()
    comm.Bcast([MPI.BOTTOM, 1, where_it_lies], 1)
    assert (data == numpy.arange(count)).all()
    where_it_lies.Free()


@pytest.mark.ompy(3, mca=OPTIONS)
def test_arrays_are_broadcast_as_objects(comm):
    for count in (10, 20_000):
        assert (comm.bcast(numpy.arange(count) if comm.rank == 1 else None, 1) == numpy.arange(count)).all()


# Every message is carried out up to 300 ms later, and every read 300 ms later.
LATER = {
    "btl": "self,chaos",
    "btl_chaos_wraps": "sm",
    "btl_sm_single_copy": "cma",
    "btl_chaos_delay": "1",
    "btl_chaos_delay_time": "300",
    "btl_chaos_seed": "1",
}


@pytest.mark.ompy(2, mca={"coll": "portals,basic", "coll_portals_short_limit": str(1 << 20)} | LATER, timeout=60)
def test_a_vector_that_is_on_its_way_when_its_receiver_comes_is_waited_for(comm):
    # The reading of some is under way whenever rank 1 comes.
    for tenths in range(7):
        data = numpy.full(1 << 17, tenths + 1.0 if comm.rank == 0 else 0.0)
        comm.allgather(comm.rank)
        end = time.monotonic() + tenths / 10
        while comm.rank == 1 and time.monotonic() < end:
            comm.Iprobe()
        comm.Bcast(data)
        assert (data == tenths + 1).all(), f"{tenths / 10} s late: {numpy.unique(data)}"
