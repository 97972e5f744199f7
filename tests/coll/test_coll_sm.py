"""coll/sm: where it serves."""

import pytest
from ompy_coll_sm.component import chunk_for


def barrier_component(comm):
    import ompy

    return next(it.component for it in ompy.explain_collective("barrier", 0) if it.chosen)


@pytest.mark.ompy(2)
def test_shared_memory_serves_ranks_of_one_host(comm):
    assert barrier_component(comm) == "sm"


@pytest.mark.ompy(2, mca={"btl": "self,tcp"})
def test_collectives_go_over_the_only_transports_that_the_parameter_admits(comm):
    assert barrier_component(comm) == "tuned"


@pytest.mark.ompy(2, mca={"btl": "^sm"})
def test_collectives_go_over_the_only_transports_that_the_parameter_leaves(comm):
    assert barrier_component(comm) == "tuned"


@pytest.mark.ompy(2, mca={"btl": "self,tcp", "coll": "sm,tuned,basic"})
def test_shared_memory_serves_where_it_is_named_beside_any_transports(comm):
    assert barrier_component(comm) == "sm"


@pytest.mark.ompy(2, mca={"pml": "cm", "mtl": "portals"})
def test_shared_memory_serves_where_there_are_no_transports_to_choose(comm):
    assert barrier_component(comm) == "sm"


@pytest.mark.parametrize("size", [2, 64, 255, 256, 1000, 65_536])
def test_a_piece_has_room_for_a_part_for_each_rank_and_its_length(size):
    lines = chunk_for(size, 4096) // 64
    assert lines >= -(-8 * size // 64) * 2
