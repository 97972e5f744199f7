"""Groups: set operations, order, translation of ranks, refusals."""

import pytest

from ompy import MPI


@pytest.mark.ompy(1, 4)
def test_subsets_keep_the_order_asked_for(comm):
    group = comm.Get_group()
    backwards = list(range(group.size))[::-1]
    reverse = group.Incl(backwards)
    assert reverse.Translate_ranks(range(group.size), group) == backwards
    assert group.Compare(reverse) == (MPI.IDENT if group.size == 1 else MPI.SIMILAR)
    assert reverse.rank == group.size - 1 - group.rank
    assert group.Excl([0]).Translate_ranks(None, group) == list(range(1, group.size))


@pytest.mark.ompy(4)
def test_set_operations_take_the_first_groups_order(comm):
    world = comm.Get_group()
    low, odd = world.Incl([0, 1, 2]), world.Incl([3, 1])
    assert MPI.Group.Union(odd, low).Translate_ranks(None, world) == [3, 1, 0, 2]
    assert MPI.Group.Intersection(low, odd).Translate_ranks(None, world) == [1]
    assert MPI.Group.Difference(low, odd).Translate_ranks(None, world) == [0, 2]
    assert MPI.Group.Difference(low, low) == MPI.GROUP_EMPTY


@pytest.mark.ompy(4)
def test_ranges_run_either_way(comm):
    world = comm.Get_group()
    assert world.Range_incl([(3, 0, -2)]).Translate_ranks(None, world) == [3, 1]
    assert world.Range_excl([(0, 3, 3)]).Translate_ranks(None, world) == [1, 2]
    with pytest.raises(MPI.Exception, match="stride 0"):
        world.Range_incl([(0, 1, 0)])


@pytest.mark.ompy(2)
def test_ranks_outside_are_undefined_and_proc_null_stays(comm):
    group = comm.Get_group()
    assert group.Translate_ranks([0, 1, MPI.PROC_NULL], group.Incl([1])) == [MPI.UNDEFINED, 0, MPI.PROC_NULL]


@pytest.mark.ompy(2)
def test_wrong_ranks_are_named(comm):
    for method, ranks, words in (
        ("Incl", [2], "2 is not in this group of 2"),
        ("Incl", [-1], "-1 is not"),
        ("Excl", [0, 0], "twice"),
        ("Range_incl", [(0, 5, 1)], "2 is not"),
        ("Translate_ranks", [7], "7 is not"),
    ):
        with pytest.raises(MPI.Exception, match=words) as caught:
            getattr(comm.Get_group(), method)(ranks)
        assert caught.value.Get_error_class() == MPI.ERR_RANK


@pytest.mark.ompy(1)
def test_null_and_freed_groups_refuse(comm):
    group = comm.Get_group()
    group.Free()
    assert group == MPI.GROUP_NULL
    assert not group
    for null in (group, MPI.GROUP_NULL):
        with pytest.raises(MPI.Exception) as caught:
            null.Get_size()
        assert caught.value.Get_error_class() == MPI.ERR_GROUP
