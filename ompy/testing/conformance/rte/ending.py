"""What ends a job, well or not, and what the launcher says meanwhile."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from hashlib import sha256

from ompy.testing.conformance.check import Breach, Collection, Unsuitable
from ompy.testing.conformance.rte.rank import PAUSE, RteRank
from ompy.testing.conformance.wire import LAUNCHERS_PID

check = Collection()

STATUS, WORDS = 7, "the kit has seen enough"
NOTHING_SAID = 200  # calls
# How a forked child ends.
RAISES, OPEN = 1, 2
WRONG = {RAISES: "raises", OPEN: "leaves `descriptor` open in the child"}


def readable(descriptor: int) -> bool:
    watched = select.poll()
    watched.register(descriptor, select.POLLIN)
    return bool(watched.poll(0))


@check("listen")
def nothing_is_heard_where_nothing_is_said(rank: RteRank) -> None:
    rank.fence()
    rank.meet()
    if rank.rte.descriptor >= 0 and readable(rank.rte.descriptor):
        raise Breach("listen", "`descriptor` is readable, and the launcher has said nothing")
    for _ in range(NOTHING_SAID):
        if told := rank.rte.listen():
            raise Breach("listen", f"nothing has happened, and `listen` tells of {told}")
    rank.fence()
    rank.meet()


@check("fork", forks=True)
def a_forked_child_lets_go(rank: RteRank) -> None:
    """The parent goes on."""
    before = rank.rte.descriptor
    inode = os.fstat(before).st_ino if before >= 0 else -1
    rank.fence(**{"kit.before": b"fork"})
    child = os.fork()
    if not child:
        wrong = RAISES
        try:
            rank.rte.leave_to_parent()
            wrong = OPEN * still_open(before, inode)
        finally:
            os._exit(wrong)
    status = ended(rank, child)
    if status is None:
        raise Breach("fork", f"`leave_to_parent` does not return in {rank.patience:g} s")
    if status:
        what = WRONG.get(os.waitstatus_to_exitcode(status), "kills the child")
        raise Breach("fork", f"`leave_to_parent` {what}")
    rank.fence(**{"kit.after": b"fork"})
    for peer in range(rank.size):
        if rank.rte.get(peer, "kit.after") != b"fork":
            raise Breach("fork", f"after a fork, what rank {peer} publishes does not come")
    rank.meet()


def still_open(descriptor: int, inode: int) -> bool:
    try:
        return descriptor >= 0 and os.fstat(descriptor).st_ino == inode
    except OSError:
        return False


def ended(rank: RteRank, child: int) -> int | None:
    """How a child has ended; None for one that had to be killed."""
    found: list[int] = []

    def has() -> bool:
        pid, status = os.waitpid(child, os.WNOHANG)
        found.extend([status] * bool(pid))
        return bool(pid)

    if rank.until(has):
        return found[0]
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


@check("finalize", "quiet", last=True, exits=0)
def ranks_leave_one_after_the_other(rank: RteRank) -> None:
    """The job has then ended well."""
    rank.fence()
    descriptor = rank.rte.descriptor
    inode = os.fstat(descriptor).st_ino if descriptor >= 0 else -1
    # Who leaves first is not waited for by those who have not.
    for turn in range(rank.processes):
        if rank.wire.rank == turn:
            rank.rte.finalize()
            if still_open(descriptor, inode):
                raise Breach("finalize", "after `finalize` the descriptor is still open")
        rank.alive()
        rank.meet()
    rank.leave()
    sys.exit(0)


@check("identity", last=True)
def another_job_has_another_name_and_secret(rank: RteRank) -> None:
    """Of one rank, which the last one starts."""
    if rank.rank == rank.size - 1:
        other = rank.elsewhere(*rank.launcher)
        if other["reason"]:
            raise Breach("open", f"it does not serve a rank that its launcher has started: {other['reason']}")
        if other["size"] != 1:
            raise Breach("identity", f"in a job of one rank `size` is {other['size']}")
        if other["job"] == rank.rte.job:
            raise Breach("identity", f"two jobs at the same time are both called {other['job']}")
        if other["secret"] == sha256(rank.rte.secret).hexdigest():
            raise Breach("identity", "two jobs have the same secret")
    rank.meet()


@check("abort", last=True, exits=STATUS, tells=WORDS)
def abort_ends_every_rank(rank: RteRank) -> None:
    """While the others are in a fence, or have not heard of it."""
    rank.fence()
    rank.leave()
    if rank.rank == 0:
        rank.rte.abort(STATUS, WORDS)
        raise Breach("abort", "`abort` returns")
    if rank.rank == 1:
        rank.rte.commit_and_fence()
    rank.stay()


@check("orphans", last=True, forks=True, exits=-signal.SIGKILL)
def ranks_do_not_outlive_their_launcher(rank: RteRank) -> None:
    """Which is killed."""
    if not rank.launcher:
        raise Unsuitable("each process is a job of its own, and has no launcher")
    rank.fence()
    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            rank.rte.outlive_launcher()
        finally:
            os._exit(0)
    if not (status := ended(rank, child)):
        raise Breach("orphans", f"`outlive_launcher` {'does not return' if status is None else 'ends with 0, or not at all'}")
    rank.leave()
    if rank.rank == 0:
        os.kill(rank.wire.setting.options[LAUNCHERS_PID], signal.SIGKILL)
    end = time.monotonic() + rank.patience
    while time.monotonic() < end:
        try:
            rank.rte.listen()
        except EOFError:
            rank.rte.outlive_launcher()
        time.sleep(PAUSE)
    raise Breach("orphans", f"the launcher was killed, and {rank.patience:g} s later `listen` raises no EOFError")
