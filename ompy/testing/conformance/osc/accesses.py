"""Put and get: every length, and what lies outside."""

from __future__ import annotations

from array import array

from ompy.testing.conformance.check import Collection
from ompy.testing.conformance.osc.rank import CODE, OscRank, numbers

check = Collection()

# Elements: around what may travel with an order for it, and far beyond.
LENGTHS = (0, 1, 2, 63, 511, 512, 513, 1025, 8191, 20_000)
GUARD = -77


def area(rank: OscRank, origin: int) -> int:
    """Where an origin's part of each target's memory begins; a guard lies before it."""
    return 1 + origin * (max(LENGTHS) + 1)


def whole(rank: OscRank) -> int:
    return area(rank, rank.size)


@check("put", "completion")
def what_is_put_is_there_and_nothing_else(rank: OscRank) -> None:
    """Each origin has an area of its own at every target, between guards."""
    for flavor, opened in rank.everywhere(whole(rank)):
        opened.memory[:] = array(CODE, [GUARD]) * whole(rank)
        rank.meet()
        for turn, length in enumerate(LENGTHS):
            opened.win.Lock_all()
            for target in range(rank.size):
                at = opened.place(target, area(rank, rank.rank))
                opened.win.Put(numbers(1000 * turn + 10 * rank.rank + target, length), target, at)
            opened.win.Unlock_all()
            rank.meet()
            wanted = array(CODE, [GUARD]) * whole(rank)
            for origin in range(rank.size):
                for before in range(turn + 1):
                    first = area(rank, origin)
                    wanted[first : first + LENGTHS[before]] = numbers(1000 * before + 10 * origin + rank.rank, LENGTHS[before])
            rank.compare(opened.memory, wanted, "put", f"{flavor}: {length} elements put by every rank")
            rank.meet()
            rank.alive()


@check("get", "completion")
def what_is_got_is_what_was_there(rank: OscRank) -> None:
    for flavor, opened in rank.everywhere(max(LENGTHS)):
        opened.memory[:] = numbers(10**6 * rank.rank, max(LENGTHS))
        rank.meet()
        for length in LENGTHS:
            memory = [array(CODE, [GUARD]) * (length + 2) for _ in range(rank.size)]
            opened.win.Lock_all()
            start = max(LENGTHS) - length
            for target, got in enumerate(memory):
                opened.win.Get(memoryview(got)[1 : length + 1], target, opened.place(target, start))
            opened.win.Unlock_all()
            for target, got in enumerate(memory):
                wanted = array(CODE, [GUARD]) + numbers(10**6 * target + start, length) + array(CODE, [GUARD])
                rank.compare(got, wanted, "get", f"{flavor}: {length} elements of rank {target} between two guards")
            rank.alive()
        rank.meet()


@check("bounds")
def what_lies_outside_of_the_target_is_refused_by_the_call(rank: OscRank) -> None:
    """In windows whose ranges the origin knows; nothing was moved, and the epoch goes on."""
    MPI, count = rank.MPI, 100
    target = (rank.rank + 1) % rank.size
    data, got = numbers(1, 4), array(CODE, [GUARD]) * 4
    wide = MPI.INT64_T.Create_vector(2, 1, count).Commit()
    outside = ["ERR_RMA_RANGE", "ERR_DISP"]
    cases: list[tuple[str, list[str], tuple[object, ...]]] = [
        ("the last of four elements behind the end", outside, (count - 3,)),
        ("an element behind the end", outside, (count, 4)),
        ("a negative displacement", outside, (-1, 4)),
        ("a displacement beyond any address", outside, ((1 << 62), 4)),
        ("a datatype that reaches behind the end", outside, (1, 2, wide)),
        ("three elements there for four here", ["ERR_ARG"], (0, 3)),
    ]
    for flavor, opened in rank.everywhere(count):
        if flavor == "dynamic":
            continue
        opened.memory[:] = numbers(500, count)
        rank.meet()
        opened.win.Lock_all()
        for words, classes, where in cases:
            for call in ("Put", "Get", "Accumulate"):
                origin = got if call == "Get" else data
                rank.refused("bounds", classes, f"{flavor}: {call}, {words},", getattr(opened.win, call), origin, target, where)
            where = where if len(where) > 1 else (*where, 4)
            rank.refused(
                "bounds", classes, f"{flavor}: Get_accumulate, {words},", opened.win.Get_accumulate, data, got, target, where
            )
        one, other, old = numbers(1, 1), numbers(2, 1), numbers(3, 1)
        rank.refused("bounds", outside, "Fetch_and_op behind the end", opened.win.Fetch_and_op, one, old, target, count)
        rank.refused("bounds", outside, "Compare_and_swap there", opened.win.Compare_and_swap, one, other, old, target, count)
        opened.win.Put(data, target, count - 4)
        opened.win.Unlock_all()
        rank.meet()
        rank.compare(got, array(CODE, [GUARD]) * 4, "bounds", f"{flavor}: what refused accesses should have fetched")
        wanted = numbers(500, count - 4) + data
        rank.compare(opened.memory, wanted, "bounds", f"{flavor}: after refused accesses and one that is not, in one epoch")
        rank.meet()
    wide.Free()
