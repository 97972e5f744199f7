"""Collective methods: what they take for buffers, roots and operations, in all three forms."""

from array import array

import pytest

from ompy import MPI


def ints(*values):
    return array("i", values)


@pytest.mark.ompy(1, 3)
def test_in_place_leaves_the_own_block_where_it_is(comm):
    blocks = ints(*[-1] * comm.size)
    blocks[comm.rank] = comm.rank
    comm.Allgather(MPI.IN_PLACE, blocks)
    assert list(blocks) == list(range(comm.size))
    if comm.rank == 0:
        comm.Gather(MPI.IN_PLACE, ints(0, *[-1] * (comm.size - 1)))
    else:
        comm.Gather(ints(comm.rank), None)
    values = ints(comm.rank, 1)
    comm.Allreduce(MPI.IN_PLACE, values)
    assert list(values) == [sum(range(comm.size)), comm.size]
    if comm.rank == 0:
        comm.Scatter(ints(*range(comm.size)), MPI.IN_PLACE)
    else:
        mine = ints(-1)
        comm.Scatter(None, mine)
        assert mine[0] == comm.rank


@pytest.mark.ompy(3)
def test_counts_without_displacements_are_one_after_the_other(comm):
    received = ints(*[-1] * 6)
    comm.Allgatherv(ints(*[comm.rank] * (comm.rank + 1)), [received, [1, 2, 3]])
    assert list(received) == [0, 1, 1, 2, 2, 2]
    apart = ints(*[-1] * 9)
    comm.Allgatherv(ints(*[comm.rank] * (comm.rank + 1)), [apart, (1, 2, 3), (0, 3, 6), MPI.INT])
    assert list(apart) == [0, -1, -1, 1, 1, -1, 2, 2, 2]


@pytest.mark.ompy(3)
def test_vector_buffers_without_counts_are_shared_out_evenly(comm):
    received = ints(-1, -1)
    comm.Scatterv([ints(*range(6)), MPI.INT] if comm.rank == 1 else None, received, root=1)
    assert list(received) == [2 * comm.rank, 2 * comm.rank + 1]


@pytest.mark.ompy(2)
def test_each_block_may_have_its_own_type(comm):
    sent = array("d", [comm.rank + 0.5, comm.rank + 0.25])
    received = array("d", [0, 0])
    types = [MPI.DOUBLE, MPI.DOUBLE]
    comm.Alltoallw([sent, ([1, 1], [0, 8]), types], [received, ([1, 1], [8, 0]), types])
    assert list(received) == [1.5 + 0 * comm.rank, 0.5] if comm.rank == 0 else [1.25, 0.25]


@pytest.mark.ompy(1, 3)
def test_reduce_scatter_asks_for_counts_that_were_not_given(comm):
    mine = ints(*[-1] * (comm.rank + 1))
    total = comm.size * (comm.size + 1) // 2
    comm.Reduce_scatter(ints(*range(total)), mine)
    first = comm.rank * (comm.rank + 1) // 2
    assert list(mine) == [comm.size * (first + index) for index in range(comm.rank + 1)]


@pytest.mark.ompy(2)
def test_one_call_in_three_forms(comm):
    out = ints(0)
    comm.Scan(ints(1), out)
    assert out[0] == comm.rank + 1
    request = comm.Iscan(ints(2), out)
    request.Wait()
    assert out[0] == 2 * (comm.rank + 1)
    source = ints(3)
    persistent = comm.Scan_init(source, out)
    for factor in (3, 5):
        source[0] = factor
        persistent.Start()
        persistent.Wait()
        assert out[0] == factor * (comm.rank + 1)
    persistent.Free()


@pytest.mark.ompy(2)
def test_a_buffer_lives_as_long_as_its_request(comm):
    received = bytearray(8)
    request = comm.Iallgather(bytes([comm.rank] * 4), received)
    with pytest.raises(BufferError):
        received.append(0)
    request.Wait()
    assert bytes(received) == bytes([0] * 4 + [1] * 4)
    received.append(0)


REFUSED = [
    (lambda comm: comm.Bcast(ints(1), root=2), MPI.Exception, "root: a rank from 0 to 1 expected, got 2"),
    (lambda comm: comm.Reduce(ints(1), ints(1), root=-1), MPI.Exception, "root: .* got -1"),
    (lambda comm: comm.Ibcast(ints(1), root=9), MPI.Exception, "root: .* got 9"),
    (lambda comm: comm.Bcast_init(ints(1), root=9), MPI.Exception, "root: .* got 9"),
    (lambda comm: comm.Allreduce(ints(1), ints(1), op=MPI.OP_NULL), MPI.Exception, "op: .* OP_NULL"),
    (lambda comm: comm.Allreduce(array("d", [1]), array("d", [1]), op=MPI.BAND), MPI.Exception, "not defined"),
    (lambda comm: comm.Allreduce(ints(1), array("d", [1])), ValueError, "mismatch in send and receive MPI datatypes"),
    (lambda comm: comm.Allreduce(ints(1, 2), ints(1)), ValueError, "mismatch in send count 2 and receive count 1"),
    (lambda comm: comm.Allreduce(ints(1), b"1234"), BufferError, ""),
    (lambda comm: comm.Reduce_scatter(ints(1, 2, 3), ints(0), [1, 1]), ValueError, r"sum\(counts\) 2"),
    (lambda comm: comm.Allgather(ints(1), ints(1, 2, 3)), ValueError, ""),
    (lambda comm: comm.alltoall([1]), ValueError, "expecting 2 items, got 1"),
    (lambda comm: comm.bcast(1, root=2), MPI.Exception, "root"),
    (lambda comm: comm.gather(1, root=2), MPI.Exception, "root"),
    (lambda comm: MPI.COMM_NULL.Barrier(), MPI.Exception, "not COMM_NULL"),
]


@pytest.mark.ompy(2)
def test_wrong_arguments_are_named_and_harm_nothing(comm):
    for call, kind, words in REFUSED:
        with pytest.raises(kind, match=words):
            call(comm)
        assert comm.allreduce(1) == comm.size


@pytest.mark.ompy(1, 2, 5)
def test_objects_arrive_as_copies_in_rank_order(comm):
    given = {"rank": comm.rank, "data": list(range(comm.rank * 300))}
    everyones = comm.allgather(given)
    assert [it["rank"] for it in everyones] == list(range(comm.size))
    assert everyones[comm.rank] == given
    assert everyones[comm.rank] is not given
    root = comm.size - 1
    sent = comm.bcast(given if comm.rank == root else None, root)
    assert sent == everyones[root]
    assert sent is not given
    assert comm.scatter(everyones if comm.rank == root else None, root) == given
    gathered = comm.gather(given, root)
    assert gathered == (everyones if comm.rank == root else None)
    assert comm.alltoall([(comm.rank, peer) for peer in range(comm.size)]) == [(peer, comm.rank) for peer in range(comm.size)]


@pytest.mark.ompy(1, 2, 3, 5)
def test_objects_are_combined_from_left_to_right(comm):
    def join(left, right):
        return f"({left}{right})"

    letters = "abcde"[: comm.size]
    flat = letters
    result = comm.allreduce(letters[comm.rank], op=join)
    assert result.replace("(", "").replace(")", "") == flat
    assert comm.allgather(result) == [result] * comm.size
    assert comm.allreduce(letters[comm.rank], op=join) == result
    prefix = comm.scan(letters[comm.rank], op=lambda left, right: left + right)
    assert prefix == flat[: comm.rank + 1]
    before = comm.exscan(letters[comm.rank], op=lambda left, right: left + right)
    assert before == (flat[: comm.rank] if comm.rank else None)


@pytest.mark.ompy(2, 4)
def test_arrays_inside_objects_arrive_whole(comm):
    numpy = pytest.importorskip("numpy")
    given = [numpy.full(50_000, comm.rank), "text"]
    arrays = comm.allgather(given)
    assert all((it[0] == rank).all() for rank, it in enumerate(arrays))
    total = comm.reduce(given[0], root=1)
    if comm.rank == 1:
        assert (total == sum(range(comm.size))).all()
    got = comm.bcast(given if comm.rank == 0 else None)
    assert not got[0].any()
    got[0][0] = 1
