"""Topologies: grids, graphs, neighbours, and what travels between them."""

from array import array

import pytest

from ompy import MPI


@pytest.mark.parametrize(
    ("nodes", "dims", "expected"),
    [
        (6, 2, [3, 2]),
        (16, 4, [2, 2, 2, 2]),
        (12, [0, 4], [3, 4]),
        (7, 3, [7, 1, 1]),
        (24, 3, [4, 3, 2]),
        (1, 2, [1, 1]),
        (36, [0, 3, 0], [4, 3, 3]),
        (1000003, 2, [1000003, 1]),
    ],
)
def test_dimensions_are_as_equal_as_can_be(nodes, dims, expected):
    assert MPI.Compute_dims(nodes, dims) == expected


@pytest.mark.parametrize(("nodes", "dims"), [(6, [4, 0]), (5, [2, 2]), (0, 2), (4, [-1, 0])])
def test_impossible_dimensions_are_refused(nodes, dims):
    with pytest.raises(MPI.Exception) as caught:
        MPI.Compute_dims(nodes, dims)
    assert caught.value.Get_error_class() == MPI.ERR_DIMS


@pytest.mark.ompy(5)
def test_a_grid_leaves_the_last_ranks_out(comm):
    grid = comm.Create_cart([2, 2], [True, False])
    if comm.rank == 4:
        assert grid == MPI.COMM_NULL
        return
    assert type(grid) is MPI.Cartcomm
    assert grid.coords == [comm.rank // 2, comm.rank % 2]
    assert grid.Get_cart_rank([grid.coords[0] + 2, grid.coords[1]]) == grid.rank
    assert grid.Shift(0, 1) == ((grid.rank + 2) % 4,) * 2
    edge = (MPI.PROC_NULL, grid.rank + 1) if grid.coords[1] == 0 else (grid.rank - 1, MPI.PROC_NULL)
    assert grid.Shift(1, 1) == edge
    with pytest.raises(MPI.Exception):
        grid.Get_cart_rank([0, 2])
    grid.Free()


@pytest.mark.ompy(1, 2, 3)
def test_blocks_keep_their_side_in_a_small_ring(comm):
    ring = comm.Create_cart([comm.size], [True])
    down, up = ring.Shift(0, 1)
    assert ring.neighbor_alltoall([("down", ring.rank), ("up", ring.rank)]) == [("up", down), ("down", up)]
    sent, received = array("i", [2 * ring.rank, 2 * ring.rank + 1]), array("i", [-1, -1])
    ring.Neighbor_alltoall(sent, received)
    assert list(received) == [2 * down + 1, 2 * up]
    ring.Free()


@pytest.mark.ompy(2)
def test_nothing_arrives_over_an_edge(comm):
    line = comm.Create_cart([2])
    assert line.neighbor_allgather(line.rank) == ([None, 1] if line.rank == 0 else [0, None])
    received = array("i", [-1, -1])
    line.Neighbor_allgather(array("i", [line.rank]), received)
    assert list(received) == ([-1, 1] if line.rank == 0 else [0, -1])
    line.Free()


@pytest.mark.ompy(4)
def test_a_subgrid_keeps_the_dimensions_that_stay(comm):
    grid = comm.Create_cart([2, 2], [False, True])
    row = grid.Sub([False, True])
    assert row.topo == ([2], [True], [grid.coords[1]])
    assert row.allgather(grid.rank) == ([0, 1] if grid.rank < 2 else [2, 3])
    row.Free()
    grid.Free()


@pytest.mark.ompy(3)
def test_a_duplicate_keeps_the_topology(comm):
    grid = comm.Create_cart([3], [True])
    other = grid.Dup()
    assert type(other) is MPI.Cartcomm
    assert other.topo == grid.topo
    assert other.topology == MPI.CART
    other.Free()
    grid.Free()


@pytest.mark.ompy(4)
def test_a_graph_knows_all_neighbours(comm):
    star = comm.Create_graph([3, 4, 5, 6], [1, 2, 3, 0, 0, 0])
    assert star.Get_neighbors(0) == [1, 2, 3]
    assert star.neighbors == ([1, 2, 3] if star.rank == 0 else [0])
    assert star.neighbor_allgather(star.rank) == star.neighbors
    star.Free()


@pytest.mark.ompy(3)
def test_edges_of_a_distributed_graph_may_come_from_anywhere(comm):
    if comm.rank == 0:
        edges = ([0, 1, 2], [1, 1, 1], [1, 2, 0], [10, 20, 30])
    else:
        edges = ([], [], [], [])
    graph = comm.Create_dist_graph(*edges)
    left, right = (comm.rank - 1) % 3, (comm.rank + 1) % 3
    assert graph.Get_dist_neighbors() == ([left], [right], ([10 * (left + 1)], [10 * (comm.rank + 1)]))
    assert graph.neighbor_allgather(comm.rank) == [left]
    graph.Free()


REFUSED = [
    (lambda comm: comm.Create_cart([3]), "more than the communicator's 2", MPI.Exception),
    (lambda comm: comm.Create_cart([0]), "positive", MPI.Exception),
    (lambda comm: comm.Create_cart([2], [True, True]), "periods: 1 expected", ValueError),
    (lambda comm: comm.Create_graph([1, 2], [1, 5]), "edges: nodes 0 to 1", MPI.Exception),
    (lambda comm: comm.Create_dist_graph_adjacent([9], []), "sources: ranks from 0 to 1", MPI.Exception),
    (lambda comm: comm.Create_dist_graph([0, 0], [1], [0]), "degrees: 2 expected", ValueError),
    (lambda comm: comm.Create_dist_graph([0], [-1], []), "degrees: numbers that aren't negative", MPI.Exception),
    (lambda comm: comm.Create_cart([1.9]), "integer", TypeError),
    (lambda comm: comm.Create_cart("1"), "integer", TypeError),
    (lambda comm: MPI.Compute_dims(6, [2.7, 0]), "integer", TypeError),
    (lambda comm: comm.Create_dist_graph_adjacent([0], [1], [1, 2], [3]), "sourceweights: 1 expected", ValueError),
]


@pytest.mark.ompy(2)
def test_wrong_topologies_are_named(comm):
    for call, words, kind in REFUSED:
        with pytest.raises(kind, match=words):
            call(comm)


@pytest.mark.ompy(3)
def test_a_distributed_graph_is_made_without_the_programs_pickle(comm):
    def refuse(*_):
        raise TypeError("this program sends bytes only")

    before = MPI.pickle.__init__
    MPI.pickle.__init__(refuse, refuse)
    try:
        ring = comm.Create_dist_graph([comm.rank], [1], [(comm.rank + 1) % 3], [comm.rank + 5])
    finally:
        before()
    assert ring.Get_dist_neighbors() == (
        [(comm.rank - 1) % 3],
        [(comm.rank + 1) % 3],
        ([(comm.rank - 1) % 3 + 5], [comm.rank + 5]),
    )


@pytest.mark.ompy(3)
@pytest.mark.parametrize("bad", [7, None])
def test_a_bad_graph_of_one_rank_is_an_error_on_all_and_harms_nothing(comm, bad):
    ends = [bad] if comm.rank == 1 else [0]
    with pytest.raises((MPI.Exception, TypeError)) as caught:
        comm.Create_dist_graph([comm.rank], [1], ends)
    assert comm.rank == 1 or "on rank 1" in str(caught.value)
    assert comm.allgather(comm.rank) == [0, 1, 2]


@pytest.mark.parametrize("degree", [0, 2, 2**31, 2**62])
def test_degrees_that_do_not_make_the_edges_given_are_refused_at_once(degree):
    with pytest.raises(ValueError, match=f"{degree} expected"):
        MPI.COMM_SELF.Create_dist_graph([0], [degree], [0])
