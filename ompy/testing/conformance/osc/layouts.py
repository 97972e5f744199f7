"""Datatypes with gaps, on either side of an access, or on both."""

from __future__ import annotations

import itertools
from array import array

from ompy.testing.conformance.check import Collection
from ompy.testing.conformance.osc.rank import CODE, OscRank, numbers

check = Collection()

GUARD = -77


@check("layout", "put", "get", "accumulate")
def datatypes_of_both_sides_may_have_gaps(rank: OscRank) -> None:
    """Columns of a small matrix here, blocks with gaps and a lower bound there, and the other way round."""
    MPI = rank.MPI
    base, dice = MPI.INT64_T, rank.common_random("layout")
    target, room = (rank.rank + 1) % rank.size, 4000
    for flavor, opened in rank.everywhere(room):
        for blocks, gaps in itertools.product((1, 4, 300), ("both sides", "the origin's side", "the target's side")):
            gap, lower = dice.choice([1, 2, 5]), dice.choice([0, 1, 3])
            here = base.Create_vector(blocks, 1, 1 + gap).Commit()
            there = base.Create_indexed([2] * (blocks // 2) or [1], [lower + 3 * n for n in range(blocks // 2 or 1)]).Commit()
            places_here = [n * (1 + gap) for n in range(blocks)]
            places_there = [lower + 3 * n + k for n in range(blocks // 2) for k in (0, 1)] or [lower]
            origin, where = [1, here], [1, there]
            if gaps == "the origin's side":
                where, places_there = [blocks, base], list(range(blocks))
            elif gaps == "the target's side":
                origin, places_here = [blocks, base], list(range(blocks))
            for call in ("Put", "Accumulate", "Get", "Get_accumulate", "Get_accumulate with NO_OP"):
                memory = array(CODE, [GUARD]) * (blocks * (1 + gap))
                opened.memory[:] = numbers(5000 * rank.rank, room)
                for n, place in enumerate(places_here):
                    memory[place] = 7 * n + rank.rank
                before, theirs = memory[:], numbers(5000 * target, room)
                mine = numbers(5000 * rank.rank, room)
                rank.meet()
                opened.win.Lock_all()
                place_there = (opened.place(target, 5), *where)
                if call == "Accumulate":
                    opened.win.Accumulate([memory, *origin], target, place_there, MPI.SUM)
                elif call.startswith("Get_accumulate"):
                    operation = MPI.NO_OP if call.endswith("NO_OP") else MPI.SUM
                    opened.win.Get_accumulate([before[:], *origin], [memory, *origin], target, place_there, operation)
                else:
                    getattr(opened.win, call)([memory, *origin], target, place_there)
                opened.win.Unlock_all()
                rank.meet()
                source = (rank.rank - 1) % rank.size
                if call.startswith("Get"):
                    for place, remote in zip(places_here, places_there, strict=True):
                        before[place] = theirs[5 + remote]
                if call in ("Put", "Accumulate", "Get_accumulate"):
                    for n, remote in enumerate(places_there):
                        arrived = 7 * n + source
                        mine[5 + remote] = arrived if call == "Put" else mine[5 + remote] + arrived
                words = f"{flavor}: {call} of {blocks} blocks with gaps on {gaps}"
                rank.compare(memory, before, "layout", f"{words}, the origin's memory")
                rank.compare(opened.memory, mine, "layout", f"{words}, the target's memory")
                rank.meet()
            here.Free()
            there.Free()
            rank.alive()
