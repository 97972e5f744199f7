"""The pointer that all ranks of a file share."""

from __future__ import annotations

from ompy.testing.conformance.check import Breach, Collection
from ompy.testing.conformance.files.rank import FileRank
from ompy.testing.conformance.held import leaks

check = Collection()

TURNS = 200


@check("offer", "open", "advance")
def no_two_get_the_same_etypes(rank: FileRank) -> None:
    with rank.file() as file:
        module = rank.module(file)
        if (found := module.get()) != 0:
            raise Breach("open", f"the pointer of a file that was just opened is {found}")
        rank.exchange(None)
        mine = []
        for _ in range(TURNS):
            count = rank.random.choice([0, 1, 2, 1000])
            mine.append((module.advance(count), count))
        taken = sorted(span for spans in rank.exchange(mine) for span in spans)
        end = 0
        for start, count in taken:
            if start != end:
                raise Breach("advance", f"etypes from {end} on were given out twice or never: the next ones begin at {start}")
            end = start + count
        if (found := module.get()) != end:
            raise Breach("advance", f"the pointer is {found} after {end} etypes were given out")
        rank.exchange(None)


@check("order")
def ordered_ones_stand_in_rank_order(rank: FileRank) -> None:
    dice = rank.common_random("ordered")
    with rank.file() as file:
        module, before = rank.module(file), 0
        for _ in range(TURNS):
            counts = [dice.choice([0, 1, 30]) for _ in range(rank.size)]
            wanted = before + sum(counts[: rank.rank])
            if (found := module.ordered(counts[rank.rank])) != wanted:
                raise Breach(
                    "order", f"counts {counts}, the pointer at {before}: rank {rank.rank} begins at {found}, not {wanted}"
                )
            before += sum(counts)
        if (found := module.get()) != before:
            raise Breach("order", f"the pointer is {found}, not {before}")
        rank.exchange(None)


@check("set")
def what_is_set_is_what_comes_next(rank: FileRank) -> None:
    with rank.file() as file:
        module = rank.module(file)
        for value in (5, 1 << 50, 0):
            module.advance(3)
            rank.exchange(None)
            module.set(value)
            if (found := module.get()) != value:
                raise Breach("set", f"the pointer is {found}, not {value}")
            rank.exchange(None)


@check("free")
def nothing_is_left_behind(rank: FileRank) -> None:
    """By files of all ranks together, and of each rank alone."""

    def use() -> None:
        for alone in (False, True):
            with rank.file(alone=alone) as file:
                rank.module(file).advance(1)

    rank.exchange(None)
    before = rank.files()
    rank.exchange(None)
    if found := leaks(use, 10):
        raise Breach("free", f"files whose shared pointer has moved, {found}")
    rank.exchange(None)
    if left := rank.files() - before:
        raise Breach("free", f"when all files are closed there are {sorted(left)}")
    rank.exchange(None)
