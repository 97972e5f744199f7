"""A rank is killed while others wait for it in a window: they are told soon, and who it was."""

from __future__ import annotations

import re

import pytest
from launching import launch, mpi

# The launcher would end the job at once: it is stopped until the others have seen for themselves.
PROGRAM = """
win = MPI.Win.Allocate(1 << 20, 8, comm=comm)
group = win.group.Incl([1 - rank])
if rank == 1:
    {before}
    os.kill(os.getppid(), signal.SIGSTOP)
    comm.Send(b"x", 0)
    os.kill(os.getpid(), signal.SIGKILL)
comm.Recv(bytearray(1), 1)
try:
    {wait}
except MPI.Exception as error:
    assert error.Get_error_class() == MPI.ERR_PROC_FAILED
    print(error, flush=True)
{after}
os.kill(os.getppid(), signal.SIGCONT)
"""
PLACES = {
    "a lock": ("win.Lock(0)", "win.Lock(0)", "win.Lock(1); win.Unlock(1)"),
    "a shared lock": ("win.Lock_all()", "win.Lock(1)", ""),
    "all locks": ("win.Lock(0)", "win.Lock_all()", "win.Lock(1); win.Unlock(1)"),
    "a fence": ("win.Fence", "win.Fence()", ""),
    "an exposure": ("win.Start", "win.Post(group); win.Wait()", ""),
    "an access": ("win.Post", "win.Start(group); win.Get(bytearray(8), 1)", ""),
    "the end": ("win.Fence", "win.Free()", ""),
}


# Who meets in a collective, at a fence or the end, is told by that.
NAMED = {
    "sm": r"rank 1 of the window \(process \d+\) has died",
    "portals": r"rank 1 of (the window \(process \d+\)|job \S+\)) has died",
}


@pytest.mark.parametrize("component", NAMED)
@pytest.mark.parametrize("place", PLACES)
def test_the_dead_are_named(place: str, component: str) -> None:
    before, wait, after = PLACES[place]
    # On portals the memory of the dead is gone with its kernel.
    source = PROGRAM.format(before=before, wait=wait, after=after if component == "sm" else "")
    job = launch("-n", "2", "--timeout", "20", "--mca", "osc", component, *mpi(source))
    assert re.search(NAMED[component], job.stdout), job.stdout + job.stderr
    assert "killed by SIGKILL" in job.stderr


ENDING = """
import ctypes, threading
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.munmap.argtypes = ctypes.c_void_p, ctypes.c_size_t
place = libc.mmap(None, ctypes.c_size_t(1 << 20), 3, 0x22, -1, ctypes.c_long(0))
win = MPI.Win.Create((ctypes.c_char * (1 << 20)).from_address(place), 1, comm=comm)
if rank == 1:
    os.kill(os.getppid(), signal.SIGSTOP)
    libc.munmap(place, 1 << 20)
    comm.Send(b"x", 0)
    # Out of MPI, and without its memory, until the other one has found that.
    signal.sigwait({{signal.SIGUSR1}})
    os._exit(0)
comm.Recv(bytearray(1), 1)
win.Lock(1)
threading.Timer(0.1, lambda: os.kill({pid}, signal.SIGUSR1)).start()
try:
    win.Put(bytes(1 << 20), 1)
    win.Unlock(1)
except MPI.Exception as error:
    assert error.Get_error_class() == MPI.ERR_PROC_FAILED
    print(error, flush=True)
os.kill(os.getppid(), signal.SIGCONT)
"""


def test_who_has_lost_its_memory_a_moment_before_it_is_gone_has_died() -> None:
    source = "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])\npid = comm.allgather(os.getpid())[1]\n"
    job = launch("-n", "2", "--timeout", "20", "--mca", "osc", "sm", *mpi(source + ENDING.format(pid="pid")))
    assert re.search(NAMED["sm"], job.stdout), job.stdout + job.stderr


# -- in the middle of a lock, an accumulate and a fence, where no call can be caught: the victim leaves the words that its ranks
#    share (`rank_state.pxd`) as they are there, and is killed

STATES = """
import ctypes, gc, select
size = comm.size
window = next(it for it in gc.get_objects() if type(it).__name__ == "SmWindow")
lines = lambda nbytes: -(-nbytes // 64) * 64
stride = lines(320 + 8 * size) + 2 * lines(4 * size) + 128 * size
HELD, EXCLUSIVE, TICKET = 4, 1, 8


def word(target, offset, kind=ctypes.c_uint32):
    return kind.from_address(window.words_address + 128 + target * stride + offset)


guard, exclusive, sharing, waiting = (word(0, offset) for offset in (0, 4, 8, 12))
tickets, combining, first_met = word(0, 16, ctypes.c_uint64), word(0, 64), word(rank, 192, ctypes.c_uint64)
turns = [word(0, 320 + 8 * each, ctypes.c_uint64) for each in range(size)]


def stands_in_line(rank):
    while not turns[rank].value:
        comm.Iprobe()


def await_end(rank):  # of the victim: what is handed to it before has reached somebody alive
    victim = os.pidfd_open(comm.recv(source=rank))
    select.select([victim], [], [])
"""
MIDDLE = """
win = MPI.Win.Allocate(1 << 16, 8, comm=comm)
memory = memoryview(win.tomemory()).cast("q")
exec(STATES)
comm.Barrier()
{before}
comm.Barrier()
if rank == 2:
    {middle}
    os.kill(os.getppid(), signal.SIGSTOP)
    comm.send(os.getpid(), 0)
    comm.send(os.getpid(), 1)
    os.kill(os.getpid(), signal.SIGKILL)
try:
    {others}
    print("served", rank, flush=True)
except MPI.Exception as error:
    assert error.Get_error_class() == MPI.ERR_PROC_FAILED
    print(f"rank {{rank}} told: {{error}}", flush=True)
comm.Send(b"x", 1 - rank)
comm.Recv(bytearray(1), 1 - rank)
os.kill(os.getppid(), signal.SIGCONT)
"""
GONE = "await_end(2)"
LOCK = f"{GONE}; win.Lock(0); win.Unlock(0)"
DRAW = "guard.value = 3; tickets.value += 1; waiting.value += 1"
TURN = "turns[2].value = tickets.value * TICKET | EXCLUSIVE"
OWNER_UNLOCKS = f"{GONE}; rank or win.Unlock(0); comm.Sendrecv(b'x', 1 - rank, 0, bytearray(1)); win.Lock(0); win.Unlock(0)"
# Who holds the lock before, what the victim has done, what the others do, and whether they get what they want.
MIDDLES = {
    "a lock: the guard is taken": ("", "guard.value = 3", LOCK, True),
    "a lock: granted, not noted": ("", "guard.value = 3; exclusive.value = 3", LOCK, True),
    "a lock: granted, the guard held": (
        "",
        "guard.value = exclusive.value = 3; turns[2].value = HELD | EXCLUSIVE",
        LOCK,
        False,
    ),
    "a lock: a number drawn": ("rank or win.Lock(0)", DRAW, OWNER_UNLOCKS, True),
    "a lock: in line, the guard held": ("rank or win.Lock(0)", f"{DRAW}; {TURN}", OWNER_UNLOCKS, True),
    "a lock: in line": ("rank or win.Lock(0)", f"{DRAW}; {TURN}; guard.value = 0", OWNER_UNLOCKS, True),
    "an unlock: given back, not counted": ("rank == 2 and win.Lock(0)", "guard.value = 3; turns[2].value = 0", LOCK, True),
    "an unlock: counted, not handed over": (
        "rank == 2 and win.Lock(0)",
        "stands_in_line(0); stands_in_line(1); guard.value = 3; turns[2].value = exclusive.value = 0; waiting.value -= 1",
        "win.Lock(0); win.Unlock(0)",
        True,
    ),
    "an accumulate: begun": ("", "combining.value = 3", f"{GONE}; win.Lock_all(); win.Accumulate(b'x' * 8, 0)", False),
    "an accumulate: half done": (
        "",
        "combining.value = 3; win.Lock_all(); win.Put(b'x' * 8, 0)",
        f"{GONE}; win.Lock_all(); win.Accumulate(b'x' * 1024, 0)",
        False,
    ),
    "a fence: not come to": ("", "pass", f"{GONE}; win.Fence()", False),
    "a fence: come to, nobody woken": (
        "",
        "first_met.value = 1",
        f"{GONE}; win.Fence(); print('one', rank, flush=True); win.Fence()",
        False,
    ),
}


@pytest.mark.parametrize("place", MIDDLES)
def test_who_is_killed_in_the_middle_holds_nobody_up(place: str) -> None:
    before, middle, others, served = MIDDLES[place]
    source = MIDDLE.format(before=before, middle=middle, others=others).replace("exec(STATES)", STATES)
    job = launch("-n", "3", "--timeout", "30", *mpi(source))
    words = job.stdout + job.stderr
    if served:
        assert {line for line in job.stdout.splitlines() if line.startswith("served")} == {"served 0", "served 1"}, words
    else:
        named = r"rank %d told: .*rank 2 of the window \(process \d+\) has died"
        assert all(re.search(named % rank, job.stdout) for rank in (0, 1)), words
    if "nobody woken" in place:
        assert {"one 0", "one 1"} <= set(job.stdout.splitlines()), words
    assert "killed by SIGKILL" in job.stderr


# The target is killed over an order that it has taken out of its mailbox (`mailbox.pxd`): the origin is told.
CLAIMED = """
import numpy
from ompy_osc_sm.mailbox import address
win = MPI.Win.Create(numpy.zeros(8), 8, comm=comm)
comm.Barrier()
if rank == 1:
    import ctypes
    state = ctypes.c_uint32.from_address(address() + 64)
    os.kill(os.getppid(), signal.SIGSTOP)
    while state.value != 1:
        pass
    state.value = 2
    os.kill(os.getpid(), signal.SIGKILL)
win.Lock(1)
errors = 0
while errors < 2:  # no order is given to a target that may still be asleep in the barrier
    try:
        {access}
    except MPI.Exception as error:
        assert error.Get_error_class() == MPI.ERR_PROC_FAILED
        print(error, flush=True)
        errors += 1
os.kill(os.getppid(), signal.SIGCONT)
"""


@pytest.mark.parametrize("access", ["win.Put(numpy.ones(1), 1)", "win.Accumulate(numpy.ones(1), 1)"])
def test_a_target_that_is_killed_over_an_order_is_named(access: str) -> None:
    source = CLAIMED.format(access=access)
    job = launch("-n", "2", "--timeout", "30", "--mca", "osc", "sm", "--mca", "osc_sm_patience", "1e7", *mpi(source))
    assert len(re.findall(NAMED["sm"], job.stdout)) == 2, job.stdout + job.stderr
    assert "killed by SIGKILL" in job.stderr


LEFT = """
import select
win = MPI.Win.Create(bytearray(64), comm=comm)
if rank == 1:
    os.kill(os.getppid(), signal.SIGSTOP)
    comm.send(os.getpid(), 0)
    while True:
        pass
victim = comm.recv(source=1)
gone = os.pidfd_open(victim)
{begin}
{access}
os.kill(victim, signal.SIGKILL)
select.select([gone], [], [])
try:
    {end}
    print("complete", flush=True)
except MPI.Exception as error:
    assert error.Get_error_class() == MPI.ERR_PROC_FAILED
    print(error, flush=True)
{again}
os.kill(os.getppid(), signal.SIGCONT)
"""
LEFT_BY = {
    "a flush": ("win.Lock(1)", "win.Flush(1)", "win.Unlock(1)"),
    "a flush of all": ("win.Lock_all()", "win.Flush_all()", "win.Unlock_all()"),
    "an unlock": ("win.Lock(1)", "win.Unlock(1)", "win.Lock(0); win.Unlock(0)"),
    "an unlock of all": ("win.Lock_all()", "win.Unlock_all()", "win.Lock(0); win.Unlock(0)"),
}


@pytest.mark.parametrize("access", ["win.Put(b'x' * 8, 1)", "win.Get(bytearray(8), 1)"], ids=["put", "get"])
@pytest.mark.parametrize("how", LEFT_BY)
def test_who_dies_over_an_access_that_nobody_has_waited_for_is_named_by_what_waits(how: str, access: str) -> None:
    begin, end, again = LEFT_BY[how]
    source = LEFT.format(begin=begin, access=access, end=end, again=again)
    job = launch("-n", "2", "--timeout", "20", "--mca", "osc", "sm", "--mca", "osc_sm_patience", "1000", *mpi(source))
    assert re.search(NAMED["sm"], job.stdout), job.stdout + job.stderr
    assert "killed by SIGKILL" in job.stderr
