"""A window's life: who serves it, several at once, dynamic memory, the end."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable

from ompy.testing.conformance.check import Breach, Collection
from ompy.testing.conformance.held import allocated, held
from ompy.testing.conformance.osc.rank import CODE, FLAVORS, WIDTH, OscRank, numbers

check = Collection()

WINDOWS = 40
# Bytes of resident memory that a window may leave behind before somebody asks: noise of allocators.
LEFT = 64 << 10
# And of memory that it has taken from C's allocator.
FEW = 200
# Pieces of memory that are attached to a window at a time.
STRETCHES = 700


@check("choice")
def every_rank_has_the_same_component_for_a_window(rank: OscRank) -> None:
    """Of each kind, of sizes and units that differ from rank to rank, of all ranks, of some, and of one."""
    MPI, name = rank.MPI, rank.wire.setting.component
    some = rank.comm.Split(rank.rank % 2, rank.rank)
    for flavor in FLAVORS:
        for comm, words in ((rank.comm, "all ranks"), (some, "some ranks"), (MPI.COMM_SELF, "one rank")):
            for count in (1, 0, rank.rank, rank.size - rank.rank):
                try:
                    win, _, _ = rank.make(flavor, count, 1 + rank.rank, comm)
                except MPI.Exception:
                    if flavor in rank.flavors:
                        raise
                    continue  # nobody serves what the component does not
                found = comm.allgather(rank.server())
                if len(set(found)) > 1:
                    raise Breach("choice", f"a window of {flavor} on {words} is served by {found}, rank by rank")
                if found[0] == name and flavor not in rank.flavors:
                    raise Breach("choice", f"it serves a window of {flavor}, which its `flavors` does not name")
                if found[0] != name and flavor in rank.flavors:
                    raise Breach("choice", f"a window of {flavor} on {words} with {count} elements is served by {found[0]}")
                win.Free()
        rank.alive()
    some.Free()


@check("open", "put")
def windows_beside_one_another_have_nothing_to_do_with_one_another(rank: OscRank) -> None:
    """Made in one order and freed in another, of all ranks and of some, each within an epoch of its own kind."""
    some = rank.comm.Split(rank.rank % 2, rank.rank)
    right = (rank.rank + 1) % rank.size
    for flavor in rank.flavors:
        opened = [rank.window(flavor, 600) for _ in range(3)] + [rank.window(flavor, 600, some)]
        windows = [manager.__enter__() for manager in opened]
        for number, window in enumerate(windows):
            window.memory[:] = array(CODE, [-number]) * 600
        rank.meet()
        fenced, locked, posted, other = windows
        next_of_some = (some.rank + 1) % some.size
        fenced.win.Fence()
        posted.win.Post(rank.group((rank.rank - 1) % rank.size))
        posted.win.Start(rank.group(right))
        other.win.Lock(next_of_some)
        locked.win.Lock_all()
        for number, window in ((2, locked), (1, fenced), (3, posted)):
            window.win.Put(numbers(1000 * number + rank.rank, 599), right, window.place(right, 1))
        other.win.Put(numbers(4000 + rank.rank, 599), next_of_some, other.place(next_of_some, 1))
        locked.win.Unlock_all()
        fenced.win.Fence()
        posted.win.Complete()
        other.win.Unlock(next_of_some)
        posted.win.Wait()
        rank.meet()
        left = (rank.rank - 1) % rank.size
        near = rank.size // 2 + (rank.size % 2 if rank.rank % 2 == 0 else 0)
        before = rank.rank - 2 if rank.rank > 1 else rank.rank + 2 * (near - 1)
        for number, window, source in ((1, fenced, left), (2, locked, left), (3, posted, left), (4, other, before)):
            wanted = array(CODE, [1 - number]) + numbers(1000 * number + source, 599)
            rank.compare(window.memory, wanted, "open", f"{flavor}: window {number} of four that are open together")
        rank.meet()
        for number in (1, 0, 3, 2):
            opened[number].__exit__(None, None, None)
        rank.alive()
    some.Free()


@check("free", "epoch")
def free_is_refused_within_an_epoch(rank: OscRank) -> None:
    for flavor, opened in rank.everywhere(4):
        win, me = opened.win, rank.rank
        sync, words = ["ERR_RMA_SYNC"], f"{flavor}: Free"
        win.Lock(me)
        rank.refused("free", sync, f"{words} with a lock held", win.Free)
        win.Unlock(me)
        win.Lock_all()
        rank.refused("free", sync, f"{words} within Lock_all", win.Free)
        win.Unlock_all()
        win.Post(rank.group(me))
        rank.refused("free", sync, f"{words} between Post and Wait", win.Free)
        win.Start(rank.group(me))
        rank.refused("free", sync, f"{words} between Start and Complete", win.Free)
        win.Put(numbers(9, 4), me, opened.place(me, 0))
        win.Complete()
        win.Wait()
        rank.compare(opened.memory, numbers(9, 4), "free", f"{flavor}: put after Free was refused")
        rank.meet()


@check("free", "completion", ranks=2)
def free_waits_for_those_that_still_access(rank: OscRank) -> None:
    """Rank 0 has called Free while the others lock its memory, put, and take their time."""
    for flavor in rank.flavors:
        win, memory, addresses = rank.make(flavor, rank.size, WIDTH, rank.comm)
        memory[:] = array(CODE, [0]) * rank.size
        rank.meet()
        if rank.rank:
            win.Lock(0, rank.MPI.LOCK_SHARED)
            rank.linger()
            win.Put(numbers(rank.rank, 1), 0, addresses[0] + WIDTH * rank.rank if addresses else rank.rank)
            win.Unlock(0)
        win.Free()
        if rank.rank == 0:
            rank.compare(memory, numbers(0, rank.size), "free", f"{flavor}: put by others before they called Free")
        rank.meet()
        rank.alive()


@check("free")
def nothing_is_left_of_windows_that_are_gone(rank: OscRank) -> None:
    """Open files, mappings of shared memory, and memory."""
    right = (rank.rank + 1) % rank.size
    data = numbers(0, 4000)

    def use() -> None:
        for flavor in rank.flavors:
            with rank.window(flavor, 4000) as opened:
                opened.win.Lock_all()
                opened.win.Put(data, right, opened.place(right, 0))
                opened.win.Accumulate(data, right, opened.place(right, 0))
                opened.win.Unlock_all()
                opened.win.Fence()
                opened.win.Fence(rank.MPI.MODE_NOSUCCEED)
        rank.alive()

    for _ in range(10):
        use()
    rank.meet()
    files, mappings, resident, taken = (*held(), resident_bytes(), allocated()[1])
    for _ in range(WINDOWS):
        use()
    rank.meet()
    now = (*held(), resident_bytes(), allocated()[1])
    made = WINDOWS * len(rank.flavors)
    for name, first, last, each in (
        ("open files", files, now[0], 1),
        ("mappings of shared memory", mappings, now[1], 1),
        ("bytes of resident memory", resident, now[2], LEFT),
        ("bytes of memory", taken, now[3], FEW),
    ):
        if last - first >= each * WINDOWS:
            raise Breach("free", f"{made} windows have come and gone, and left {last - first} more {name}")


def resident_bytes() -> int:
    with open("/proc/self/statm") as line:
        return int(line.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@check("dynamic", "put", "bounds")
def memory_of_a_dynamic_window_comes_and_goes(rank: OscRank) -> None:
    """Two stretches, one of them taken away; in windows of other kinds there is nothing to attach."""
    MPI = rank.MPI
    right, left = (rank.rank + 1) % rank.size, (rank.rank - 1) % rank.size
    spare = memoryview(bytearray(64))
    for flavor, opened in rank.everywhere(600):
        win = opened.win
        if flavor != "dynamic":
            rank.refused("dynamic", ["ERR_RMA_FLAVOR"], f"{flavor}: Attach", win.Attach, spare)
            rank.refused("dynamic", ["ERR_RMA_FLAVOR"], f"{flavor}: Detach", win.Detach, spare)
            continue
        more = memoryview(bytearray(8 * 5000))
        rank.refused("dynamic", ["ERR_ARG"], "Detach of memory that is not attached", win.Detach, more)
        win.Attach(more)
        rank.refused("dynamic", ["ERR_RMA_ATTACH"], "Attach of memory that is", win.Attach, more)
        rank.refused("dynamic", ["ERR_RMA_ATTACH"], "Attach of a part of it", win.Attach, more[80:160])
        addresses = rank.comm.allgather(MPI.Get_address(more))
        win.Lock_all()
        win.Put(numbers(5, 5000), right, addresses[right])
        win.Put(numbers(6, 600), right, opened.place(right, 0))
        win.Unlock_all()
        rank.meet()
        rank.compare(more.cast(CODE), numbers(5, 5000), "dynamic", f"a second stretch, put by rank {left}")
        rank.compare(opened.memory, numbers(6, 600), "dynamic", f"the first stretch, put by rank {left}")
        rank.meet()
        win.Detach(more)
        rank.meet()
        for name, arguments in (
            ("Put", (numbers(0, 3), right, addresses[right])),
            ("Get", (numbers(0, 3), right, addresses[right])),
            ("Accumulate", (numbers(0, 5000), right, addresses[right])),
        ):
            win.Lock(right)

            def accessed(name: str = name, arguments: tuple[object, ...] = arguments) -> None:
                getattr(win, name)(*arguments)  # noqa: B023
                win.Flush(right)  # noqa: B023

            rank.refused("dynamic", ["ERR_RMA_RANGE"], f"{name} to memory that was detached", accessed)
            win.Put(numbers(8, 2), right, opened.place(right, 598))
            win.Unlock(right)
        rank.meet()
        rank.compare(more.cast(CODE), numbers(5, 5000), "dynamic", "memory that was detached, after refused accesses")
        rank.compare(opened.memory[598:], numbers(8, 2), "dynamic", "put in an epoch with a refused access")
        rank.meet()


@check("dynamic", "put", "bounds")
def a_dynamic_window_has_any_number_of_stretches(rank: OscRank) -> None:
    """Attached in an order of no kind, each put to, and every second one taken away again."""
    right, left = (rank.rank + 1) % rank.size, (rank.rank - 1) % rank.size
    for flavor, opened in rank.everywhere(STRETCHES):
        if flavor != "dynamic":
            continue
        win, stretches = opened.win, [memoryview(bytearray(WIDTH)) for _ in range(STRETCHES)]
        order = rank.random.sample(range(STRETCHES), STRETCHES)
        for number in order:
            win.Attach(stretches[number])
        addresses = rank.comm.allgather([rank.MPI.Get_address(stretch) for stretch in stretches])
        for turn in range(2):
            win.Lock_all()
            for number in range(turn, STRETCHES, turn + 1):
                win.Put(numbers(1000 * turn + number, 1), right, addresses[right][number])
            win.Unlock_all()
            rank.meet()
            for number, stretch in enumerate(stretches):
                wanted = 1000 + number if turn and number % 2 else number
                rank.compare(stretch.cast(CODE), numbers(wanted, 1), "dynamic", f"stretch {number}, put by rank {left}")
            rank.meet()
            for number in [number for number in order if number % 2 == turn]:
                win.Detach(stretches[number])
            rank.meet()
        rank.alive()


@check("dynamic", "put", "get", "accumulate", "bounds")
def an_access_touches_several_stretches(rank: OscRank) -> None:
    """Two that touch and one behind a gap, which is as it was; and nothing is moved where the last one has been taken away."""
    MPI = rank.MPI
    right, left = (rank.rank + 1) % rank.size, (rank.rank - 1) % rank.size
    for flavor, opened in rank.everywhere(1):
        if flavor != "dynamic":
            continue
        win, memory = opened.win, memoryview(bytearray(WIDTH * 400))
        parts = [memory[: WIDTH * 100], memory[WIDTH * 100 : WIDTH * 200], memory[WIDTH * 300 :]]
        for part in parts:
            win.Attach(part)
        bases = rank.comm.allgather(MPI.Get_address(memory))
        elements = MPI.LONG_LONG.Create_hindexed([4, 2], [WIDTH * 98, WIDTH * 300]).Commit()
        there, got, words = (bases[right], 1, elements), numbers(0, 6), f"elements in three stretches of rank {right}'s"
        win.Lock_all()
        win.Put(numbers(1000 * rank.rank, 6), right, there)
        win.Flush(right)
        win.Accumulate(numbers(1, 6), right, there)
        win.Flush(right)
        win.Get(got, right, there)
        win.Unlock_all()
        rank.compare(got, [1000 * rank.rank + 1 + 2 * number for number in range(6)], "dynamic", words)
        rank.meet()
        wanted = array(CODE, [0]) * 400
        wanted[98:102] = array(CODE, [1000 * left + 1 + 2 * number for number in range(4)])
        wanted[300:302] = array(CODE, [1000 * left + 9, 1000 * left + 11])
        rank.compare(memory.cast(CODE), wanted, "dynamic", f"three stretches and a gap, after accesses of rank {left}")
        win.Detach(parts.pop())
        rank.meet()
        win.Lock(right)
        for access in (win.Put, win.Get, win.Accumulate):

            def accessed(access: Callable[..., object] = access) -> None:
                access(got, right, there)  # noqa: B023
                win.Flush(right)  # noqa: B023

            before = list(got)
            rank.refused("dynamic", ["ERR_RMA_RANGE"], f"{words}, one of which was detached", accessed)
            rank.compare(got, before, "dynamic", "the origin's memory after a refused access")
        win.Unlock(right)
        rank.meet()
        rank.compare(memory.cast(CODE), wanted, "dynamic", "memory after refused accesses, a piece of which was attached")
        for part in parts:
            win.Detach(part)
        elements.Free()
