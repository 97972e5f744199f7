"""Windows of which a rank has failed, in jobs that go on: who waits for it is told, and the others still reach one another."""

from __future__ import annotations

import pytest
from test_recovery import survive, survivors

SETUP = """
import numpy
memory = numpy.zeros(4)
win = MPI.Win.Create(memory, 8, comm=comm)
def ranks(*those):
    return comm.group.Incl(those)
def reach(target):
    win.Lock(target)
    win.Put(numpy.ones(1), target)
    win.Unlock(target)
def refused(call):
    try:
        call()
    except MPI.Exception as error:
        assert error.Get_error_class() == MPI.ERR_PROC_FAILED, error
    else:
        raise AssertionError("done")
win.Fence()
win.Fence(MPI.MODE_NOSUCCEED)
"""
COMPONENTS = {
    "messages": ("--mca", "osc", "pt2pt"),
    "messages over a network": ("--mca", "osc", "pt2pt", "--mca", "btl", "self,tcp"),
    "in place": ("--mca", "osc", "sm"),
    "remote access": ("--mca", "osc", "rdma"),
}
by_every_component = pytest.mark.parametrize("options", COMPONENTS.values(), ids=COMPONENTS)


@by_every_component
def test_a_lock_that_a_failed_rank_holds_is_an_error_for_whoever_wants_it(options: tuple[str, ...]) -> None:
    told = survivors(survive(SETUP + "if rank == 1: win.Lock(2)\ncomm.Barrier()", "win.Lock(2)", *options))
    assert all(words.startswith("True") and "has died while it held the lock of rank 2" in words for words in told.values())


@by_every_component
@pytest.mark.parametrize("call", ["win.Post(ranks(1)), win.Wait()", "win.Start(ranks(1)), win.Get(memory, 1)", "win.Fence()"])
def test_who_waits_for_a_failed_rank_alone_is_told(options: tuple[str, ...], call: str) -> None:
    assert all(words.startswith("True") for words in survivors(survive(SETUP, call, *options)).values())


@by_every_component
def test_who_has_met_in_vain_reaches_the_others_all_the_same(options: tuple[str, ...]) -> None:
    setup = SETUP + (
        "def meet():\n"
        "    for _ in range(2): refused(win.Fence)\n"
        "    reach({0: 2, 2: 3, 3: 0}[rank])\n"
        "    win.Post(ranks({0: 2, 2: 3, 3: 0}[rank]))\n"
        "    win.Start(ranks({2: 0, 3: 2, 0: 3}[rank]))\n"
        "    win.Complete()\n"
        "    win.Wait()\n"
    )
    assert set(survivors(survive(setup, "meet()", *options)).values()) == {"done"}


@by_every_component
def test_who_can_not_lock_all_ranks_holds_none(options: tuple[str, ...]) -> None:
    setup = SETUP + (
        "def lock():\n"
        "    if rank == 0:\n"
        "        try: win.Lock_all(), win.Unlock_all()\n"
        "        except MPI.Exception: pass\n"
        "        comm.send(None, 2)\n"
        "    if rank == 2: comm.recv(source=0), reach(3), reach(2)\n"
    )
    assert set(survivors(survive(setup, "lock()", *options)).values()) == {"done"}


@by_every_component
@pytest.mark.parametrize("first", [3, 1])
def test_who_waits_beside_a_rank_that_fails_gets_the_lock(options: tuple[str, ...], first: int) -> None:
    # Rank 0 holds the lock of its own memory; ranks 3 and 1 wait for it, one behind the other, and rank 1 fails.
    setup = SETUP + (
        f"first, second = {first}, {4 - first}\n"
        "from threading import Thread\n"
        "if rank == 0: win.Lock(0)\n"
        "comm.Barrier()\n"
        "def ask():\n"
        "    win.Lock(0)\n"
        "    win.Unlock(0)\n"
        "asking = Thread(target=ask, daemon=rank == 1)\n"
        "if rank == first: asking.start(), time.sleep(0.2), comm.send(None, second)\n"
        "if rank == second: comm.recv(source=first), asking.start(), time.sleep(0.2), comm.send(None, first)\n"
        "if rank == first: comm.recv(source=second)\n"
        "def turn():\n"
        "    if rank == 0:\n"
        "        try: comm.recv(source=1)\n"
        "        except MPI.Exception: pass\n"
        "        win.Unlock(0)\n"
        "    if rank == 3: asking.join()\n"
    )
    job = survive(setup, "turn()", *options)
    assert set(survivors(job).values()) == {"done"}
    assert "has died while it held" not in job.stderr


@by_every_component
def test_an_epoch_that_a_failed_rank_does_not_complete_is_over(options: tuple[str, ...]) -> None:
    setup = SETUP + (
        "def expose():\n"
        "    if rank == 0:\n"
        "        win.Post(ranks(1))\n"
        "        refused(win.Wait)\n"
        "        win.Post(ranks(2))\n"
        "        win.Wait()\n"
        "        assert memory[0] == 1\n"
        "    if rank == 2:\n"
        "        win.Start(ranks(0))\n"
        "        win.Put(numpy.ones(1), 0)\n"
        "        win.Complete()\n"
    )
    assert set(survivors(survive(setup, "expose()", *options)).values()) == {"done"}


@by_every_component
def test_who_has_locked_all_ranks_gives_the_others_back_when_one_has_failed(options: tuple[str, ...]) -> None:
    setup = SETUP + (
        "if rank == 0: win.Lock_all()\n"
        "comm.Barrier()\n"
        "def unlock():\n"
        "    if rank == 0:\n"
        "        try: comm.recv(source=1)\n"
        "        except MPI.Exception: pass\n"
        "        try: win.Unlock_all()\n"
        "        except MPI.Exception as error: assert error.Get_error_class() == MPI.ERR_PROC_FAILED, error\n"
        "        comm.send(None, 2)\n"
        "    if rank == 2: comm.recv(source=0), reach(3), reach(2)\n"
    )
    assert set(survivors(survive(setup, "unlock()", *options)).values()) == {"done"}


@by_every_component
@pytest.mark.parametrize("kind", ["SHARED", "EXCLUSIVE"])
def test_who_waits_behind_a_failed_rank_s_lock_is_told_or_has_its_turn(options: tuple[str, ...], kind: str) -> None:
    # Rank 0 asks for rank 2's memory before rank 1 dies, rank 3 at about that time: one shares, the other excludes.
    setup = SETUP + (
        f"held = MPI.LOCK_{kind}\n"
        "if rank == 1: win.Lock(2, MPI.LOCK_SHARED)\n"
        "comm.Barrier()\n"
        "if rank == 0: comm.send(None, 1), comm.send(None, 3)\n"
        "if rank == 3: comm.recv(source=0)\n"
        "if rank == 1: comm.recv(source=0)\n"
        "def turn():\n"
        "    if rank in (0, 3):\n"
        "        win.Lock(2, MPI.LOCK_SHARED if rank == 3 else held)\n"
        "        win.Unlock(2)\n"
    )
    told = survivors(survive(setup, "turn()", *options))
    assert told[2] == "done"
    # Beside a sharer that has died others may share, and nobody excludes anybody.
    assert all(words == "done" or words.startswith("True") for words in told.values())
    assert kind == "EXCLUSIVE" or told[0] == told[3] == "done"


@by_every_component
def test_an_epoch_goes_on_for_the_others_when_one_of_its_ranks_has_failed(options: tuple[str, ...]) -> None:
    setup = SETUP + (
        "def expose():\n"
        "    if rank == 0:\n"
        "        win.Post(ranks(1, 2))\n"
        "        refused(lambda: comm.recv(source=1))\n"
        "        assert not any(win.Test() for _ in range(1000))\n"
        "        comm.send(None, 2)\n"
        "        refused(win.Wait)\n"
        "        assert memory[0] == 1\n"
        "    if rank == 2:\n"
        "        comm.recv(source=0)\n"
        "        win.Start(ranks(0))\n"
        "        win.Put(numpy.ones(1), 0)\n"
        "        win.Complete()\n"
    )
    assert set(survivors(survive(setup, "expose()", *options)).values()) == {"done"}


@by_every_component
def test_who_completes_towards_a_failed_rank_and_another_tells_that_one(options: tuple[str, ...]) -> None:
    setup = SETUP + (
        "if rank in (1, 2): win.Post(ranks(0))\n"
        "if rank == 0: win.Start(ranks(1, 2))\n"
        "def end():\n"
        "    if rank == 0:\n"
        "        win.Put(numpy.ones(1), 2)\n"
        "        try: win.Complete()\n"
        "        except MPI.Exception as error: assert error.Get_error_class() == MPI.ERR_PROC_FAILED, error\n"
        "    if rank == 2:\n"
        "        win.Wait()\n"
        "        assert memory[0] == 1\n"
    )
    assert set(survivors(survive(setup, "end()", *options)).values()) == {"done"}


@by_every_component
@pytest.mark.parametrize("call", ["win.Lock(1), win.Unlock(1)", "win.Lock_all(), win.Flush(1), win.Unlock_all()"])
@pytest.mark.parametrize("flavor", ["win", "allocated"])
def test_who_locks_or_flushes_the_memory_of_a_rank_that_has_gone_is_told(
    options: tuple[str, ...], call: str, flavor: str
) -> None:
    # Memory on the host is there as long as somebody sees it: a few calls later it is known.
    setup = SETUP + (
        "allocated = MPI.Win.Allocate(8, comm=comm)\n"
        "def access():\n"
        "    try: comm.recv(source=1)\n"
        "    except MPI.Exception: pass\n"
        f"    for _ in range(100): {call.replace('win', flavor)}\n"
    )
    assert all(words.startswith("True") for words in survivors(survive(setup, "access()", *options, before="")).values())
