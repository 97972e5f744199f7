"""`Comm.Free` lets go of a communicator; what is under way there completes (MPI-4.1, 7.4.3)."""

from __future__ import annotations

import resource
from pathlib import Path

import numpy as np
import pytest

from ompy import MPI

NETWORK = {"btl": "self,zmq"}
LONG = 300_000


def completes(comm):
    """Rank 1 posts, rank 0 sends, both in a communicator that is freed at once; short and long, one way and the other."""
    rank = comm.rank
    for count in (4, LONG):
        for early in (0, 1):
            dup = comm.Dup()
            data = np.arange(count) * 1.0 if rank == 0 else np.zeros(count)
            if rank == early:
                request = dup.Isend(data, 1, 7) if rank == 0 else dup.Irecv(data, 0, 7)
                dup.Free()
                comm.Barrier()
            else:
                comm.Barrier()
                request = dup.Isend(data, 1, 7) if rank == 0 else dup.Irecv(data, 0, 7)
                dup.Free()
            comm.Dup().Free()
            request.Wait()
            assert (data == np.arange(count)).all()


@pytest.mark.ompy(2)
def test_messages_under_way_arrive(comm):
    completes(comm)


@pytest.mark.ompy(2, mca=NETWORK)
def test_messages_under_way_arrive_over_a_network(comm):
    completes(comm)


def collectives_complete(comm):
    rank, size = comm.rank, comm.size
    for count in (4, LONG // 10):
        dup = comm.Dup()
        data = np.full(count, 5.0 if rank == 0 else 0.0)
        got = np.zeros(count)
        if rank == 0:
            # The others have freed the communicator, and made and freed another one.
            for other in range(1, size):
                comm.Recv(np.zeros(1), other)
        requests = [dup.Ibcast(data, 0)]
        requests.append(dup.Iallreduce(np.full(count, float(rank)), got))
        requests.append(dup.Ibarrier())
        dup.Free()
        if rank:
            comm.Send(np.zeros(1), 0)
        MPI.Request.Waitall(requests)
        assert (data == 5).all()
        assert (got == sum(range(size))).all()
        comm.Dup().Free()


@pytest.mark.ompy(2, 3, 5)
def test_collectives_under_way_complete(comm):
    collectives_complete(comm)


@pytest.mark.ompy(3, mca=NETWORK)
def test_collectives_under_way_complete_over_a_network(comm):
    collectives_complete(comm)


@pytest.mark.ompy(2)
def test_persistent_requests_can_still_be_started(comm):
    dup = comm.Dup()
    data = np.zeros(4)
    both = np.zeros(4)
    request = dup.Send_init(data, 1, 1) if comm.rank == 0 else dup.Recv_init(data, 0, 1)
    summing = dup.Allreduce_init(data, both)
    dup.Free()
    for turn in range(3):
        comm.Dup().Free()
        if comm.rank == 0:
            data[:] = turn
        request.Start()
        request.Wait()
        assert (data == turn).all()
        summing.Start()
        summing.Wait()
        assert (both == 2 * turn).all()
    request.Free()
    summing.Free()


@pytest.mark.ompy(2)
def test_a_matched_message_can_still_be_received(comm):
    for count in (4, LONG):
        dup = comm.Dup()
        if comm.rank == 0:
            request = dup.Isend(np.arange(count) * 1.0, 1, 3)
            dup.Free()
            request.Wait()
        else:
            message = dup.Mprobe(0, 3)
            dup.Free()
            got = np.zeros(count)
            message.Recv(got)
            assert (got == np.arange(count)).all()
        comm.Dup().Free()


@pytest.mark.ompy(2)
def test_a_duplicate_may_outlive_its_parent_before_it_is_there(comm):
    parent = comm.Dup()
    parent.name = "parent"
    made, request = parent.Idup()
    parent.Free()
    request.Wait()
    assert made.allreduce(1) == 2
    made.Free()


@pytest.mark.ompy(1, 2)
def test_calls_through_another_handle_are_errors(comm):
    dup = comm.Dup()
    alias = MPI.Intracomm(dup)
    dup.Free()
    assert dup == MPI.COMM_NULL
    data = np.zeros(1)
    calls = [
        lambda: alias.Send(data, 0), lambda: alias.Recv(data, 0), lambda: alias.Isend(data, 0), lambda: alias.Irecv(data, 0),
        lambda: alias.Iprobe(), lambda: alias.Probe(), lambda: alias.Improbe(), lambda: alias.Mprobe(),
        lambda: alias.send(1, 0),
        lambda: alias.recv(), lambda: alias.isend(1, 0), lambda: alias.irecv(), lambda: alias.Sendrecv(data, 0, 0, data, 0, 0),
        lambda: alias.Send_init(data, 0), lambda: alias.Recv_init(data, 0), lambda: alias.Psend_init(data, 1, 0),
        lambda: alias.Barrier(), lambda: alias.Ibarrier(), lambda: alias.Bcast(data), lambda: alias.bcast(1),
        lambda: alias.Allreduce(data, data.copy()), lambda: alias.allreduce(1), lambda: alias.Barrier_init(),
        lambda: alias.Dup(), lambda: alias.Idup(), lambda: alias.Split(), lambda: alias.Create(comm.Get_group()),
        lambda: alias.Create_group(comm.Get_group()), lambda: alias.Create_cart([1]), lambda: alias.Get_rank(),
        lambda: alias.Get_size(), lambda: alias.Get_group(), lambda: alias.Get_attr(MPI.TAG_UB), lambda: alias.Free(),
        lambda: alias.Disconnect(), lambda: comm.Compare(alias), lambda: MPI.Win.Create(data, 8, comm=alias),
        lambda: MPI.Win.Allocate(8, 8, comm=alias), lambda: MPI.Message.Probe(alias),
    ]  # fmt: skip
    for number, call in enumerate(calls):
        with pytest.raises(MPI.Exception) as caught:
            call()
        assert caught.value.Get_error_class() == MPI.ERR_COMM, number


@pytest.mark.ompy(2)
def test_leaders_that_do_not_meet_over_what_was_freed_are_told_on_every_rank(comm):
    peers = comm.Dup()
    alias = MPI.Intracomm(peers)
    peers.Free()
    for local in (MPI.COMM_SELF, comm.Split(comm.rank)):
        with pytest.raises(MPI.Exception, match="peer_comm: a communicator expected") as caught:
            local.Create_intercomm(0, alias, 1 - comm.rank, 5)
        assert caught.value.Get_error_class() == MPI.ERR_COMM


@pytest.mark.ompy(2)
def test_what_was_freed_is_gone_once_nothing_is_under_way(comm):
    from ompy.mpi.comm import core_of

    dup = comm.Dup()
    core = core_of(dup)
    if comm.rank == 0:
        request = dup.Isend(np.zeros(LONG), 1)
    else:
        request = dup.Irecv(np.zeros(LONG), 0)
    dup.Free()
    assert comm.rank == 0 or core.pml is not None
    request.Wait()
    comm.Dup().Free()
    assert core.pml is None
    assert core.under_way == 0


@pytest.mark.ompy(2)
def test_messages_for_a_communicator_that_was_freed_here_are_not_kept(comm):
    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

    before = None
    for number in range(120):
        dup = comm.Dup()
        if comm.rank:
            dup.Free()
            comm.Barrier()
        else:
            comm.Barrier()
            for _ in range(20):
                dup.Send(np.zeros(50_000, "u1"), 1)  # eager: nobody receives it
            dup.Free()
        comm.Barrier()
        if number == 20:
            before = resident()
    comm.Iprobe()
    assert resident() - before < 20 << 20  # of 100 MB that came
