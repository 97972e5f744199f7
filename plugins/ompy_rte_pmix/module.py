"""A job that a PMIx server has started.

What a rank publishes stays with the server of its host until a peer asks for it: fences move no data, but under Slurm.  Since
a server may let who asks for what is not there wait for it, each fence publishes the names of all that there is:

    key  "ompy.card"   -> the value
    key  "ompy.2"      -> "secret card"        what there is after the second fence
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]
import os
import time

from ompy.core.errors import ERR_INTERN, ERR_SPAWN, SUCCESS, MPIError
from ompy.core.progress import serve_until_readable
from ompy.mca.last_words import say
from ompy.mca.rte import Rte, Started
from ompy_rte_pmix.client import JOB_END, LONGEST_KEY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn

    from ompy.mca.own_launcher import OwnLauncher
    from ompy.mca.rte import Order
    from ompy_rte_pmix.client import Client
    from ompy_rte_pmix.operation import Operation

SECRET_BYTES = 32
SECRET_KEY = "secret"
# Beyond which a peer's values, or a server's answer, are given up, in seconds; processes take longer to start.
PATIENCE, START = 60.0, 120.0
# Namespaces of Slurm's, whose servers (22.05) let the ranks of a node through a fence without those of the others, unless they
# swap data in it; they hold the key-value spaces of PMI whole as well.
SLURM = "slurm.pmix."
# For which servers may say that there is nothing where there is something, and the first time until they are asked again.
LAG, LEAST_PAUSE = 10.0, 0.001
LOST_FENCE = 2.0  # after which a fence in which a rank has died may have been lost
NOTICE = 5.0  # in which libpmix sees that its server has gone
MOST_RANKS = 1 << 28
# In the environment of spawned processes.
PARENT_PORT = "OMPY_PARENT_PORT"
PARENTS_ELSEWHERE = "OMPY_PARENTS_ELSEWHERE"
# What names this rank, and leads to its server.
HEIRLOOMS = ("PMIX_NAMESPACE", "PMIX_RANK", "PMIX_SERVER_", "PMIX_ID", "PMIX_DSTORE", "PMIX_GDS_MODULE")
SIGNALLED = 128  # the exit code of who was killed by signal N is this and N


class PmixRte(Rte):
    """This process's place in a job that a PMIx server started.

    Parameters:
        client: connected.
        spawn_by: who starts the processes of `spawn`: "server", "own" launcher, or "auto".
        map_by: for the server's mapper of them.
    """

    def __init__(self, client: Client, spawn_by: str, map_by: str) -> None:
        self.client = client
        self.spawn_by = spawn_by
        self.map_by = map_by
        # Jobs that have ended, while some are being started; those that were, until they have met this one.
        self.ended: dict[str, str] | None = None
        self.awaited: set[str] = set()
        self.launcher: OwnLauncher | None = None
        self.job, self.rank = client.nspace, client.rank
        self.descriptor = client.descriptor
        self.size = self._number(-1, "pmix.job.size", 1, MOST_RANKS)
        self.local_size = self._local_size()
        self.local_rank = self._number(self.rank, "pmix.lrank", 0, self.local_size - 1)
        self.fences = 0
        self.entered: list[Operation] = []  # fences, of which the first that is answered counts
        self.known: frozenset[int] = frozenset()  # ranks that had failed when the first of them was entered
        self.left_out: frozenset[int] = frozenset()  # ranks whose death has been answered by a fence of the others
        self.names: list[str] = []
        self.failed: set[tuple[str, int]] = set()
        self.parent = os.getppid()
        self.parent_port = os.environ.pop(PARENT_PORT, "")
        self.parents_elsewhere = os.environ.pop(PARENTS_ELSEWHERE, "") == "yes"
        # They stand for this rank: a program that is started from here is none, and may have a launcher of its own.
        for name in [name for name in os.environ if name.startswith(HEIRLOOMS)]:
            del os.environ[name]
        if self.rank == 0:
            self.put(SECRET_KEY, os.urandom(SECRET_BYTES))
        self._meet()
        self.secret = self.get(0, SECRET_KEY)

    def _number(self, rank: int, key: str, least: int, most: int) -> int:
        """What the launcher says of a rank, or of the whole job (-1)."""
        found = self.client.get(rank, key, PATIENCE, at_hand=True)
        if not isinstance(found, int) or not least <= found <= most:
            raise MPIError(ERR_INTERN, f"the PMIx server says {found!r} of {key}; a number from {least} to {most} was expected")
        return found

    def _local_size(self) -> int:
        if isinstance(peers := self.client.get(-1, "pmix.lpeers", PATIENCE, at_hand=True), bytes):
            return len(peers.split(b","))
        return self._number(-1, "pmix.local.size", 1, self.size)

    # -- what ranks publish, and where they meet

    def put(self, key: str, value: bytes) -> None:
        self.client.put(f"ompy.{key}", value)
        if key not in self.names:
            self.names.append(key)

    def commit_and_fence(self) -> None:
        # The first fence is the secret's, the second that of the initialisation.
        self._meet(serve_until_readable if self.fences > 1 else None)

    def _meet(self, serve: Callable[[int, float], object] | None = None) -> None:
        collect = self.job.startswith(SLURM)
        if not self.entered:
            self.known = self._failed_here()
            self.client.put(f"ompy.{self.fences + 1}", " ".join(self.names).encode())
            self.client.commit()
            self.entered.append(self.client.begin_fence(collect))
        # Who was called away by a signal's handler, and comes again, is in it already.
        before = self.known
        while not any(self.client.end_fence(it, LOST_FENCE / len(self.entered), serve) for it in self.entered):
            # Ranks come when they come.  But a server that sees one die on its way to a fence may lose it (PRRTE does, one in
            # ten): the others enter one of their own as well, once for each death, and wait for either.
            failed = self._failed_here()
            if failed == before and failed != self.left_out:
                survivors = [rank for rank in range(self.size) if rank not in failed]
                self.entered.append(self.client.begin_fence(collect, survivors))
                self.left_out = failed
            before = failed
        self.entered.clear()
        # Who died in this fence, others may have seen die in the next one.
        self.left_out = self.known
        self.fences += 1

    def _failed_here(self) -> frozenset[int]:
        """Ranks of this job that have failed, as far as the server has told."""
        return frozenset(rank for job, rank in self.failed if job == self.job) | self.client.unheard()

    def get(self, rank: int, key: str) -> bytes:
        if not 0 <= rank < self.size:
            raise MPIError(ERR_INTERN, f"there is no rank {rank} in job {self.job}, of {self.size} ranks")
        # Nobody answers for the dead: what they have published is here already, or lost.
        at_hand = (self.job, rank) in self.failed
        if not at_hand and key not in self._value(rank, str(self.fences)).decode().split(" "):
            raise MPIError(ERR_INTERN, f"rank {rank} has published nothing under {key} in job {self.job}")
        return self._value(rank, key, at_hand)

    def _value(self, rank: int, key: str, at_hand: bool = False) -> bytes:
        """What is known to be there; a server of another host's may not have heard of it yet."""
        end = time.monotonic() + (0 if at_hand else LAG)
        pause = LEAST_PAUSE
        while (found := self.client.get(rank, f"ompy.{key}", PATIENCE, at_hand)) is None and time.monotonic() < end:
            time.sleep(pause)
            pause *= 2
        if not isinstance(found, bytes):
            raise MPIError(ERR_INTERN, f"what rank {rank} has published under {key} in job {self.job} is not to be had")
        return found

    # -- what becomes of ranks

    def listen(self) -> list[tuple[str, int, str]]:
        told = []
        # Who is told of his parent's end by a signal may be here before libpmix has seen the server's, where these are one.
        parent, self.parent = self.parent, os.getppid()
        for job, rank, status, code in self.client.events(NOTICE if parent != self.parent else 0):
            if status == JOB_END:
                told += self._hear_of_end(job, code)
                continue
            if (job, rank) in self.failed or rank >= (self.size if job == self.job else MOST_RANKS):
                continue
            self.failed.add((job, rank))
            told.append((job, rank, self._end(status, code)))
        return told

    def _hear_of_end(self, job: str, code: int | None) -> list[tuple[str, int, str]]:
        """A whole job has ended, as each does: that is a failure only of one that has not yet met those who wait for it."""
        how = self._end(JOB_END, code) if code is not None and code > 0 else "has ended"
        if self.ended is not None:
            self.ended[job] = how  # its name comes with the answer, which may be later
        return [(job, 0, how)] if job in self.awaited else []

    def tell_connected(self, jobs: Sequence[str]) -> None:
        self.awaited.difference_update(jobs)

    def _end(self, status: int, code: int | None) -> str:
        if code is None or not code:
            return f"has failed: {self.client.words(status)}"
        if SIGNALLED < code <= SIGNALLED + signal.NSIG:
            return f"was killed by signal {code - SIGNALLED}"
        return f"exited with status {code}"

    def abort(self, code: int, message: str) -> NoReturn:
        try:
            say(f"ompy: rank {self.rank}: {message}\n" if message else "")
            self.client.abort(code, message)
        finally:
            os._exit(code & 0xFF or 1 if code else 0)

    def outlive_launcher(self) -> NoReturn:
        try:
            say(f"ompy: rank {self.rank}: the launcher has gone, ending\n")
        finally:
            os._exit(1)

    def leave_to_parent(self) -> None:
        self.client.close()
        self.descriptor = -1
        if self.launcher is not None:
            self.launcher.leave_to_parent()

    def finalize(self) -> None:
        if self.launcher is not None:
            self.launcher.finalize()
        self.client.finalize()
        self.descriptor = -1

    # -- other processes

    @property
    def appnum(self) -> int:
        """Number of this process's program among those of the command line; asked for by the few that want to know."""
        return self._number(self.rank, "pmix.appnum", 0, MOST_RANKS)

    @property
    def universe_size(self) -> int:
        try:
            return max(self.size, self._number(-1, "pmix.univ.size", 1, MOST_RANKS))
        except MPIError:
            return self.size  # servers need not say

    def spawn(self, orders: Sequence[Order], port: str) -> Started:
        # PRRTE (3.0) loses one in some tens of those that several ranks ask for at once: a new rank's question to another
        # host's server is never answered, or a caller gets another's answer.
        by_server = self.size == 1 or any(order.info.get("host") for order in orders)
        if self.spawn_by == "own" or (self.spawn_by == "auto" and not by_server):
            return self._spawn_here(orders, port)
        environment = [f"{PARENT_PORT}={port}", f"{PARENTS_ELSEWHERE}={'no' if self.is_on_one_host else 'yes'}"]
        self.ended = {}
        try:
            job = self.client.spawn(orders, environment, self.map_by, START, serve_until_readable)
            if job is None:  # Slurm's (22.05) starts nothing
                return self._spawn_here(orders, port)
            # Of several hosts the name may be that of another caller's.
            if self.local_size == self.size:
                if how := self.ended.get(job):
                    raise MPIError(ERR_SPAWN, f"{orders[0].command}: its rank 0 {how} before it met those who have spawned it")
                self.awaited.add(job)
        finally:
            self.ended = None
        return Started(job, [SUCCESS] * sum(order.count for order in orders))

    def _spawn_here(self, orders: Sequence[Order], port: str) -> Started:
        if self.launcher is None:
            from ompy.mca.own_launcher import OwnLauncher

            self.launcher = OwnLauncher(self.job, self.is_on_one_host)
        return self.launcher.spawn(orders, port)

    def cancel_spawn(self, port: str) -> None:
        if self.launcher is not None:
            self.launcher.cancel_spawn(port)

    def publish(self, service: str, port: str) -> bool:
        if self.lookup(service):
            return False  # PRRTE would let one hide the other
        try:
            self.client.publish(name_of(service), port, PATIENCE)
        except MPIError:
            return False  # a server need not keep names: Slurm's does not
        return True

    def lookup(self, service: str) -> str:
        try:
            return self.client.lookup(name_of(service), PATIENCE)
        except MPIError:
            return ""

    def unpublish(self, service: str) -> bool:
        try:
            self.client.unpublish(name_of(service), PATIENCE)
        except MPIError:
            return False
        return True


def name_of(service: str) -> str:
    """A service's name as a key of PMIx's."""
    name = f"ompy-name.{service}"
    if len(name.encode("utf-8", "backslashreplace")) > LONGEST_KEY or "\0" in name:
        from hashlib import sha256

        return f"ompy-name-sha256.{sha256(service.encode('utf-8', 'backslashreplace')).hexdigest()}"
    return name
