"""coll/sm: many communicators, whose shared memory is lent to them and comes back."""

from __future__ import annotations

import os

import numpy
import pytest

COLL_SM = {"coll": "sm,tuned,basic"}
# Rooms of full size for a few communicators of two, and small ones for a few more.
SCARCE = {**COLL_SM, "coll_sm_memory": "4m"}
OVER_ZMQ = {**COLL_SM, "btl": "self,zmq"}


def is_served(comm):
    """Whether the collectives go through shared memory, as far as this rank has found out."""
    from ompy.mca.coll import FUNCTIONS
    from ompy.mpi.comm import core_of

    function = FUNCTIONS.index("allreduce")
    return [answer for _, answer, _ in core_of(comm).coll.module(function).explain(function, core_of(comm), 8)] == [True]


def total(comm, count=1):
    got = numpy.zeros(count)
    comm.Allreduce(numpy.ones(count), got)
    assert (got == comm.size).all()
    return is_served(comm)


def many_live_at_once(comm):
    import resource

    assert total(comm)
    comm.Dup().Free()
    # The launcher's limit may be small or large: here there are a few more than are in use.
    held = len(os.listdir("/proc/self/fd"))
    limit = max(int(name) for name in os.listdir("/proc/self/fd")) + 8
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    kept = [comm.Dup() for _ in range(150)]
    assert all(total(each) for each in kept)
    assert len(os.listdir("/proc/self/fd")) <= held
    for each in kept:
        each.Free()


@pytest.mark.ompy(2, 3, 5, mca=COLL_SM)
def test_descriptors_do_not_grow_with_communicators(comm):
    many_live_at_once(comm)


@pytest.mark.ompy(3, mca=OVER_ZMQ)
def test_descriptors_do_not_grow_with_communicators_beside_a_network(comm):
    many_live_at_once(comm)


def lent():
    """Bytes of memory behind what this process has lent, and the most that it may be; (0, 0) when it has lent nothing."""
    found = [(0, 0)]
    for name in os.listdir("/proc/self/fd"):
        try:
            if "ompy-coll" in os.readlink(f"/proc/self/fd/{name}"):
                found.append((512 * os.fstat(int(name)).st_blocks, os.fstat(int(name)).st_size))
        except OSError:
            continue  # the descriptor of the list itself
    return max(found)


@pytest.mark.ompy(3, mca=COLL_SM)
def test_a_communicator_costs_the_memory_that_it_uses(comm):
    kept = [comm.Dup() for _ in range(100)]
    for each in kept:
        each.Barrier()
    if comm.rank == 0:
        # Words of the ranks: control and lines.
        assert 0 < lent()[0] < 100 * 3 * 3 * 4096
    for each in kept:
        each.Free()


@pytest.mark.ompy(2, 3, mca=SCARCE)
def test_when_the_memory_is_lent_others_serve_and_when_it_is_back_it_is_lent_again(comm):
    for _ in range(2):
        kept, served = [], []
        for _ in range(120):
            kept.append(comm.Dup())
            served.append(total(kept[-1], 3000))
        # Every rank has come to the same answers, or the sums would not have been right.
        assert {served[0], served[-1]} == {True, False}
        assert served == sorted(served, reverse=True)
        for each in kept:
            each.Free()
        # Memory is lent again when the last has left.
        comm.Barrier()
    assert lent()[1] == (4 << 20 if comm.rank == 0 else 0)


@pytest.mark.ompy(2, mca=SCARCE)
def test_many_communicators_come_and_go_in_little_memory(comm):
    for _ in range(300):
        other = comm.Dup()
        assert total(other, 3000)
        other.Free()


@pytest.mark.ompy(4, mca={**COLL_SM, "coll_sm_memory": "1m", "coll_sm_chunk_size": "4096"})
def test_memory_is_not_lent_again_while_a_slow_member_still_reads(comm):
    """Rank 1 has yet to read what rank 0 put up in one communicator when rank 0 uses others, as large, without it."""
    rank = comm.rank
    group = comm.Get_group()
    for turn in range(20):
        if rank < 3:
            slow = comm.Create_group(group.Incl([0, 1, 2]))
            slow.Barrier()
            got = numpy.full(300, float(turn) if rank == 0 else -1.0)
            if rank == 1:
                # From rank 3: it has been through the other communicators.
                comm.Recv(numpy.zeros(1), 3)
            slow.Bcast(got, 0)
            assert (got == turn).all()
            slow.Free()
        if rank != 1:
            for _ in range(3):
                other = comm.Create_group(group.Incl([0, 2, 3]))
                assert total(other, 300)
                other.Free()
            if rank == 3:
                comm.Send(numpy.zeros(1), 1)
    comm.Barrier()
