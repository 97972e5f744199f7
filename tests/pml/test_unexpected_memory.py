"""Memory of messages that nobody has asked for yet: kept for the next ones, up to a limit."""

from __future__ import annotations

import resource

import numpy as np
import pytest

from ompy import MPI

PAGE = resource.getpagesize()
TOKEN = 99


def faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def resident() -> int:
    with open("/proc/self/statm") as numbers:
        return int(numbers.read().split()[1]) * PAGE


def store(comm: MPI.Intracomm, count: int, nbytes: int) -> tuple[int, int]:
    """So many messages arrive before they are asked for; page faults of rank 1, and what it keeps resident then."""
    data = np.full(nbytes, comm.rank, "u1")
    before = faults()
    if comm.rank == 0:
        for _ in range(count):
            comm.Send(data, 1)
        comm.send(None, 1, TOKEN)
    else:
        comm.recv(None, 0, TOKEN)
        for _ in range(count):
            comm.Recv(data, 0)
            assert not data.any()
    comm.Barrier()
    return faults() - before, resident()


@pytest.mark.ompy(2, mca={"btl": "self,sm", "btl_sm_single_copy": "none", "btl_sm_shared_heap": "none"})
@pytest.mark.parametrize("nbytes", [20_000, 65_536])
def test_memory_of_messages_that_came_early_is_used_again(comm, nbytes):
    count = 40
    store(comm, count, nbytes)
    store(comm, count, nbytes)
    found, _ = store(comm, count, nbytes)
    assert comm.rank == 0 or found < count * nbytes // PAGE // 4


@pytest.mark.ompy(2, mca={"btl": "self,sm", "btl_sm_single_copy": "none", "btl_sm_shared_heap": "none"})
def test_of_many_messages_that_came_early_not_all_memory_is_kept(comm):
    store(comm, 4, 65_536)
    _, before = store(comm, 4, 65_536)
    _, after = store(comm, 600, 65_536)
    assert after - before < 16 << 20
