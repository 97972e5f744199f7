"""Inter-communicators: two groups, built by their leaders, and collectives between them."""

import numpy as np
import pytest

from ompy import MPI


def halves(comm):
    """The inter-communicator between the lower and the upper half of the ranks, and whether this is the lower one."""
    low = comm.rank < comm.size // 2
    part = comm.Split(0 if low else 1)
    inter = part.Create_intercomm(0, comm, comm.size // 2 if low else 0, tag=3)
    part.Free()
    return inter, low


@pytest.mark.ompy(2, 3, 5)
def test_ranks_are_those_of_the_remote_group(comm):
    inter, low = halves(comm)
    assert inter.is_inter
    assert inter.size + inter.remote_size == comm.size
    half = comm.size // 2
    theirs = inter.allgather(comm.rank)
    assert theirs == (list(range(half, comm.size)) if low else list(range(half)))
    inter.Free()


@pytest.mark.ompy(3)
def test_merge_puts_the_high_group_second(comm):
    inter, low = halves(comm)
    merged = inter.Merge(high=not low)
    assert merged.rank == comm.rank
    swapped = inter.Merge(high=low)
    assert swapped.allgather(comm.rank) == [1, 2, 0]
    for it in (merged, swapped, inter):
        it.Free()


@pytest.mark.ompy(5)
def test_merge_of_equals_is_the_same_everywhere(comm):
    inter, _ = halves(comm)
    merged = inter.Merge()
    assert sorted(merged.allgather(comm.rank)) == list(range(5))
    merged.Free()
    inter.Free()


@pytest.mark.ompy(4)
def test_duplicates_and_parts_talk_between_their_groups(comm):
    inter, low = halves(comm)
    other = inter.Dup()
    assert other.Compare(inter) == MPI.CONGRUENT
    part = inter.Split(inter.rank, 0)
    assert (part.size, part.remote_size) == (1, 1)
    assert part.alltoall([comm.rank]) == [(comm.rank + 2) % 4]
    first = inter.Create(inter.Get_group().Incl([0]))
    if inter.rank == 0:
        assert first.allgather(comm.rank) == [2 if low else 0]
        first.Free()
    else:
        assert first == MPI.COMM_NULL
    for it in (part, other, inter):
        it.Free()


@pytest.mark.ompy(3, 5)
@pytest.mark.parametrize("length", [3, 3000])
def test_rooted_objects_cross_over(comm, length):
    inter, low = halves(comm)
    payload = list(range(length))
    if low:
        root = MPI.ROOT if inter.rank == 0 else MPI.PROC_NULL
        assert inter.bcast(payload if root == MPI.ROOT else None, root) is None
        got = inter.gather(None, root)
        assert got == ([("from", rank) for rank in range(inter.remote_size)] if root == MPI.ROOT else None)
        inter.scatter([payload] * inter.remote_size if root == MPI.ROOT else None, root)
        total = inter.reduce(None, MPI.SUM, root)
        assert total == (sum(range(inter.remote_size)) if root == MPI.ROOT else None)
    else:
        assert inter.bcast(None, 0) == payload
        inter.gather(("from", inter.rank), 0)
        assert inter.scatter(None, 0) == payload
        inter.reduce(inter.rank, MPI.SUM, 0)
    assert inter.allreduce(1) == inter.remote_size
    inter.Barrier()
    inter.Free()


@pytest.mark.ompy(3)
def test_groups_meet_without_a_parent(comm):
    world = comm.Get_group()
    low, high = world.Incl([0]), world.Incl([1, 2])
    mine, theirs = (low, high) if comm.rank == 0 else (high, low)
    inter = MPI.Intercomm.Create_from_groups(mine, 0, theirs, 0, "meeting")
    assert inter.allgather(comm.rank) == ([1, 2] if comm.rank == 0 else [0])
    inter.Free()


@pytest.mark.ompy(2)
def test_handles_of_the_other_kind_are_refused(comm):
    inter, _ = halves(comm)
    with pytest.raises(TypeError):
        MPI.Intercomm(comm)
    with pytest.raises(TypeError):
        MPI.Intracomm(inter)
    inter.Free()


@pytest.mark.ompy(3)
def test_counts_of_a_reduce_scatter_are_those_of_the_local_group(comm):
    inter, _ = halves(comm)
    others = sum(inter.Get_remote_group().Translate_ranks(None, comm.group))
    # Each side sends as many elements as the other: as many as there are ranks on both, a part for each local one.
    sent, got = (np.full(count, comm.rank, "d") for count in (2 * inter.size * inter.remote_size, 2 * inter.remote_size))
    inter.Reduce_scatter(sent, got)
    assert (got == others).all()
    inter.Free()


@pytest.mark.ompy(2, 4, 5)
def test_idup_waits_for_nobody(comm):
    """Each rank begins those of two inter-communicators in an order of its own, and messages go between begin and wait."""
    first, second = halves(comm)[0], halves(comm)[0]
    order = [first, second] if comm.rank % 2 else [second, first]
    begun = [inter.Idup() for inter in order]
    comm.Sendrecv(np.zeros(1), (comm.rank + 1) % comm.size, 0, np.zeros(1), (comm.rank - 1) % comm.size)
    MPI.Request.Waitall([request for _, request in begun])
    for inter, (made, _) in sorted(zip(order, begun, strict=True), key=lambda pair: pair[0] is second):
        assert (made.size, made.remote_size, made.rank) == (inter.size, inter.remote_size, inter.rank)
        assert made.allgather(comm.rank) == inter.allgather(comm.rank)
        assert MPI.Comm.Compare(made, inter) == MPI.CONGRUENT
        made.Free()


@pytest.mark.ompy(4)
def test_many_idups_at_once_are_apart(comm):
    inter, _ = halves(comm)
    begun = [inter.Idup() for _ in range(50)]
    MPI.Request.Waitall([request for _, request in begun])
    received = [np.zeros(1, "i") for _ in begun]
    waits = [made.Irecv(data, inter.rank) for (made, _), data in zip(reversed(begun), reversed(received), strict=True)]
    for number, (made, _) in enumerate(begun):
        made.Send(np.full(1, number, "i"), inter.rank)
    MPI.Request.Waitall(waits)
    assert [data[0] for data in received] == list(range(50))
