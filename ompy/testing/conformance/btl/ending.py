"""What a transport leaves behind: at its end, in children, and after a peer's sudden death."""

from __future__ import annotations

import contextlib
import gc
import os
import re
import signal
import sys
import time
from collections.abc import Callable
from typing import NoReturn

from ompy.core.errors import MPIError
from ompy.mca import btl as contract
from ompy.testing.conformance.btl.messages import everybody
from ompy.testing.conformance.btl.rank import BtlRank, Sending
from ompy.testing.conformance.btl.remote_memory import Region, Window, attempt, exposed
from ompy.testing.conformance.check import Breach, Collection, Unsuitable
from ompy.testing.conformance.wire import ADDRESS, LEAVING

check = Collection()

MOST_UNDER_WAY = 64
PUSHED = 400  # messages towards a peer that is about to die, at most
AFTER_DEATH = 8
LONGEST_LIFE = 120.0  # seconds that a child lives on at most


@check("fork", forks=True, sole=True)
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
    for name in sorted(named | set(temporary_files(rank.begun))):
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


def temporary_files(begun: float) -> list[str]:
    """What the ranks have put into folders for such files: in their own, and elsewhere under names with this process's id."""
    # Not `tempfile.gettempdir()`, which tries the folder with a file, at its first call in each rank.
    found = [entry.path for entry in os.scandir(os.environ["TMPDIR"])]
    own = re.compile(rf"(?<![^\W_]){os.getpid()}(?![^\W_])")
    for folder in ("/tmp", "/var/tmp", "/dev/shm", os.getcwd()):
        with contextlib.suppress(OSError):
            found += [it.path for it in os.scandir(folder) if own.search(it.name) and it.stat().st_ctime >= begun]
    return found


def files_of_shared_memory() -> set[str]:
    with open("/proc/self/maps") as lines:
        return {line.split(maxsplit=5)[5].strip() for line in lines if " /dev/shm/" in line and "(deleted)" not in line}


@check("close", abroad=True, ranks=2, idle=True)
def what_was_sent_just_before_the_end_arrives(rank: BtlRank) -> None:
    """Each rank in turn sends, and ends as soon as every callback has run and all have met."""
    sizes = [24, 0, min(5000, rank.btl.max_send_size), 100]
    for leaver in range(rank.size):
        rank.meet()
        wanted = 0
        if rank.rank == leaver:
            for number, size in enumerate(sizes):
                for peer in rank.peers.keys() - {leaver}:
                    rank.send(peer, rank.content(leaver, peer, number, size))
            rank.land()
        elif leaver in rank.sources:
            wanted = len(sizes)
        rank.afterthoughts()
        rank.wire.exchange(None)
        if rank.rank == leaver:
            rank.leave()
            rank.wire.exchange(None)
        else:
            rank.receive(wanted)
            found = sorted(arrival.data for arrival in rank.arrived)
            if found != sorted(rank.content(leaver, rank.rank, number, size) for number, size in enumerate(sizes)):
                raise Breach("close", f"what rank {leaver} had sent before its end arrived changed")
            rank.arrived.clear()
            rank.meet()
            rank.leave()
        rank.wire.exchange(None)
        rank.open()
        rank.reach_all()
        rank.reported.clear()


@check("reach", last=True)
def a_peer_that_was_given_up_gets_another_endpoint(rank: BtlRank) -> None:
    rank.transfer(everybody(rank, [100]))
    rank.meet()
    before = rank.peers
    rank.btl.del_procs(list(before.values()))
    after = rank.btl.add_procs(rank.procs)
    for peer, endpoint in before.items():
        if after[peer] is endpoint:
            raise Breach("reach", f"after del_procs, add_procs gave the old endpoint for rank {peer} again")
    rank.meet()


def outlive(rank: BtlRank) -> NoReturn:
    """As a child of a rank: until the job has ended."""
    rank.wire.connection.close()
    end = time.monotonic() + LONGEST_LIFE
    while os.path.exists(os.environ[ADDRESS]) and time.monotonic() < end:
        time.sleep(0.05)
    os._exit(0)


def die(rank: BtlRank) -> NoReturn:
    rank.wire.say(LEAVING)
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def told_of(rank: BtlRank, victim: int) -> bool:
    """Whether the transport has reported a peer; it may find out by sending to it."""
    if not rank.reported:
        push(rank, victim)
    return bool(rank.reported)


@check("broken peer", "completion", ranks=2, abroad=True, last=True)
def the_death_of_a_peer_is_reported(rank: BtlRank) -> None:
    """The last rank is killed, while the others push towards it, which makes no progress any more.

    They are told, stay in touch, and nothing that they send to it waits for ever or is said to have arrived.
    """
    victim = rank.size - 1
    rank.transfer(everybody(rank, [100, 24]))
    rank.meet()
    rank.bereave()
    if rank.component.capabilities.get("lockstep"):
        rank.meet()  # where one that makes no progress holds up all others
    else:
        if rank.rank != victim:
            size, refusals = min(4096, rank.btl.max_send_size), 0
            for _ in range(PUSHED):
                refusals += rank.start(victim, bytes(size)) is None
                if refusals > AFTER_DEATH:
                    break
        rank.wire.exchange(None)
    if rank.rank == victim:
        die(rank)
    clause = rank.clause
    rank.until(lambda: told_of(rank, victim), f"rank {victim} was killed, and register_error's function was not called")
    rank.until(lambda: not rank.flying, f"descriptors on their way to the dead rank {victim} were not completed", own=True)
    late: list[Sending] = []
    for _ in range(AFTER_DEATH):
        rank.until(
            lambda: push(rank, victim, late), f"what is sent to the dead rank {victim} is refused again and again", own=True
        )
    rank.until(lambda: not rank.flying, f"descriptors sent to the dead rank {victim} were not completed", own=True)
    if any(sending.status == 0 for sending in late):
        raise Breach(clause, f"what was sent to rank {victim} after its death had been reported completed with status 0")
    rank.exchange(None)
    lockstep = look_at_reports(rank, victim, clause)
    error = rank.reported[0][1]
    if not isinstance(error, BaseException):
        raise Breach(clause, f"register_error's function was given {error!r}, not an exception")
    if lockstep:
        return
    survivors = [peer for peer in rank.peers if peer != victim]
    for peer in survivors:
        rank.send(peer, b"still here")
    rank.receive(sum(source != victim for source in rank.sources))
    rank.arrived.clear()
    rank.exchange(None)


@check("broken peer", "completion", ranks=2, abroad=True, last=True)
def no_access_to_the_memory_of_a_dead_peer_succeeds(rank: BtlRank) -> None:
    """The last rank is killed; once that has been reported, the others put into its memory and get from there."""
    kinds = [kind for kind, flag in (("put", contract.PUT), ("get", contract.GET)) if rank.btl.flags & flag]
    if not kinds:
        raise Unsuitable("there is neither put nor get")
    victim, clause = rank.size - 1, rank.clause
    alignment = max(getattr(rank.btl, f"{kind}_alignment") for kind in kinds)
    region, local = Region(rank, alignment, alignment), Region(rank, alignment, alignment)
    window = exposed(rank, region)[victim]
    rank.transfer(everybody(rank, [100, 24]))
    rank.meet()
    rank.bereave()
    if rank.rank == victim:
        die(rank)
    rank.until(lambda: told_of(rank, victim), f"rank {victim} was killed, and register_error's function was not called")
    rank.until(lambda: not rank.flying, f"descriptors on their way to the dead rank {victim} were not completed", own=True)
    for kind in kinds:
        late = [attempt_anyway(rank, victim, kind, local, window) for _ in range(AFTER_DEATH)]
        rank.until(lambda: not rank.flying, "descriptors for the memory of the dead were not completed", own=True)
        if any(sending is not None and sending.status == 0 for sending in late):
            raise Breach(
                clause, f"a {kind} of rank {victim}'s memory after its death had been reported completed with status 0"
            )
    look_at_reports(rank, victim, clause)
    region.close()
    local.close()
    rank.exchange(None)


def look_at_reports(rank: BtlRank, victim: int, clause: str) -> bool:
    """Who has died was reported, once, and nobody else; whether all go in lockstep."""
    # In lockstep nobody goes on without the dead rank, so contact with every other is lost as well.
    lockstep = bool(rank.component.capabilities.get("lockstep"))
    told = sorted(peer for peer, _ in rank.reported)
    if told != (sorted(rank.peers) if lockstep else [victim]):
        raise Breach(clause, f"rank {victim} was killed, and reported were {told}")
    return lockstep


def attempt_anyway(rank: BtlRank, victim: int, kind: str, local: Region, window: Window) -> Sending | None:
    """A put or get of the victim's memory; None: it ended by an MPIError."""
    sent: list[Sending] = []
    rank.until(
        lambda: answered(rank, lambda: attempt(rank, kind, victim, local, 0, window, 0, local.size), sent),
        f"a {kind} of the dead rank {victim}'s memory is refused again and again",
        own=True,
    )
    return sent[0] if sent else None


@check("fork", ranks=2, abroad=True, last=True, forks=True, sole=True)
def the_death_of_a_peer_is_reported_though_a_child_of_its_lives_on(rank: BtlRank) -> None:
    """The last rank forks and is killed; its child, which has inherited every descriptor, makes no call and goes on."""
    victim = rank.size - 1
    rank.transfer(everybody(rank, [100, 24]))
    rank.meet()
    if rank.rank == victim:
        if os.fork() == 0:
            outlive(rank)
        die(rank)
    rank.bereave()
    rank.until(
        lambda: told_of(rank, victim), f"rank {victim} was killed, has a child, and register_error's function was not called"
    )
    rank.exchange(None)


def push(rank: BtlRank, victim: int, sent: list[Sending] | None = None) -> bool:
    """Try to send to the victim; whether there was an answer: it was taken, and is noted, or an MPIError raised."""
    if len(rank.flying) >= MOST_UNDER_WAY:
        return True
    return answered(rank, lambda: rank.start(victim, bytes(64)), sent)


def answered(rank: BtlRank, begin: Callable[[], Sending | None], sent: list[Sending] | None) -> bool:
    """Whether what was begun was taken, and is noted, or ended by an MPIError; else it was refused."""
    flying = dict(rank.flying)
    try:
        sending = begin()
    except MPIError:
        rank.flying = {descriptor: sending for descriptor, sending in rank.flying.items() if descriptor in flying}
        return True
    if sending is not None and sent is not None:
        sent.append(sending)
    return sending is not None
