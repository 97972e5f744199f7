"""Accumulates: what they make of the target's memory, what they fetch, that they are atomic, and their order."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable
from typing import Any

from ompy.testing.conformance.check import Breach, Collection
from ompy.testing.conformance.osc.rank import CODE, Opened, OscRank, numbers

check = Collection()

LENGTHS = (1, 600, 3000)
# Seconds between two bursts of somebody who has had its turns.
SHORTEST_BREAK, LONGEST_BREAK = 0.0005, 0.1

# By name: what becomes of an element and one of the origin's.
OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "SUM": lambda held, given: held + given,
    "PROD": lambda held, given: held * given,
    "MAX": max,
    "MIN": min,
    "LAND": lambda held, given: int(bool(held) and bool(given)),
    "LOR": lambda held, given: int(bool(held) or bool(given)),
    "LXOR": lambda held, given: int(bool(held) != bool(given)),
    "BAND": lambda held, given: held & given,
    "BOR": lambda held, given: held | given,
    "BXOR": lambda held, given: held ^ given,
    "REPLACE": lambda held, given: given,
    "NO_OP": lambda held, given: held,
}
LOGICAL = ("LAND", "LOR", "LXOR", "BAND", "BOR", "BXOR")
# Types by name, their code in Python, and whether bits and truth values are theirs.
TYPES: tuple[tuple[str, Any, bool], ...] = (
    ("INT8_T", "b", True), ("UINT16_T", "H", True), ("INT32_T", "i", True), ("FLOAT", "f", False), ("DOUBLE", "d", False),
)  # fmt: skip
WIDTHS: tuple[tuple[str, Any], ...] = (("INT8_T", "b"), ("INT16_T", "h"), ("INT32_T", "i"), ("INT64_T", "q"))


@check("accumulate", "fetch")
def every_operation_combines(rank: OscRank) -> None:
    """Accumulate and Get_accumulate by each operation, of few and of many elements."""
    MPI = rank.MPI
    target, source = (rank.rank + 1) % rank.size, (rank.rank - 1) % rank.size
    for flavor, opened in rank.everywhere(max(LENGTHS)):
        for name, combine in OPERATIONS.items():
            for length in LENGTHS:
                held = array(CODE, [n % 5 for n in range(max(LENGTHS))])
                given = array(CODE, [(n + rank.rank) % 3 for n in range(length)])
                arrives = [(n + source) % 3 for n in range(length)]
                once = [*map(combine, held[:length], arrives), *held[length:]]
                twice = [*map(combine, once[:length], arrives), *held[length:]]
                opened.memory[:] = held
                old = numbers(0, length)
                rank.meet()
                opened.win.Lock(target, MPI.LOCK_SHARED)
                if name == "NO_OP":
                    opened.win.Get_accumulate([None, 0, MPI.INT64_T], old, target, (opened.place(target, 0), length), MPI.NO_OP)
                else:
                    operation = getattr(MPI, name)
                    opened.win.Accumulate(given, target, opened.place(target, 0), operation)
                    opened.win.Get_accumulate(given, old, target, opened.place(target, 0), operation)
                opened.win.Unlock(target)
                rank.meet()
                words = f"{flavor}: {name} of {length} elements"
                mine = list(map(combine, held, [(n + rank.rank) % 3 for n in range(length)]))
                rank.compare(opened.memory, twice, "accumulate", f"{words}, twice, the target's memory")
                rank.compare(old, mine, "fetch", f"{words}, what was fetched between the two")
                rank.meet()
        rank.alive()


@check("accumulate", "fetch")
def every_type_is_combined(rank: OscRank) -> None:
    """Numbers of one to eight bytes, whole and not, and pairs of a value and a place."""
    MPI = rank.MPI
    target, count = (rank.rank + 1) % rank.size, 40
    own = MPI.Op.Create(lambda given, held, datatype: None)
    for flavor, opened in rank.everywhere(count):
        for kind, code, whole in TYPES:
            typed = opened.memory.cast("B").cast(code)
            for name, combine in OPERATIONS.items():
                if name == "NO_OP" or (name in LOGICAL and not whole):
                    continue
                typed[:] = array(code, [n % 7 for n in range(len(typed))])
                rank.meet()
                opened.win.Lock_all()
                given = array(code, [n % 4 for n in range(9)])
                where = (opened.place(target, 0), 9, getattr(MPI, kind))
                opened.win.Accumulate([given, 9, getattr(MPI, kind)], target, where, getattr(MPI, name))
                opened.win.Unlock_all()
                rank.meet()
                wanted = [combine(n % 7, n % 4) for n in range(9)] + [n % 7 for n in range(9, len(typed))]
                rank.compare(typed, wanted, "accumulate", f"{flavor}: {name} on {kind}")
        pair, bytes_of = struct.Struct("ii"), opened.memory.cast("B")
        for name, winner in (("MAXLOC", (9, 1)), ("MINLOC", (4, 2))):
            bytes_of[:8] = pair.pack(4, 2)
            rank.meet()
            opened.win.Lock_all()
            opened.win.Accumulate(
                [pair.pack(9, 1), 1, MPI.INT_INT], target, (opened.place(target, 0), 1, MPI.INT_INT), getattr(MPI, name)
            )
            opened.win.Unlock_all()
            rank.meet()
            if (found := pair.unpack(bytes_of[:8])) != winner:
                raise Breach("accumulate", f"{flavor}: {name} of (4, 2) and (9, 1) is {found}")
            rank.meet()
        opened.win.Lock_all()
        given = numbers(1, 1)
        words = f"{flavor}: Accumulate with an operation of the program's own"
        rank.refused("accumulate", ["ERR_OP"], words, opened.win.Accumulate, given, target, opened.place(target, 0), own)
        opened.win.Unlock_all()
    own.Free()


@check("fetch")
def what_is_fetched_is_what_was_there(rank: OscRank) -> None:
    """Fetch_and_op, and Compare_and_swap with and without success, on types of each width."""
    MPI = rank.MPI
    target = (rank.rank + 1) % rank.size
    for flavor, opened in rank.everywhere(4):
        for kind, code in WIDTHS:
            typed, datatype = opened.memory.cast("B").cast(code), getattr(MPI, kind)
            typed[:] = array(code, [5] * len(typed))
            rank.meet()
            opened.win.Lock(target, MPI.LOCK_EXCLUSIVE)
            at = opened.place(target, 1)
            found: list[int] = []
            for call, given, compared in (
                ("swap", 6, 4), ("swap", 6, 5), ("swap", 7, 5), ("add", 3, 0), ("swap", 1, 9), ("read", 77, 0), ("add", 2, 0),
            ):  # fmt: skip
                origin, compare, old = array(code, [given]), array(code, [compared]), array(code, [99])
                specs = [[memory, 1, datatype] for memory in (origin, compare, old)]
                if call == "swap":
                    opened.win.Compare_and_swap(specs[0], specs[1], specs[2], target, at)
                else:
                    opened.win.Fetch_and_op(specs[0], specs[2], target, at, MPI.SUM if call == "add" else MPI.NO_OP)
                opened.win.Flush(target)
                found.extend(old)
            opened.win.Unlock(target)
            rank.meet()
            words = f"{flavor}: seven fetches from one element of {kind}, swaps among them"
            rank.compare(found, [5, 5, 6, 6, 9, 1, 1], "fetch", words)
            wanted = [5] * len(typed)
            wanted[8 // typed.itemsize] = 3
            rank.compare(typed, wanted, "fetch", f"{words}, the memory afterwards")
            rank.meet()


@check("atomic", "accumulate")
def nothing_is_lost_where_all_accumulate_at_once(rank: OscRank) -> None:
    """On one rank's memory, by every rank, itself too: long ones, short ones, swaps and fetches between them.

    Whoever has had its turns goes on until all have, as the owner needs a microsecond for what takes the others a message; but
    with longer and longer breaks: a swap fails where somebody was quicker, and would again and again over a slow transport.
    """
    MPI, count, turns, burst = rank.MPI, 4000, 40, 8
    middle = count // 2
    for flavor, opened in rank.everywhere(count):
        rank.meet()
        fetched: list[int] = []
        done = [0] * 4
        opened.win.Lock_all()
        where, long = opened.place(0, 0), array(CODE, [1]) * count
        all_have, pause = None, SHORTEST_BREAK
        while all_have is None or not all_have.Test():
            old = numbers(0, 1)
            opened.win.Fetch_and_op(array(CODE, [1]), old, 0, where, MPI.SUM)
            opened.win.Flush_local(0)
            fetched += old
            kind = len(fetched) % 4
            done[kind] += 1
            if kind == 0:
                opened.win.Accumulate(long[1:], 0, opened.place(0, 1), MPI.SUM)
            elif kind == 1:
                opened.win.Accumulate(long[:1], 0, opened.place(0, middle), MPI.SUM)
            elif kind == 2:
                opened.win.Get_accumulate(long[:3], numbers(0, 3), 0, opened.place(0, middle), MPI.SUM)
            else:
                increment(rank, opened, middle + 1)
            if len(fetched) <= turns:
                rank.alive()
            if len(fetched) == turns:
                all_have = rank.comm.Ibarrier()
            elif all_have is not None and len(fetched) % burst == 0:
                rank.linger(pause, all_have.Test)
                pause = min(2 * pause, LONGEST_BREAK)
        opened.win.Unlock_all()
        drawn, sums = zip(*rank.meet((fetched, done)), strict=True)
        everything = sorted(value for values in drawn for value in values)
        wanted = list(range(len(everything)))
        rank.compare(everything, wanted, "atomic", f"{flavor}: what {rank.size} ranks drew from one counter")
        if rank.rank == 0:
            long_ones, ones, threes, swaps = map(sum, zip(*sums, strict=True))
            total = [len(everything), *[long_ones] * (count - 1)]
            for place, more in ((middle, ones + threes), (middle + 1, threes + swaps), (middle + 2, threes)):
                total[place] += more
            rank.compare(opened.memory, total, "atomic", f"{flavor}: long and short sums of {rank.size} ranks at once")
        rank.meet()


def increment(rank: OscRank, opened: Opened, index: int) -> None:
    """One more, by as many swaps as it takes."""
    at, held = opened.place(0, index), 0
    for _ in range(1_000_000):
        old = numbers(0, 1)
        opened.win.Compare_and_swap(array(CODE, [held + 1]), array(CODE, [held]), old, 0, at)
        opened.win.Flush(0)
        if old[0] == held:
            return
        held = old[0]
    raise Breach("atomic", "a swap never found what the one before it had fetched")


@check("order", "accumulate")
def accumulates_take_effect_in_the_order_of_their_calls(rank: OscRank) -> None:
    """Long and short ones on the same elements, by operations that don't commute with one another."""
    dice = rank.common_random("order")
    target, count = (rank.rank + 1) % rank.size, max(LENGTHS)
    for flavor, opened in rank.everywhere(count):
        for turn in range(6):
            opened.memory[:] = array(CODE, [1]) * count
            rank.meet()
            model = [1] * count
            opened.win.Lock(target) if turn % 2 else opened.win.Lock_all()
            for _ in range(12):
                length, name = dice.choice(LENGTHS), dice.choice(["SUM", "PROD", "REPLACE", "MAX"])
                first = dice.randrange(0, min(3, count - length + 1))
                given = array(CODE, [dice.randrange(4) for _ in range(min(length, 7))] * (length // 7 + 1))[:length]
                call: Any = opened.win.Accumulate
                arguments: list[Any] = [given, target, opened.place(target, first), getattr(rank.MPI, name)]
                if dice.random() < 0.3:
                    call, arguments = opened.win.Get_accumulate, [given, numbers(0, length), *arguments[1:]]
                call(*arguments)
                model[first : first + length] = map(OPERATIONS[name], model[first : first + length], given)
            opened.win.Unlock(target) if turn % 2 else opened.win.Unlock_all()
            rank.meet()
            rank.compare(opened.memory, model, "order", f"{flavor}: twelve accumulates of one origin, in another order perhaps")
            rank.meet()
