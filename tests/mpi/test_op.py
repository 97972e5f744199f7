"""Operations under mpi4py's names: on objects, on buffers, of the program's own."""

import pickle

import numpy as np
import pytest

from ompy import MPI

NAMES = ["MAX", "MIN", "SUM", "PROD", "LAND", "BAND", "LOR", "BOR", "LXOR", "BXOR", "MAXLOC", "MINLOC", "REPLACE", "NO_OP"]


def combine(x, y, datatype):
    """Associative, not commutative: of objects `x + y`; of buffers the product of 2 x 2 matrices."""
    if datatype is None:
        return x + y
    left, right = np.frombuffer(x, "i").reshape(2, 2), np.frombuffer(y, "i").reshape(2, 2)
    right[:] = left @ right
    return None


@pytest.fixture
def ordered():
    operation = MPI.Op.Create(combine)
    yield operation
    operation.free()


@pytest.mark.parametrize(
    ("name", "x", "y", "result"),
    [
        ("MAX", 2, 3, 3),
        ("MIN", 2, 3, 2),
        ("SUM", [1], [2], [1, 2]),
        ("PROD", 2, 3, 6),
        ("LAND", 2, 0, False),
        ("LOR", 0, 2, True),
        ("LXOR", 1, 2, False),
        ("BAND", 6, 3, 2),
        ("BOR", 6, 3, 7),
        ("BXOR", 6, 3, 5),
        ("MAXLOC", (1, 5), (1, 2), (1, 2)),
        ("MINLOC", ("a", 5), ("b", 2), ("a", 5)),
        ("REPLACE", 1, 2, 2),
        ("NO_OP", 1, 2, 1),
    ],
)
def test_objects_are_combined(name, x, y, result):
    operation = getattr(MPI, name)
    assert operation(x, y) == result
    assert MPI.Op(operation)(x, y) == result


def test_predefined_operations_are_themselves():
    for name in NAMES:
        operation = getattr(MPI, name)
        assert operation.is_predefined
        assert pickle.loads(pickle.dumps(operation)) is operation
        with pytest.raises(MPI.Exception, match=f"predefined {name} can't be freed"):
            operation.Free()
    assert all(getattr(MPI, name).is_commutative for name in NAMES[:12])
    assert not MPI.REPLACE.is_commutative


def test_null_combines_nothing():
    assert not MPI.OP_NULL
    assert MPI.Op() == MPI.OP_NULL
    with pytest.raises(ValueError, match="OP_NULL"):
        MPI.OP_NULL(1, 2)
    with pytest.raises(MPI.Exception, match="not OP_NULL") as caught:
        MPI.OP_NULL.Is_commutative()
    assert caught.value.Get_error_class() == MPI.ERR_OP


def test_local_reduction():
    left, right = np.arange(4, dtype="d"), np.ones(4)
    MPI.SUM.Reduce_local(left, right)
    assert right.tolist() == [1, 2, 3, 4]
    with pytest.raises(MPI.Exception, match="BAND is not defined on DOUBLE; it takes integers") as caught:
        MPI.BAND.Reduce_local(left, right)
    assert caught.value.Get_error_class() == MPI.ERR_OP
    with pytest.raises(ValueError, match="not 3 and 4"):
        MPI.SUM.Reduce_local(left[:3], right)


def test_the_programs_function_sees_writable_buffers(ordered):
    left, right = np.array([[1, 2], [3, 4]], "i"), np.array([[0, 1], [1, 0]], "i")
    ordered.Reduce_local(left, right)
    assert right.tolist() == [[2, 1], [4, 3]]
    assert not ordered.is_commutative
    assert ordered("a", "b") == "ab"
    copy = pickle.loads(pickle.dumps(ordered))
    assert copy != ordered
    assert copy("a", "b") == "ab"
    copy.Free()


@pytest.mark.ompy(3)
def test_ranks_are_combined_in_their_order(comm, ordered):
    matrices = [np.array([[rank, 1], [1, 0]], "i") for rank in range(1, 4)]
    result = np.zeros((2, 2), "i")
    comm.Allreduce(matrices[comm.rank], result, ordered)
    assert result.tolist() == (matrices[0] @ matrices[1] @ matrices[2]).tolist()
    assert comm.allreduce(str(comm.rank), ordered) == "012"


def test_what_the_function_raises_arrives():
    def broken(x, y, datatype):
        raise LookupError("no such thing")

    operation = MPI.Op.Create(broken)
    with pytest.raises(LookupError, match="no such thing"):
        operation.Reduce_local(np.zeros(1), np.zeros(1))
    operation.Free()
    with pytest.raises(TypeError, match="callable expected"):
        MPI.Op.Create(3)


@pytest.mark.ompy(2)
@pytest.mark.parametrize("begin", ["Iallreduce", "Allreduce_init"])
def test_what_the_function_raises_in_a_request_arrives_when_all_are_settled(comm, begin):
    def broken(x, y, datatype):
        raise LookupError("no such thing")

    operation, mine = MPI.Op.Create(broken), np.ones(3)

    def test(requests):
        while not requests[0].Test():
            pass

    for end in (MPI.Request.Waitall, lambda requests: requests[0].Wait(), test):
        requests = [getattr(comm, begin)(mine, np.zeros(3), operation), getattr(comm, begin)(mine, total := np.zeros(3))]
        if begin.endswith("init"):
            MPI.Prequest.Startall(requests)
        with pytest.raises(LookupError, match="no such thing"):
            end(requests)
        MPI.Request.Waitall(requests)
        assert (total == 2).all()
    operation.Free()


def test_operations_for_windows_alone_are_refused_in_reductions():
    for operation in (MPI.REPLACE, MPI.NO_OP):
        with pytest.raises(MPI.Exception, match="for accumulates to windows alone") as caught:
            MPI.COMM_SELF.Allreduce(np.ones(1), np.zeros(1), operation)
        assert caught.value.Get_error_class() == MPI.ERR_OP


def test_an_operation_from_an_integer_works_but_is_not_pickled(ordered):
    twin = MPI.Op.fromhandle(ordered.handle)
    assert twin == ordered
    assert twin("a", "b") == "ab"
    with pytest.raises(ValueError, match="integer handle"):
        pickle.dumps(twin)


def test_operations_are_limited_in_number_while_they_live():
    handles = [MPI.Op.Create(combine) for _ in range(31)]
    last = MPI.Op.Create(combine)
    with pytest.raises(RuntimeError, match="32 operations"):
        MPI.Op.Create(combine)
    MPI.Op(last).Free()
    last.Free()
    del handles[0]
    more = [MPI.Op.Create(combine) for _ in range(2)]
    with pytest.raises(RuntimeError, match="32 operations"):
        MPI.Op.Create(combine)
    for operation in (*handles, *more):
        operation.Free()


FUNCTIONS = ["Allreduce", "Reduce", "Scan", "Exscan", "Reduce_scatter_block", "Iallreduce", "Ireduce", "Iscan"]


@pytest.mark.ompy(2, 3, 4)
@pytest.mark.parametrize("count", [1, 60_000])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_the_function_raises_on_one_rank_keeps_no_other_waiting(comm, function, count):
    """Nobody learns of it but the ranks where it raised; the next collective is right everywhere."""

    def fail_here(left, right, datatype):
        raise LookupError("no such thing")

    def leave(left, right, datatype):
        pass

    op = MPI.Op.Create(fail_here if comm.rank == 1 else leave)
    blocks = comm.size if "scatter" in function else 1
    try:
        request = getattr(comm, function)(np.zeros(blocks * count), np.zeros(count), op=op)
        if request is not None:
            request.Wait()
    except LookupError:
        assert comm.rank == 1
    assert comm.allreduce(1) == comm.size
    op.Free()
