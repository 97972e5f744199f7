"""What a transport leaves behind: at its end, in children, and after a peer's sudden death."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time

from ompy.core.errors import MPIError
from ompy.testing.conformance.btl.messages import everybody
from ompy.testing.conformance.btl.rank import BtlRank
from ompy.testing.conformance.check import Breach, Collection
from ompy.testing.conformance.wire import LEAVING

check = Collection()

MOST_UNDER_WAY = 64


@check("fork")
def a_forked_child_disturbs_nothing(rank: BtlRank) -> None:
    """One child leaves at once, another ends as Python programs end."""
    rank.transfer(everybody(rank, [100]))
    for leave in (os._exit, sys.exit):
        child = os.fork()
        if child == 0:
            leave(0)
        os.waitpid(child, 0)
        rank.transfer(everybody(rank, [100, 5000 % (rank.btl.max_send_size + 1), 24]))


def possessions() -> dict[str, set[str]]:
    """What this process holds of the system."""
    gc.collect()
    open_files = {}
    for number in os.listdir("/proc/self/fd"):
        try:
            open_files[number] = os.readlink(f"/proc/self/fd/{number}")
        except FileNotFoundError:
            continue
    with open("/proc/self/maps") as lines:
        mapped = {line.split(maxsplit=5)[5].strip() for line in lines if "/dev/shm/" in line or "memfd:" in line}
    return {
        "open files": {f"{number} -> {target}" for number, target in open_files.items()},
        "shared memory": mapped,
        "threads": set(os.listdir("/proc/self/task")),
        "processes": children(),
    }


def children() -> set[str]:
    found: set[str] = set()
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/children") as stream:
            found |= set(stream.read().split())
    return found


@check("close", "reopen")
def nothing_is_left_after_the_end(rank: BtlRank) -> None:
    """Opened, used and closed twice: what the second time adds is a leak; after it the transport is open once more."""
    rank.transfer(everybody(rank, [100]))
    rank.close()
    rank.clause = "reopen"
    rank.wire.exchange(None)
    rank.open()
    rank.reach_all()
    rank.transfer(everybody(rank, [0, 100, rank.btl.max_send_size]))
    rank.clause = "close"
    named = files_of_shared_memory()
    rank.close()
    before = possessions()
    rank.wire.exchange(None)
    rank.clause = "reopen"
    rank.open()
    rank.reach_all()
    rank.transfer(everybody(rank, [0, 100, rank.btl.max_send_size]))
    rank.clause = "close"
    named |= files_of_shared_memory()
    rank.close()
    rank.wire.exchange(None)
    after = settled(before)
    for kind, held in after.items():
        if len(held) > len(before[kind]):
            left = ", ".join(sorted(held - before[kind])) or ", ".join(sorted(held))
            raise Breach("close", f"after finalize there are {len(held) - len(before[kind])} more {kind}: {left}")
    for name in sorted(named):
        if os.path.exists(name):
            raise Breach("close", f"after finalize on every rank there is still the file {name}")
    rank.wire.exchange(None)
    rank.clause = "reopen"
    rank.open()
    rank.reach_all()
    rank.transfer(everybody(rank, [100]))


def settled(before: dict[str, set[str]]) -> dict[str, set[str]]:
    """The possessions, once threads that were told to end have had their moment."""
    end = time.monotonic() + 1
    while True:
        after = possessions()
        if time.monotonic() > end or all(len(after[kind]) <= len(before[kind]) for kind in after):
            return after
        time.sleep(0.01)


def files_of_shared_memory() -> set[str]:
    with open("/proc/self/maps") as lines:
        return {line.split(maxsplit=5)[5].strip() for line in lines if " /dev/shm/" in line and "(deleted)" not in line}


@check("broken peer", ranks=2, abroad=True, last=True)
def the_death_of_a_peer_is_reported(rank: BtlRank) -> None:
    """The last rank is killed; the others are told, stay in touch, and nothing that they send to it waits for ever."""
    victim = rank.size - 1
    rank.transfer(everybody(rank, [100, 24]))
    rank.meet()
    if rank.rank == victim:
        rank.wire.say(LEAVING)
        os.kill(os.getpid(), signal.SIGKILL)
    clause = rank.clause
    rank.may_fail = True

    def reported() -> bool:
        if not rank.reported:
            push(rank, victim)
        return bool(rank.reported)

    rank.until(reported, f"rank {victim} was killed, and register_error's function was not called")
    rank.until(lambda: not rank.flying, f"descriptors on their way to the dead rank {victim} were not completed")
    for _ in range(3):
        rank.until(lambda: push(rank, victim), f"what is sent to the dead rank {victim} is refused again and again")
    rank.until(lambda: not rank.flying, f"descriptors sent to the dead rank {victim} were not completed")
    rank.exchange(None)
    # In lockstep nobody goes on without the dead rank, so contact with every other is lost as well.
    lockstep = bool(rank.component.capabilities.get("lockstep"))
    told = sorted(peer for peer, _ in rank.reported)
    if told != (sorted(rank.peers) if lockstep else [victim]):
        raise Breach(clause, f"rank {victim} was killed, and reported were {told}")
    error = rank.reported[0][1]
    if not isinstance(error, BaseException):
        raise Breach(clause, f"register_error's function was given {error!r}, not an exception")
    if lockstep:
        return
    survivors = [peer for peer in rank.peers if peer != victim]
    for peer in survivors:
        rank.send(peer, b"still here")
    senders = [source for source in rank.sources if source != victim]
    rank.until(lambda: len(rank.arrived) >= len(senders), "messages between the survivors are missing")
    rank.arrived.clear()
    rank.exchange(None)


def push(rank: BtlRank, victim: int) -> bool:
    """Try to send to the victim; whether there was an answer: it was taken, or an MPIError raised."""
    flying = dict(rank.flying)
    if len(flying) >= MOST_UNDER_WAY:
        return True
    try:
        return rank.start(victim, bytes(64)) is not None
    except MPIError:
        rank.flying = {descriptor: sending for descriptor, sending in rank.flying.items() if descriptor in flying}
        return True
