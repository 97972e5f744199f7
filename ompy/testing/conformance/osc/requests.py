"""Requests of accesses, and the memory that these use until they are complete."""

from __future__ import annotations

import gc
from array import array

from ompy.testing.conformance.check import Collection
from ompy.testing.conformance.osc.rank import CODE, OscRank, numbers

check = Collection()

GUARD = -77


@check("request", "completion")
def requests_complete_when_the_origin_has_its_data(rank: OscRank) -> None:
    """What a request brings is there when it is complete, and what it has sent may be overwritten then."""
    MPI, most = rank.MPI, 20_000
    target = (rank.rank + 1) % rank.size
    source = (rank.rank - 1) % rank.size
    for flavor, opened in rank.everywhere(3 * most):
        for length in (1, 600, most):
            opened.memory[:] = numbers(10**6 * rank.rank, 3 * most)
            rank.meet()
            sent, added, got, old = numbers(1, length), numbers(2, length), numbers(0, length), numbers(0, length)
            opened.win.Lock_all()
            requests = [
                opened.win.Rput(sent, target, opened.place(target, 0)),
                opened.win.Rget(got, target, opened.place(target, most)),
                opened.win.Raccumulate(added, target, opened.place(target, 2 * most), MPI.SUM),
            ]
            MPI.Request.Waitall(requests)
            wanted = numbers(10**6 * target + most, length)
            rank.compare(got, wanted, "request", f"{flavor}: what Rget of {length} elements gave when its request was complete")
            sent[:] = added[:] = array(CODE, [GUARD]) * length
            fetch = opened.win.Rget_accumulate(numbers(2, length), old, target, opened.place(target, 2 * most), MPI.REPLACE)
            while not fetch.Test():
                pass
            first = numbers(10**6 * target + 2 * most, length)
            wanted = array(CODE, [first[n] + 2 + n for n in range(length)])
            rank.compare(old, wanted, "request", f"{flavor}: what Rget_accumulate of {length} elements gave, after Raccumulate")
            opened.win.Unlock_all()
            rank.meet()
            words = f"{flavor}: {length} elements of rank {source}, overwritten there after the request was complete"
            rank.compare(opened.memory[:length], numbers(1, length), "request", words)
            rank.compare(opened.memory[2 * most : 2 * most + length], numbers(2, length), "request", words)
            rank.meet()


@check("request", "put")
def memory_that_the_program_forgets_lives_until_it_was_used(rank: OscRank) -> None:
    target, length = (rank.rank + 1) % rank.size, 20_000
    for flavor, opened in rank.everywhere(4 * length):
        opened.win.Lock_all()
        for part in range(4):
            opened.win.Put(numbers(part * length, length), target, opened.place(target, part * length))
        gc.collect()
        others = [array(CODE, [GUARD]) * length for _ in range(8)]  # where that memory was, perhaps
        opened.win.Unlock_all()
        others.clear()
        rank.meet()
        rank.compare(opened.memory, numbers(0, 4 * length), "request", f"{flavor}: put out of memory that was forgotten")
        rank.meet()
