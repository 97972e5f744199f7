"""Epochs: what their ends promise, what does not belong in one, fences, posts and completes."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable

from ompy.testing.conformance.check import Breach, Collection
from ompy.testing.conformance.osc.rank import CODE, Opened, OscRank, numbers

check = Collection()

SYNC = ["ERR_RMA_SYNC"]
# Elements that are under way for a while.
LONG = 20_000
MANY = 300
# What begins a passive epoch, and what completes its accesses.
ENDS = [("Lock", "Flush"), ("Lock", "Unlock"), ("Lock_all", "Flush_all"), ("Lock_all", "Unlock_all"), ("Lock_all", "Flush")]


@check("completion", "put", "accumulate")
def what_was_flushed_or_unlocked_is_seen_by_its_owner(rank: OscRank) -> None:
    """A short and a long access, then three hundred; the owner is told out of band, and loads."""
    root = 0
    for flavor, opened in rank.everywhere(LONG + MANY):
        win, memory = opened.win, opened.memory

        def ended(end: str, begin: str, turn: int, win: object = win, opened: Opened = opened) -> None:
            """One rank after the other puts, and ends its accesses in one of the ways."""
            for origin in range(1, rank.size):
                words = f"{flavor}: put by rank {origin} before {end} returned"  # noqa: B023
                length = (1, 700, LONG)[turn % 3]
                if rank.rank == origin:
                    arguments = (root,) if begin == "Lock" else ()
                    getattr(win, begin)(*arguments)
                    opened.win.Put(numbers(turn + origin, length), root, opened.place(root, 0))
                    for number in range(MANY):
                        opened.win.Accumulate(numbers(1, 1), root, opened.place(root, LONG + number), rank.MPI.SUM)
                    getattr(win, end)(*(arguments if end == "Unlock" else (root,) if end == "Flush" else ()))
                rank.meet()
                if rank.rank == root:
                    rank.compare(opened.memory[:length], numbers(turn + origin, length), "completion", words)
                    wanted = array(CODE, [1 + origin + turn * (rank.size - 1)]) * MANY
                    rank.compare(opened.memory[LONG:], [n - 1 for n in wanted], "completion", f"{words}, three hundred sums")
                rank.meet()
                if rank.rank == origin and end.startswith("Flush"):
                    opened.win.Unlock(root) if begin == "Lock" else opened.win.Unlock_all()
                rank.meet()

        memory[:] = array(CODE, [0]) * len(memory)
        rank.meet()
        for turn, (begin, end) in enumerate(ENDS * 2):
            ended(end, begin, turn)
            rank.alive()


@check("epoch")
def calls_that_do_not_belong_are_refused(rank: OscRank) -> None:
    """Each on its own; then the window serves as before."""
    MPI = rank.MPI
    for flavor, opened in rank.everywhere(8):
        win, me = opened.win, rank.rank
        mine, one = opened.place(me, 0), numbers(7, 1)
        opened.memory[:] = numbers(0, 8)

        def refused(name: str, *arguments: object, classes: list[str] = SYNC, where: str, win: object = win) -> None:
            rank.refused("epoch", classes, f"{flavor}: {name} {where}", getattr(win, name), *arguments)  # noqa: B023

        for name in ("Complete", "Wait", "Test", "Unlock_all", "Flush_all", "Flush_local_all"):
            refused(name, where="with no epoch open")
        for name in ("Unlock", "Flush", "Flush_local"):
            refused(name, me, where="with no lock held")
        accesses: list[tuple[str, tuple[object, ...]]] = [
            ("Put", (one, me, mine)),
            ("Get", (one[:], me, mine)),
            ("Accumulate", (one, me, mine)),
            ("Get_accumulate", (one, one[:], me, mine)),
            ("Compare_and_swap", (one, one, one[:], me, mine)),
        ]
        for name, arguments in accesses:
            refused(name, *arguments, where="with no epoch open")
        refused("Lock", me, 77, classes=["ERR_LOCKTYPE"], where="of a kind that there is none of")
        win.Lock(me)
        refused("Lock", me, where="of a rank that this one has locked")
        refused("Lock_all", where="while a lock is held")
        if rank.size > 1:
            refused("Unlock", (me + 1) % rank.size, where="of a rank that is not locked")
        win.Unlock(me)
        refused("Put", *accesses[0][1], where="after Unlock")
        win.Lock_all()
        refused("Lock", me, where="within Lock_all")
        refused("Lock_all", where="within Lock_all")
        refused("Fence", where="within Lock_all")
        win.Unlock_all()
        win.Post(rank.group(me))
        refused("Post", rank.group(me), where="again before Wait")
        win.Start(rank.group(me))
        refused("Start", rank.group(me), where="again before Complete")
        refused("Fence", where="within an epoch of Start")
        if rank.size > 1:
            other = (me + 1) % rank.size
            refused("Put", one, other, opened.place(other, 0), where="towards a rank that is not in the group of Start")
        win.Complete()
        win.Wait()
        refused("Wait", where="a second time")
        win.Fence()
        win.Put(numbers(7, 1), me, opened.place(me, 3))
        win.Fence(MPI.MODE_NOSUCCEED)
        refused("Put", *accesses[0][1], where="after a Fence with MODE_NOSUCCEED")
        wanted = numbers(0, 8)
        wanted[3] = 7
        rank.compare(opened.memory, wanted, "epoch", f"{flavor}: the memory after calls that were refused")
        rank.meet()


@check("completion", "get", "put")
def after_local_completion_the_origin_has_its_memory_again(rank: OscRank) -> None:
    """Flush_local, Flush_local_all and Complete: what was to be fetched is there, what was sent may be overwritten."""
    target = (rank.rank + 1) % rank.size
    source = (rank.rank - 1) % rank.size
    for flavor, opened in rank.everywhere(2 * LONG):
        win = opened.win
        for end in ("Flush_local", "Flush_local_all", "Complete"):
            for length in (1, 600, LONG):
                opened.memory[:] = numbers(10**6 * rank.rank, 2 * LONG)
                rank.meet()
                sent, got = numbers(3, length), numbers(0, length)
                if end == "Complete":
                    win.Post(rank.group(source))
                    win.Start(rank.group(target))
                else:
                    win.Lock(target, rank.MPI.LOCK_SHARED)
                win.Put(sent, target, opened.place(target, 0))
                win.Get(got, target, opened.place(target, LONG))
                getattr(win, end)(*([target] if end == "Flush_local" else []))
                sent[:] = array(CODE, [-1]) * length
                wanted = numbers(10**6 * target + LONG, length)
                rank.compare(got, wanted, "completion", f"{flavor}: {length} elements got before {end}")
                if end == "Complete":
                    win.Wait()
                else:
                    win.Unlock(target)
                    rank.meet()
                words = f"{flavor}: {length} elements put, and overwritten at the origin after {end}"
                rank.compare(opened.memory[:length], numbers(3, length), "completion", words)
                rank.meet()
        rank.alive()


def left_late(rank: OscRank, clause: str, words: str, entered: float, left: float, of: list[int], who: list[int]) -> None:
    """None of `who` left before the last of `of` has entered."""
    times = rank.meet((entered, left))
    last = max(times[other][0] for other in of)
    for other in who:
        if times[other][1] < last:
            early = 1e6 * (last - times[other][1])
            raise Breach(clause, f"{words}: rank {other} left {early:.0f} us before the last rank entered")


@check("fence", "put", "get")
def a_fence_has_everybody_and_everything(rank: OscRank) -> None:
    """One rank after the other comes late; what was put and got before is there when a rank leaves."""
    everyone = list(range(rank.size))
    left, right = (rank.rank - 1) % rank.size, (rank.rank + 1) % rank.size
    for flavor, opened in rank.everywhere(2 * LONG):
        win = opened.win
        for turn in range(2 * rank.size):
            opened.memory[LONG:] = numbers(10**6 * rank.rank + turn, LONG)
            length = (LONG, 5)[turn // rank.size]
            got = numbers(0, length)
            rank.meet()
            win.Fence()
            win.Put(numbers(turn + rank.rank, length), right, opened.place(right, 0))
            win.Get(got, left, opened.place(left, LONG))
            if rank.rank == turn % rank.size:
                rank.linger()
            entered = time.monotonic()
            win.Fence()
            gone = time.monotonic()
            words = f"{flavor}: {length} elements"
            rank.compare(got, numbers(10**6 * left + turn, length), "fence", f"{words} got before a fence")
            rank.compare(opened.memory[:length], numbers(turn + left, length), "fence", f"{words} put before a fence")
            win.Fence(rank.MPI.MODE_NOSUCCEED)
            left_late(rank, "fence", f"{flavor}: Fence", entered, gone, everyone, everyone)
        rank.alive()


@check("posts", "put", "get")
def accesses_wait_for_the_post_and_wait_for_the_completes(rank: OscRank) -> None:
    """Around a ring, each rank origin and target at once; one rank after the other posts, or completes, late."""
    left, right = (rank.rank - 1) % rank.size, (rank.rank + 1) % rank.size
    for flavor, opened in rank.everywhere(2 * LONG):
        win = opened.win
        for turn in range(2 * rank.size):
            length = (LONG, 3)[turn // rank.size]
            late, got = rank.rank == turn % rank.size, numbers(0, length)
            rank.meet()
            if late:
                rank.linger()
            opened.memory[:] = numbers(10**6 * rank.rank + turn, 2 * LONG)
            win.Post(rank.group(left))
            win.Start(rank.group(right))
            win.Put(numbers(turn + rank.rank, length), right, opened.place(right, 0))
            win.Get(got, right, opened.place(right, LONG))
            if late:
                rank.linger()
            entered = time.monotonic()
            win.Complete()
            win.Wait()
            gone = time.monotonic()
            words = f"{flavor}: {length} elements"
            wanted = numbers(10**6 * right + turn + LONG, length)
            rank.compare(got, wanted, "posts", f"{words} that were stored just before Post, got")
            rank.compare(
                opened.memory[:length], numbers(turn + left, length), "posts", f"{words} put between Start and Complete"
            )
            times = rank.meet((entered, gone))
            if gone < times[left][0]:
                raise Breach("posts", f"{flavor}: Wait of rank {rank.rank} returned before rank {left} had called Complete")
        rank.alive()


@check("posts", "put")
def groups_differ_from_rank_to_rank_and_from_epoch_to_epoch(rank: OscRank) -> None:
    """All to one, one to all, everybody with itself, and nobody; `Test` says yes when all have completed, and no before."""
    everyone = list(range(rank.size))
    others = [other for other in everyone if other != rank.rank]
    for flavor, opened in rank.everywhere(rank.size):
        win = opened.win
        for root in everyone:
            opened.memory[:] = array(CODE, [-1]) * rank.size
            is_root = rank.rank == root
            words = f"{flavor}: all put to rank {root}"
            # All to one, which asks whether they are done.
            if is_root:
                win.Post(rank.group(*others))
                if others and win.Test():
                    raise Breach("posts", f"{words}: Test says that all have completed, and none has")
                rank.meet()
                while not win.Test():
                    pass
                wanted = [n if n != root else -1 for n in everyone]
                rank.compare(opened.memory, wanted, "posts", f"{words}, when Test has said yes")
            else:
                win.Start(rank.group(root))
                win.Put(numbers(rank.rank, 1), root, opened.place(root, rank.rank))
                rank.meet()
                win.Complete()
            # One to all, itself among them.
            win.Post(rank.group(root))
            if is_root:
                win.Start(rank.group(*everyone))
                for target in everyone:
                    win.Put(numbers(100 + target, 1), target, opened.place(target, root))
                win.Complete()
            win.Wait()
            found = opened.memory[root]
            if found != 100 + rank.rank:
                raise Breach("posts", f"{flavor}: rank {root} put {100 + rank.rank}, and after Wait there is {found}")
            # Nobody.
            win.Post(rank.group())
            win.Start(rank.group())
            win.Complete()
            win.Wait()
            rank.meet()
        rank.alive()


@check("isolation", "fence", "posts", "get", ranks=2)
def what_is_stored_after_an_epoch_is_not_read_by_a_get_of_it(rank: OscRank) -> None:
    """Long gets; their target overwrites what they read as soon as its own end of the epoch is over."""
    origin, target = 1, 0
    for flavor, opened in rank.everywhere(LONG):
        win = opened.win

        def fenced(begins: bool, win: object = win) -> None:
            getattr(win, "Fence")(0 if begins else rank.MPI.MODE_NOSUCCEED)  # noqa: B009

        def posted(begins: bool, opened: Opened = opened) -> None:
            if rank.rank == target:
                opened.win.Post(rank.group(origin)) if begins else opened.win.Wait()
            elif rank.rank == origin:
                opened.win.Start(rank.group(target)) if begins else opened.win.Complete()

        ways: list[tuple[str, Callable[[bool], None]]] = [("Fence", fenced), ("Wait", posted)]
        for turn in range(12):
            words, synchronise = ways[turn % 2]
            if rank.rank == target:
                opened.memory[:] = array(CODE, [turn]) * LONG
                win.Sync()
            got = numbers(0, LONG)
            synchronise(True)
            if rank.rank == origin:
                win.Get(got, target, opened.place(target, 0))
            synchronise(False)
            if rank.rank == target:
                opened.memory[:] = array(CODE, [-1]) * LONG
            if rank.rank == origin:
                wanted = array(CODE, [turn]) * LONG
                rank.compare(got, wanted, "isolation", f"{flavor}: got in an epoch, overwritten after its {words}")
            rank.meet()
        rank.alive()


@check("isolation", "fence", ranks=3)
def the_next_epochs_accesses_wait_for_the_end_of_this_one(rank: OscRank) -> None:
    """One rank puts late in an epoch, another one early in the next: the second has the last word."""
    length = 1024
    for flavor, opened in rank.everywhere(length):
        win = opened.win
        win.Fence()
        for turn in range(30):
            target, early, late = turn % 3, (turn + 1) % 3, (turn + 2) % 3
            if rank.rank == late:
                if turn % 4 == 0:
                    rank.linger()
                win.Put(array(CODE, [-1]) * length, target, opened.place(target, 0))
            elif rank.rank == target and turn % 4 == 1:
                rank.linger()
            win.Fence()
            if rank.rank == early:
                win.Put(array(CODE, [turn]) * length, target, opened.place(target, 0))
            win.Fence()
            if rank.rank == target:
                wanted = array(CODE, [turn]) * length
                rank.compare(opened.memory, wanted, "isolation", f"{flavor}: overwritten in the epoch after")
        win.Fence(rank.MPI.MODE_NOSUCCEED)
        rank.alive()
