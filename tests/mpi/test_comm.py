"""Communicators: new ones from old ones, contexts of their own, names, refusals."""

import pytest

from ompy import MPI


def ring(comm):
    """What arrives from the left when each rank sends its rank to the right."""
    return comm.sendrecv(comm.rank, (comm.rank + 1) % comm.size, source=(comm.rank - 1) % comm.size)


@pytest.mark.ompy(1, 3)
def test_a_duplicate_keeps_messages_apart(comm):
    other = comm.Dup()
    assert comm.Compare(other) == MPI.CONGRUENT
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    requests = [comm.isend("first", right, 5), other.isend("second", right, 5)]
    assert other.recv(source=left, tag=5) == "second"
    assert comm.recv(source=left, tag=5) == "first"
    MPI.Request.Waitall(requests)
    other.Free()
    assert other == MPI.COMM_NULL


@pytest.mark.ompy(2, 4)
def test_a_duplicate_made_while_computing_works(comm):
    other, request = comm.Idup()
    mine = sum(range(100))
    request.Wait()
    assert other.allreduce(mine) == comm.size * mine
    other.Free()


@pytest.mark.ompy(4)
def test_split_sorts_by_key_then_rank(comm):
    part = comm.Split(comm.rank % 2, key=-comm.rank)
    assert part.size == 2
    assert part.rank == (1 if comm.rank < 2 else 0)
    assert part.allgather(comm.rank) == ([2, 0] if comm.rank % 2 == 0 else [3, 1])
    same = comm.Split(0, key=0)
    assert same.rank == comm.rank
    part.Free()
    same.Free()


@pytest.mark.ompy(3)
def test_ranks_without_a_color_get_the_null_communicator(comm):
    part = comm.Split(MPI.UNDEFINED if comm.rank == 1 else 7)
    if comm.rank == 1:
        assert part == MPI.COMM_NULL
    else:
        assert part.allgather(comm.rank) == [0, 2]
        part.Free()


@pytest.mark.ompy(4)
def test_create_takes_disjoint_groups_at_the_same_time(comm):
    world = comm.Get_group()
    low, high = world.Incl([1, 0]), world.Incl([2, 3])
    part = comm.Create(low if comm.rank < 2 else high)
    assert part.allgather(comm.rank) == ([1, 0] if comm.rank < 2 else [2, 3])
    part.Free()


@pytest.mark.ompy(3)
def test_create_group_needs_the_members_alone(comm):
    group = comm.Get_group().Incl([2, 0])
    if comm.rank == 1:
        return
    part = comm.Create_group(group, tag=9)
    assert part.allgather(comm.rank) == [2, 0]
    part.Free()


@pytest.mark.ompy(2)
def test_tags_that_are_far_apart_keep_concurrent_calls_apart(comm):
    tags, made = (1, 1 + 2**28), {}
    # As threads would that are not equally quick: rank 0 tells rank 1 of both before that asks for either.
    for tag in tags if comm.rank == 0 else tags[::-1]:
        made[tag] = comm.Create_group(comm.group, tag)
    for tag in tags:
        assert made[tag].sendrecv(tag, 1 - comm.rank, source=1 - comm.rank) == tag
        made[tag].Free()


@pytest.mark.parametrize("tag", [-1, -5])
def test_a_tag_below_zero_is_refused(tag):
    with pytest.raises(MPI.Exception, match="tag: a number from 0 to") as caught:
        MPI.COMM_SELF.Create_group(MPI.COMM_SELF.group, tag)
    assert caught.value.Get_error_class() == MPI.ERR_TAG


def test_an_empty_group_makes_the_null_communicator():
    world = MPI.COMM_WORLD.group
    assert MPI.Intracomm.Create_from_group(MPI.GROUP_EMPTY, "none") == MPI.COMM_NULL
    assert MPI.Intercomm.Create_from_groups(MPI.GROUP_EMPTY, 0, world, 0, "none") == MPI.COMM_NULL
    assert MPI.Intercomm.Create_from_groups(world, 0, MPI.GROUP_EMPTY, 0, "none") == MPI.COMM_NULL


@pytest.mark.ompy(2)
def test_a_duplicate_has_the_attributes_and_the_error_handler_of_the_time_of_the_call(comm):
    key, first, second = MPI.Comm.Create_keyval(copy_fn=True), *(MPI.Comm.Create_errhandler(print) for _ in range(2))
    parent = comm.Dup()
    parent.Set_attr(key, "old")
    parent.Set_errhandler(first)
    if comm.rank == 1:
        comm.recv(source=0)
    made, request = parent.Idup()
    parent.Set_attr(key, "new")
    parent.Set_errhandler(second)
    if comm.rank == 0:
        comm.send(None, 1)
    request.Wait()
    assert made.Get_attr(key) == "old"
    assert made.Get_errhandler() == first
    for some in (made, parent, first, second):
        some.Free()


@pytest.mark.ompy(3)
def test_create_from_group_needs_no_parent(comm):
    group = comm.Get_group().Incl([1, 2])
    if comm.rank > 0:
        part = MPI.Intracomm.Create_from_group(group, "pair")
        assert ring(part) == 1 - part.rank
        part.Free()


@pytest.mark.ompy(2)
def test_processes_of_a_host_can_share_memory(comm):
    here = comm.Split_type(MPI.COMM_TYPE_SHARED)
    assert here.size == comm.size
    here.Free()


@pytest.mark.ompy(2)
def test_many_communicators_come_and_go(comm):
    for _ in range(200):
        part = comm.Dup()
        assert part.allreduce(1) == comm.size
        part.Free()


@pytest.mark.ompy(1)
def test_handles_are_equal_when_they_stand_for_one_communicator(comm):
    assert MPI.Comm(comm) == comm
    assert MPI.Intracomm(comm) is not comm
    assert MPI.Comm.fromhandle(comm.handle) == comm
    assert type(MPI.Comm.fromhandle(comm.handle)) is MPI.Intracomm


@pytest.mark.ompy(1)
def test_a_subclass_duplicates_into_itself(comm):
    class Mine(MPI.Intracomm):
        pass

    mine = Mine(comm).Dup()
    assert type(mine) is Mine
    mine.Free()


@pytest.mark.ompy(1)
def test_names_stay_with_the_communicator(comm):
    assert comm.name == "MPI_COMM_WORLD"
    assert MPI.COMM_NULL.Get_name() == "MPI_COMM_NULL"
    other = comm.Dup()
    other.name = "mine"
    assert MPI.Comm(other).name == "mine"
    other.Free()


@pytest.mark.ompy(1)
def test_hints_are_kept(comm):
    info = MPI.Info.Create({"mpi_assert_no_any_tag": "true"})
    other = comm.Dup(info)
    assert other.info.Get("mpi_assert_no_any_tag") == "true"
    assert comm.Get_info().Get("mpi_assert_no_any_tag") is None
    other.Free()


REFUSED = [
    (lambda comm: comm.Split(-3), "color: .* got -3", "ERR_ARG"),
    (lambda comm: comm.Split_type(99), "split_type: .* got 99", "ERR_ARG"),
    (lambda comm: comm.Free(), "MPI_COMM_WORLD can't be freed", "ERR_COMM"),
    (lambda comm: MPI.COMM_NULL.Get_rank(), "not COMM_NULL", "ERR_COMM"),
    (lambda comm: MPI.COMM_NULL.Dup(), "not COMM_NULL", "ERR_COMM"),
    (lambda comm: comm.Create(MPI.GROUP_NULL), "not GROUP_NULL", "ERR_GROUP"),
]


@pytest.mark.ompy(2)
def test_wrong_arguments_are_named(comm):
    for call, words, error_class in REFUSED:
        with pytest.raises(MPI.Exception, match=words) as caught:
            call(comm)
        assert caught.value.Get_error_class() == getattr(MPI, error_class)


def test_a_job_that_nobody_spawned_has_no_parent():
    assert MPI.Comm.Get_parent() == MPI.COMM_NULL


@pytest.mark.ompy(3)
def test_who_is_not_in_the_group_of_create_group_gets_none_and_waits_for_nobody(comm):
    first = comm.group.Incl([0, 2])
    if comm.rank == 1:
        assert comm.Create_group(first) == MPI.COMM_NULL
        assert comm.Create_group(MPI.GROUP_EMPTY) == MPI.COMM_NULL
    comm.Barrier()
    if comm.rank != 1:
        assert comm.Create_group(first).allgather(comm.rank) == [0, 2]


@pytest.mark.ompy(2)
def test_disconnect_waits_for_no_handle_of_the_program(comm):
    made, other = comm.Dup(), 1 - comm.rank
    data = bytearray(8)
    requests = [made.Send_init(bytes(8), other), made.Recv_init(data, other), made.Barrier_init()]
    MPI.Prequest.Startall(requests)
    MPI.Request.Waitall(requests)
    made.Disconnect()
    assert made == MPI.COMM_NULL
