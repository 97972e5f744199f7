"""`mpi_param_check 2`: collectives that don't fit together are refused on every rank, with the ranks named."""

from array import array

import pytest

from ompy import MPI

CHECK = {"mpi_param_check": "2"}


def ints(length):
    return array("i", [1] * length)


def one_differs(comm, common, other):
    """`common` on every rank but the last, which does `other`."""
    return other if comm.rank == comm.size - 1 else common


DIFFERENT = [
    (lambda c: c.Bcast(ints(1), 0), lambda c: c.Bcast(ints(1), 1), "ERR_ROOT", "root 0 on ranks 0, 1; root 1 on rank 2"),
    (lambda c: c.Bcast(ints(4)), lambda c: c.Bcast(ints(3)), "ERR_COUNT", "4 x INT on ranks 0, 1; 3 x INT on rank 2"),
    (lambda c: c.Bcast(ints(2)), lambda c: c.Bcast(array("d", [1])), "ERR_TYPE", "INT on ranks 0, 1; DOUBLE on rank 2"),
    (lambda c: c.Bcast(ints(2)), lambda c: c.Bcast(ints(0)), "ERR_COUNT", "nothing on rank 2"),
    (lambda c: c.Barrier(), lambda c: c.Bcast(ints(1)), "ERR_NOT_SAME", "Barrier on ranks 0, 1; Bcast on rank 2"),
    (lambda c: c.Barrier(), lambda c: c.Ibarrier(), "ERR_NOT_SAME", "Barrier on ranks 0, 1; Ibarrier on rank 2"),
    (
        lambda c: c.Allreduce(ints(1), ints(1), MPI.SUM),
        lambda c: c.Allreduce(ints(1), ints(1), MPI.MAX),
        "ERR_OP",
        "SUM on ranks 0, 1; MAX on rank 2",
    ),
    (lambda c: c.Allgather(ints(1), ints(3)), lambda c: c.Allgather(ints(2), ints(6)), "ERR_COUNT", "2 x INT on rank 2"),
    (lambda c: c.bcast(1, 0), lambda c: c.bcast(1, 2), "ERR_ROOT", "root 2 on rank 2"),
    (lambda c: c.gather(1), lambda c: c.allgather(1), "ERR_NOT_SAME", "gather on ranks 0, 1; allgather on rank 2"),
]


@pytest.mark.ompy(3, mca=CHECK)
def test_ranks_that_differ_are_named_everywhere(comm):
    for common, other, error_class, words in DIFFERENT:
        with pytest.raises(MPI.Exception, match=words) as caught:
            one_differs(comm, common, other)(comm)
        assert caught.value.Get_error_class() == getattr(MPI, error_class)
    assert comm.allreduce(1) == 3


@pytest.mark.ompy(3, mca=CHECK)
def test_what_may_differ_passes(comm):
    pair = MPI.INT.Create_contiguous(2).Commit()
    comm.Bcast([ints(4), 2, pair] if comm.rank == 0 else ints(4))
    block = ints(3)
    comm.Gather(MPI.IN_PLACE if comm.rank == 0 else ints(1), block if comm.rank == 0 else None)
    comm.Allgatherv(ints(comm.rank), [ints(3), [0, 1, 2]])
    comm.Reduce(ints(2), ints(2) if comm.rank == 1 else None, root=1)
    assert comm.scan(1) == comm.rank + 1
    pair.Free()


@pytest.mark.ompy(3, mca=CHECK)
def test_roots_between_groups_must_fit(comm):
    part = comm.Split(int(comm.rank > 0))
    inter = part.Create_intercomm(0, comm, 1 if comm.rank == 0 else 0)
    root = MPI.ROOT if comm.rank == 0 else 0
    assert inter.bcast("it" if comm.rank == 0 else None, root) == (None if comm.rank == 0 else "it")
    with pytest.raises(MPI.Exception, match="the roots don't fit"):
        inter.bcast(None, 0)
    inter.Free()
    part.Free()
