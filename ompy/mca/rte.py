"""The contract of run-time environments: who this process is, and how it finds its peers.

Clauses are numbered and named: the conformance kit (`ompy conformance --mca rte NAME`) says which one was broken.

LIFE CYCLE
   1 open          The component's `query` finds its environment (a descriptor, variables) and makes the module, once in a
                   process, or says what is missing.  It waits for no other rank that may not have been started.
   2 identity      `job`, `size` and `secret` are the same on every rank of the job, and no other job's; each `rank` from 0 to
                   `size - 1` is there once.
   3 place         The ranks of a host, `local_size` of them, are counted by `local_rank` from 0 on.
   4 secret        The secret has 16 bytes at least.  Neither the process's command line has it nor its environment.
   5 publish       `put` any number of times, then `commit_and_fence` on every process of the job; after it `get` answers for
                   any rank: bytes of all values and lengths, none at all among them.
   6 missing       `get` raises MPIError, at once, for what a rank has not published, and for a rank that there is none of.
   7 fence         `commit_and_fence` returns when every rank of the job that has not failed is in it, and not before.
   8 again         It may be called again, with more that was put or without; what was published before stays.
   9 progress      From the second time on the engine goes on meanwhile (`ompy.core.progress.serve_until_readable`).
  10 finalize      Once, on every process: afterwards the process may exit without being taken for a failure, and `descriptor`
                   is closed.

WHAT GOES WRONG
  11 abort         `abort` ends every process of the job, soon, with the exit status, and the message on the error output.
  12 listen        `listen` is called now and then by ranks that wait, and returns at once, with nothing where nothing was
                   said.  `descriptor`, where there is one, becomes readable when the launcher has something to say or is
                   gone.
  13 failures      In a job that goes on without ranks that fail, `listen` on each other rank tells of each of them, once, by
                   job and rank and in words how it ended; fences do without them.
  14 orphans       When the launcher is gone, `listen` raises EOFError, and `outlive_launcher` ends this process with a
                   failure.
  15 fork          A child made by fork is no part of the job: `leave_to_parent` is the one thing that is called there.  It
                   closes the child's `descriptor`, and the parent goes on as if there were no child.
  16 heirs         What the process was started with (descriptors, variables that name them) is not handed on to programs that
                   it starts: none of them is taken for a rank.
  17 quiet         Nothing is printed, but by `abort` and `outlive_launcher`.
"""

from __future__ import annotations

import os

from ompy.core.errors import ERR_SPAWN, MPIError
from ompy.core.quota import processor_quota

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

    from ompy.core.board import Board

INTERFACE = 1
interface = INTERFACE  # as the compiled contracts have it


class Order:
    """Processes to be started that run one program.

    Parameters:
        command: the program.
        arguments: of the program.
        count: how many processes.
        info: hints: `wdir`, `host`, `path` (MPI-4.1, 11.8.4); others are ignored.
    """

    __slots__ = ("arguments", "command", "count", "info")

    def __init__(self, command: str, arguments: Sequence[str], count: int, info: Mapping[str, str]) -> None:
        self.command = command
        self.arguments = list(arguments)
        self.count = count
        self.info = dict(info)


class Started:
    """What has become of orders.

    Parameters:
        job: the new job's name; empty where the launcher does not tell.
        codes: an error class for each process, `SUCCESS` for one that runs.
    """

    __slots__ = ("codes", "job")

    def __init__(self, job: str, codes: list[int]) -> None:
        self.job = job
        self.codes = codes


class Rte:
    """One process's place in its job.

    Attributes:
        job: the job's name, the same on every rank and different from every other job's on the host.
        rank, size: in the job's world.
        local_rank, local_size: among the job's processes on this host.
        secret: the job's secret, known to its ranks alone.
        board: the job board that the launcher made, or None.
        descriptor: readable when `listen` has something to hear; -1 for none.
        parent_port: where those wait that have spawned this job; empty for a job that a person started.
        parents_elsewhere: some of these may be on other hosts.
    """

    job: str = ""
    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1
    secret: bytes = b""
    board: Board | None = None
    descriptor: int = -1
    parent_port: str = ""
    parents_elsewhere: bool = False

    @property
    def is_on_one_host(self) -> bool:
        """Whether all of whom this process knows at the start are on its host."""
        return self.local_size == self.size and not self.parents_elsewhere

    @property
    def processors(self) -> int:
        """How many the ranks of this host have together, which may be fewer than the machine has.

        A rank by itself may be bound to one.  `ompyrun` tells how many it has; another launcher is looked at: it is not bound.
        Of more than a container's share the others stand still.
        """
        return max(1, int(min(self.processors_to_run_on, processor_quota())))

    @property
    def processors_to_run_on(self) -> int:
        """Those that the system would let them have, if nobody had set a limit of time."""
        own = len(os.sched_getaffinity(0))
        told = os.environ.get("OMPY_PROCESSORS", "")
        if own >= self.local_size:
            return own
        if told.isdecimal():
            return max(own, int(told))
        try:
            return max(own, len(os.sched_getaffinity(os.getppid())))
        except OSError:
            return os.cpu_count() or 1

    @property
    def is_crowded(self) -> bool:
        """Whether the ranks of this host outnumber its processors."""
        return self.local_size > self.processors

    def put(self, key: str, value: bytes) -> None:
        """Publish `value` under this rank's `key`; seen by the others after `commit_and_fence`."""
        raise NotImplementedError

    def commit_and_fence(self) -> None:
        """Wait until every rank of the job that has not failed is here; what was put before is then visible to all.

        After the first time the engine has to go on meanwhile: a rank that is not here yet may need a message sent again, or
        acknowledged.
        """
        raise NotImplementedError

    def get(self, rank: int, key: str) -> bytes:
        """What `rank` published under `key`.  Raises MPIError when it published nothing there."""
        raise NotImplementedError

    def listen(self) -> list[tuple[str, int, str]]:
        """What the launcher has said since, without waiting: who has failed where the others go on, each by job and rank, with
        the way it ended.  Raises EOFError when the launcher is gone.
        """
        return []

    def abort(self, code: int, message: str) -> NoReturn:
        """End every process of the job with exit status `code`, after `message` on the error output."""
        raise NotImplementedError

    @property
    def appnum(self) -> int:
        """Number of this process's program among those that were started together (MPI-4.1, 11.10.3)."""
        return 0

    @property
    def universe_size(self) -> int:
        """How many processes there is room for, those that run among them (MPI-4.1, 11.10.1)."""
        return self.size

    def spawn(self, orders: Sequence[Order], port: str) -> Started:
        """Start processes as a job of their own, whose `parent_port` is `port`; the engine goes on meanwhile.

        Raises MPIError (ERR_SPAWN) with the reason when none run.
        """
        raise MPIError(ERR_SPAWN, f"the environment {type(self).__name__} starts no processes")

    def cancel_spawn(self, port: str) -> None:
        """Whoever has called `spawn` with this port waits no more: what it has started, or not yet, is to end."""

    def tell_connected(self, jobs: Sequence[str]) -> None:
        """Whenever it changes: which other jobs this process is connected with, whose failure is its own (MPI-4.1, 11.10.4)."""

    def publish(self, service: str, port: str) -> bool:
        """Make a port known to all whom the launcher serves; False when the name is taken."""
        return False

    def lookup(self, service: str) -> str:
        """The port under a name, empty when there is none."""
        return ""

    def unpublish(self, service: str) -> bool:
        """Take a name back; False when there is no such name."""
        return False

    def finalize(self) -> None:
        """Leave the job."""

    def outlive_launcher(self) -> NoReturn:
        """The launcher is gone, and whoever should have ended its ranks with it: end this process."""
        raise NotImplementedError

    def leave_to_parent(self) -> None:
        """In a child made by fork: let go of what leads to the launcher, without a word to it."""
