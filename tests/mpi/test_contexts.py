"""Contexts of communicators: the same in every member, of no two communicators of a process, whoever handed them out."""

from __future__ import annotations

import random
from array import array

import pytest

from ompy import MPI
from ompy.mpi.comm import core_of

MADE = 400


def make(how, parent, dice):
    """A communicator from `parent`, of all of its ranks or of a part."""
    if how == "dup":
        return parent.Dup()
    if how == "idup":
        made, request = parent.Idup()
        request.Wait()
        return made
    if how == "split":
        modulus = dice.randint(1, 3)
        return parent.Split(parent.rank % modulus, -parent.rank)
    if how == "group":
        return parent.Create_group(parent.Get_group())
    if how == "graph":
        return parent.Create_graph(list(range(1, parent.size + 1)), list(range(parent.size)))
    grid = parent.Create_cart(MPI.Compute_dims(parent.size, 2), [dice.random() < 0.5, False])
    return grid if how == "cart" else grid.Sub([how == "rows", how == "columns"])


@pytest.mark.ompy(1, 2, 4)
def test_every_communicator_has_a_context_of_its_own(comm):
    seed = comm.bcast(random.getrandbits(32))
    if comm.rank == 0:
        print(f"seed {seed}")
    dice = random.Random(seed)
    world = comm.Get_group()
    seen = {core_of(comm).context: tuple(range(comm.size))}
    parents = [comm]
    for _ in range(MADE):
        how = dice.choice(["dup", "idup", "split", "group", "graph", "cart", "rows", "columns"])
        parent = dice.choice(parents)
        made = make(how, parent, dice)
        context = core_of(made).context
        assert context not in seen, f"seed {seed}: {how} gave {context:#x} again"
        seen[context] = tuple(made.Get_group().Translate_ranks(None, world))
        if made.size == comm.size and how in ("dup", "idup", "group", "cart"):
            parents.append(made)
        elif dice.random() < 0.5:
            made.Free()
    of_all = comm.allgather(seen)
    members = {}
    for one in of_all:
        for context, group in one.items():
            assert members.setdefault(context, group) == group, f"seed {seed}: {context:#x} has other members elsewhere"
    for rank, one in enumerate(of_all):
        assert set(one) == {context for context, group in members.items() if rank in group}


@pytest.mark.ompy(4)
def test_a_subgrid_of_many_parts_and_its_duplicates_are_apart(comm):
    for _ in range(3):
        grid = comm.Create_cart([4], [True])
        parts = [grid.Sub([stays]) for _ in range(6) for stays in (True, False)]
        assert [part.allreduce(comm.rank) for part in parts] == [6, comm.rank] * 6
        twins = [part.Dup() for part in parts]
        assert [twin.allreduce(1) for twin in twins] == [4, 1] * 6
        for one in (*parts, *twins, grid):
            one.Free()


@pytest.mark.ompy(2)
def test_collectives_serve_again_after_a_communicator_is_freed(comm):
    for turn in range(20):
        other = comm.Dup() if turn % 3 else comm.Split(0, -comm.rank)
        assert other.allreduce(other.rank + turn) == 2 * turn + 1
        other.Barrier()
        other.Free()


@pytest.mark.ompy(2)
def test_agreements_under_tags_of_the_program_never_meet_persistent_collectives(comm):
    """Every tag that might be the same number below, while messages of persistent collectives have come."""
    peers = comm.Dup()
    half = comm.Split(comm.rank)
    data = array("q", range(3000))
    found = [array("q", bytes(24_000)) for _ in range(40)]
    collectives = [peers.Allreduce_init(data, one) for one in found]
    if comm.rank:
        MPI.Prequest.Startall(collectives)
    for tag in range(100):
        inter = half.Create_intercomm(0, peers, 1 - peers.rank, tag)
        assert inter.Get_remote_size() == 1
        inter.Free()
    if not comm.rank:
        MPI.Prequest.Startall(collectives)
    for collective, one in zip(collectives, found, strict=True):
        collective.Wait()
        assert one[-1] == 2 * data[-1]
        collective.Free()
    half.Free()
    peers.Free()
