"""An object that can't be pickled, unpickled or combined is an error on every rank that would have had it, and nobody waits."""

from __future__ import annotations

import contextlib
import resource

import numpy
import pytest


class Unpicklable:
    def __reduce__(self):
        raise ZeroDivisionError("not this one")


class Poison:
    """Is pickled, and can't be unpickled."""

    def __reduce__(self):
        return (int, ("poison",))


def fail_not(left, right):
    return left


def fail(left, right):
    raise ZeroDivisionError("not this one")


# A call: its method, its arguments (from this rank, its object, and whether it is the culprit), who is told of a culprit.
CALLS = {
    "allgather": ("allgather", lambda rank, obj, bad: (obj,), lambda rank, culprit: True),
    "alltoall": ("alltoall", lambda rank, obj, bad: ([obj] * 3,), lambda rank, culprit: True),
    "alltoall of too few": ("alltoall", lambda rank, obj, bad: ([rank] * (1 if bad else 3),), lambda rank, culprit: True),
    "gather": ("gather", lambda rank, obj, bad: (obj, 1), lambda rank, culprit: rank in (1, culprit)),
    "bcast": ("bcast", lambda rank, obj, bad: (obj, 1), lambda rank, culprit: culprit == 1),
    "scatter": ("scatter", lambda rank, obj, bad: ([obj] * 3, 1), lambda rank, culprit: culprit == 1),
    "scatter of too few": (
        "scatter",
        lambda rank, obj, bad: ([rank] * (1 if bad else 3), 1),
        lambda rank, culprit: culprit == 1,
    ),
    "reduce": ("reduce", lambda rank, obj, bad: ([obj], fail_not, 1), lambda rank, culprit: rank in (1, culprit)),
    "allreduce": ("allreduce", lambda rank, obj, bad: ([obj], fail_not), lambda rank, culprit: True),
    "scan": ("scan", lambda rank, obj, bad: ([obj], fail_not), lambda rank, culprit: rank >= culprit),
    "exscan": ("exscan", lambda rank, obj, bad: ([obj], fail_not), lambda rank, culprit: rank >= culprit),
}


@pytest.mark.ompy(3)
@pytest.mark.parametrize("case", CALLS)
def test_who_fails_to_pickle_is_told_and_so_are_those_who_wait_and_the_next_call_is_itself(case):
    from ompy import MPI

    comm = MPI.COMM_WORLD
    name, arguments, is_told = CALLS[case]
    for culprit in range(3):
        bad = comm.rank == culprit
        try:
            getattr(comm, name)(*arguments(comm.rank, Unpicklable() if bad else comm.rank, bad))
            raised = None
        except (MPI.Exception, ZeroDivisionError, ValueError) as error:
            raised = error
        assert (raised is not None) == is_told(comm.rank, culprit), (culprit, raised)
        if raised is not None and not bad:
            assert f"rank {culprit} could not " in str(raised)
        # Nothing of that call is left for the next ones.
        assert comm.allgather(("next", comm.rank)) == [("next", rank) for rank in range(3)]
        assert comm.alltoall([(comm.rank, rank) for rank in range(3)]) == [(rank, comm.rank) for rank in range(3)]
        assert comm.bcast(comm.rank, 2) == 2


# A call, what it is given, and what that is an error of.
GIVEN = {
    "too many": ("neighbor_alltoall", lambda: [1, 2, 3], ValueError),
    "no sequence": ("neighbor_alltoall", lambda: 5, TypeError),
    "unpicklable ones": ("neighbor_alltoall", lambda: [Unpicklable()] * 2, (ZeroDivisionError, ValueError)),
    "an unpicklable one": ("neighbor_allgather", Unpicklable, ZeroDivisionError),
}


@pytest.mark.ompy(1, 2)
@pytest.mark.parametrize("kind", ["no neighbours", "edges"])
@pytest.mark.parametrize("case", GIVEN)
def test_who_has_no_neighbours_is_told_what_is_wrong_with_its_objects(kind, case):
    from ompy import MPI

    name, given, error = GIVEN[case]
    count = 2 if kind == "edges" else 0
    comm = MPI.COMM_SELF.Create_cart([1]) if count else MPI.COMM_WORLD.Create_dist_graph_adjacent([], [])
    with pytest.raises(error):
        getattr(comm, name)(given())
    assert comm.neighbor_alltoall([1] * count) == [None] * count
    comm.Free()


@pytest.mark.ompy(3)
@pytest.mark.parametrize("name", ["allgather", "allreduce", "gather", "bcast"])
def test_who_fails_to_unpickle_is_told_and_the_next_call_is_itself(name):
    from ompy import MPI

    comm = MPI.COMM_WORLD
    obj = [Poison()] if comm.rank == 0 else [0]
    try:
        getattr(comm, name)(obj)
        raised = False
    except (MPI.Exception, ValueError):
        raised = True
    assert raised == (name != "gather" or comm.rank == 0)
    assert comm.allgather(comm.rank) == [0, 1, 2]
    assert comm.allreduce(comm.rank) == 3


@pytest.mark.ompy(2, 3, 5)
@pytest.mark.parametrize("name", ["reduce", "allreduce", "scan", "exscan"])
def test_a_function_that_raises_on_one_rank_leaves_nobody_waiting(name):
    from ompy import MPI

    comm = MPI.COMM_WORLD
    with contextlib.suppress(MPI.Exception, ZeroDivisionError):
        getattr(comm, name)(comm.rank, fail if comm.rank == 0 else lambda left, right: left)
    assert comm.allreduce(1) == comm.size


@pytest.mark.ompy(2)
def test_an_array_is_sent_as_it_was_when_isend_was_called():
    import numpy

    from ompy import MPI

    comm = MPI.COMM_WORLD
    for begin in (comm.isend, comm.issend):
        if comm.rank == 0:
            data = numpy.ones(1 << 20)
            request = begin(data, 1)
            data[:] = 2
            comm.Barrier()
            request.wait()
        else:
            comm.Barrier()
            assert numpy.unique(comm.recv(source=0)).tolist() == [1]


@pytest.mark.parametrize("where", ["buffers", "size", "pickle"])
@pytest.mark.parametrize("claim", [1, 3, 1 << 10, 1 << 31, 1 << 60, (1 << 63) - 1, 1 << 63, (1 << 64) - 1])
def test_bytes_that_claim_more_than_they_are_raise(where, claim):
    import pickle
    import struct

    from ompy import MPI

    data = pickle.dumps(1)
    numbers = {"buffers": (len(data), claim, 8), "size": (len(data), 1, claim), "pickle": (claim, 1, 8)}[where]
    message = (b"\xffompy\x00\x05\xff" + struct.pack("<3Q", *numbers)).ljust(64, b"\0") + data.ljust(64, b"\0") + bytes(64)
    if (where, claim) in {("buffers", 1), ("buffers", 3), ("size", 1), ("size", 3)}:
        return  # true of the message
    MPI.COMM_SELF.Isend(message, 0)
    with pytest.raises((pickle.UnpicklingError, EOFError)):
        MPI.COMM_SELF.recv()


@contextlib.contextmanager
def little_memory(nbytes: int):
    """So much address space is left to this process."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as status:
        used = int(status.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + nbytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.ompy(3)
@pytest.mark.parametrize("name", ["bcast", "allgather"])
def test_where_one_rank_has_no_memory_for_a_long_object_all_are_told_and_the_next_call_is_itself(name):
    from ompy import MPI

    comm = MPI.COMM_WORLD
    obj = bytes(48 << 20) if comm.rank == 0 else b""
    comm.barrier()
    with little_memory(32 << 20) if comm.rank == 2 else contextlib.nullcontext():
        with pytest.raises(MemoryError if comm.rank == 2 else MPI.Exception) as raised:
            getattr(comm, name)(obj)
        if comm.rank != 2:
            assert raised.value.Get_error_class() == MPI.ERR_NO_MEM
            assert "on rank 2" in str(raised.value)
        assert comm.bcast(comm.rank, 2) == 2
        assert comm.allgather(comm.rank) == [0, 1, 2]


# A call: its arguments (from this rank and a long object), who has little memory, who else is told.
SCARCE = {
    "gather": (lambda rank, obj: (obj, 2), 2, ()),
    "scatter": (lambda rank, obj: ([obj] * 3, 0), 2, ()),
    "alltoall": (lambda rank, obj: ([obj if rank == 0 else b""] * 3,), 2, ()),
    "reduce": (lambda rank, obj: (obj, fail_not, 1), 0, (1,)),
    "allreduce": (lambda rank, obj: (obj, fail_not), 0, (1, 2)),
    "scan": (lambda rank, obj: (obj if rank == 0 else b"", fail_not), 1, ()),
}


@pytest.mark.ompy(3)
@pytest.mark.parametrize("name", SCARCE)
def test_who_has_no_memory_for_an_object_takes_part_and_the_next_call_is_itself(name):
    from ompy import MPI

    comm = MPI.COMM_WORLD
    arguments, culprit, told = SCARCE[name]
    obj = b"" if comm.rank == culprit else bytes(48 << 20)
    comm.barrier()
    with little_memory(32 << 20) if comm.rank == culprit else contextlib.nullcontext():
        try:
            getattr(comm, name)(*arguments(comm.rank, obj))
            raised = None
        except (MemoryError, MPI.Exception) as error:
            raised = error
        assert isinstance(raised, MemoryError) == (comm.rank == culprit), raised
        assert isinstance(raised, MPI.Exception) == (comm.rank in told), raised
        if comm.rank in told:
            assert raised.Get_error_class() == MPI.ERR_NO_MEM
            assert f"rank {culprit} could not receive an object" in str(raised)
        assert comm.bcast(comm.rank, 2) == 2
        assert comm.allgather(comm.rank) == [0, 1, 2]
        assert comm.alltoall([comm.rank] * 3) == [0, 1, 2]


@pytest.mark.ompy(2)
def test_a_long_object_needs_memory_for_itself_and_no_more():
    from ompy import MPI

    comm = MPI.COMM_WORLD
    comm.barrier()
    if comm.rank == 0:
        comm.send(numpy.zeros(70 << 20, "u1"), 1)
    else:
        with little_memory(96 << 20):
            assert len(comm.recv(source=0)) == 70 << 20
