"""Locks, and targets that take no part."""

from __future__ import annotations

from array import array

from ompy.testing.conformance.check import Breach, Collection
from ompy.testing.conformance.osc.rank import CODE, OscRank, numbers

check = Collection()

LONG = 20_000


@check("locks", "completion")
def an_exclusive_lock_keeps_all_others_out(rank: OscRank) -> None:
    """Whoever has it reads, lets others have their chance, and writes back one more; the target among them."""
    turns = 4
    for flavor, opened in rank.everywhere(2):
        win = opened.win
        for target in range(rank.size):
            opened.memory[:] = numbers(0, 2)
            rank.meet()
            for _ in range(turns):
                held = numbers(0, 1)
                win.Lock(target)
                win.Get(held, target, opened.place(target, 0))
                win.Flush(target)
                for _ in range(20):
                    rank.comm.Iprobe()
                win.Put(array(CODE, [held[0] + 1]), target, opened.place(target, 0))
                win.Unlock(target)
            rank.meet()
            if rank.rank == target and opened.memory[0] != turns * rank.size:
                words = f"{flavor}: {rank.size} ranks counted to {turns} each under exclusive locks of rank {target}"
                raise Breach("locks", f"{words}, and together to {opened.memory[0]}")
            rank.meet()
        rank.alive()


@check("locks", ranks=2)
def one_that_is_asked_for_waits_until_those_before_it_are_given_back(rank: OscRank) -> None:
    """An exclusive one behind each kind, and each kind behind an exclusive one."""
    MPI = rank.MPI
    orders = [
        (MPI.LOCK_EXCLUSIVE, MPI.LOCK_EXCLUSIVE),
        (MPI.LOCK_SHARED, MPI.LOCK_EXCLUSIVE),
        (0, MPI.LOCK_EXCLUSIVE),
        (MPI.LOCK_EXCLUSIVE, MPI.LOCK_SHARED),
        (MPI.LOCK_EXCLUSIVE, 0),
    ]
    kinds = {0: "Lock_all", MPI.LOCK_EXCLUSIVE: "an exclusive lock", MPI.LOCK_SHARED: "a shared lock"}
    for flavor, opened in rank.everywhere(2):
        win = opened.win
        for number, (first, second) in enumerate(orders):
            target = number % rank.size
            holder, asker = target, (target + 1) % rank.size
            if number % 2:
                holder, asker = asker, holder
            opened.memory[:] = numbers(0, 2)
            rank.meet()
            kind = first if rank.rank == holder else second
            if rank.rank == holder:
                win.Lock(target, kind) if kind else win.Lock_all()
            rank.meet()  # the holder has it
            if rank.rank == holder:
                rank.linger()
                win.Put(numbers(1, 1), target, opened.place(target, 0))
                win.Unlock(target) if kind else win.Unlock_all()
            elif rank.rank == asker:
                got = numbers(7, 1)
                win.Lock(target, kind) if kind else win.Lock_all()
                win.Get(got, target, opened.place(target, 0))
                win.Unlock(target) if kind else win.Unlock_all()
                if got[0] != 1:
                    words = f"{flavor}: {kinds[second]} of rank {target} was granted to rank {asker}"
                    raise Breach("locks", f"{words}, while rank {holder} held {kinds[first]}")
            rank.meet()
        rank.alive()


@check("locks")
def shared_ones_and_those_of_different_targets_hold_together(rank: OscRank) -> None:
    MPI = rank.MPI
    for flavor, opened in rank.everywhere(rank.size):
        win = opened.win
        opened.memory[:] = numbers(0, rank.size)
        rank.clause = "locks"
        rank.alive()
        rank.meet()
        # All of them on one rank, by Lock and by Lock_all.
        win.Lock(0, MPI.LOCK_SHARED) if rank.rank % 2 else win.Lock_all()
        rank.meet()
        win.Put(numbers(50 + rank.rank, 1), 0, opened.place(0, rank.rank))
        win.Unlock(0) if rank.rank % 2 else win.Unlock_all()
        rank.meet()
        if rank.rank == 0:
            rank.compare(opened.memory, numbers(50, rank.size), "locks", f"{flavor}: put under locks that all share")
        rank.meet()
        # Exclusive ones, each rank its neighbour's.
        target = (rank.rank + 1) % rank.size
        win.Lock(target)
        rank.meet()
        win.Put(numbers(80 + rank.rank, 1), target, opened.place(target, 0))
        win.Unlock(target)
        rank.meet()
        if opened.memory[0] != 80 + (rank.rank - 1) % rank.size:
            raise Breach("locks", f"{flavor}: rank {rank.rank} has {opened.memory[0]} where its neighbour put under its lock")
        rank.meet()
        # And locks that nobody has to be asked for.
        win.Lock(target, MPI.LOCK_EXCLUSIVE, MPI.MODE_NOCHECK)
        win.Put(numbers(90 + rank.rank, 1), target, opened.place(target, 0))
        win.Unlock(target)
        rank.meet()
        win.Lock_all(MPI.MODE_NOCHECK)
        win.Accumulate(numbers(10, 1), target, opened.place(target, 0))
        win.Unlock_all()
        rank.meet()
        if opened.memory[0] != 100 + (rank.rank - 1) % rank.size:
            raise Breach("locks", f"{flavor}: rank {rank.rank} has {opened.memory[0]}, put and summed under MODE_NOCHECK")
        rank.meet()


@check("isolation", "locks", ranks=2)
def who_has_the_lock_next_finds_nobody_reading(rank: OscRank) -> None:
    """One rank reads a long stretch while another one waits for the lock, to write there: nothing read is new."""
    reader, writer, target = 0, 1, rank.size - 1
    for flavor, opened in rank.everywhere(LONG):
        win = opened.win
        opened.memory[:] = array(CODE, [0]) * LONG
        rank.meet()
        for turn in range(8):
            first, got = numbers(0, 1), numbers(0, LONG)
            if rank.rank == reader:
                win.Lock(target)
            rank.meet()  # the reader has the lock
            if rank.rank == reader:
                rank.linger()
                win.Get(first, target, opened.place(target, LONG - 1))
                win.Flush(target)
                win.Get(got, target, opened.place(target, 0))
                win.Unlock(target)
                words = f"{flavor}: got under one exclusive lock, first the last element and then all"
                rank.compare(got, first * LONG, "isolation", words)
            elif rank.rank == writer:
                win.Lock(target)
                win.Put(array(CODE, [turn + 1]) * LONG, target, opened.place(target, 0))
                win.Unlock(target)
            rank.meet()
        if rank.rank == target:
            rank.compare(opened.memory, array(CODE, [8]) * LONG, "completion", f"{flavor}: written under exclusive locks")
        rank.meet()


@check("progress", "locks", ranks=2)
def a_target_that_looks_at_its_own_memory_serves(rank: OscRank) -> None:
    """Until it has changed, under one lock with flushes, and under a lock for each look."""
    MPI, target = rank.MPI, 0
    for flavor, opened in rank.everywhere(2):
        win = opened.win
        for turn in range(2):
            rank.meet()
            if rank.rank != target:
                win.Lock(target, MPI.LOCK_SHARED)
                win.Accumulate(numbers(1, 1), target, opened.place(target, turn))
                win.Unlock(target)
                continue
            seen = numbers(0, 1)
            if turn == 0:
                win.Lock(target, MPI.LOCK_SHARED)
            while seen[0] < rank.size - 1:
                if turn:
                    win.Lock(target, MPI.LOCK_SHARED)
                win.Get_accumulate(numbers(0, 1), seen, target, opened.place(target, turn), op=MPI.NO_OP)
                (win.Unlock if turn else win.Flush)(target)
            if turn == 0:
                win.Unlock(target)
            rank.compare(seen, [rank.size - 1], "progress", f"{flavor}: sums at a target that looks for them")
        rank.meet()


@check("progress", "locks", "completion", ranks=2)
def a_target_inside_another_call_serves(rank: OscRank) -> None:
    """It waits for a message and calls nothing for the window; where it is `direct`, it is outside of MPI."""
    comm, target = rank.comm, 0
    for flavor, opened in rank.everywhere(LONG):
        win = opened.win
        direct = win.Get_info().Get("ompy_target_progress") == "none"
        rank.meet()
        if rank.rank == target:
            if direct:
                rank.exchange(None)
            for other in range(1, rank.size):
                comm.recv(source=other)
            rank.compare(opened.memory[:1], [20 * (rank.size - 1)], "progress", f"{flavor}: sums at a target that waits")
        else:
            data = numbers(0, LONG - 1)
            for _ in range(20):
                win.Lock(target)
                win.Accumulate(numbers(1, 1), target, opened.place(target, 0))
                win.Put(data, target, opened.place(target, 1))
                win.Get(data, target, opened.place(target, 1))
                win.Unlock(target)
            win.Lock_all()
            win.Get_accumulate(numbers(0, 1), numbers(0, 1), target, opened.place(target, 0))
            win.Flush(target)
            win.Unlock_all()
            if direct:
                rank.exchange(None)
            comm.send(None, target)
        rank.meet()
