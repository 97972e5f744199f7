"""The contract of run-time environments: who this process is, and how it finds its peers.

LIFE CYCLE
  open       The component's `query` finds its environment (a descriptor, variables) or says what is missing.
  publish    `put` any number of times, then `commit_and_fence` once on every process of the job; after it `get` answers
             for any rank.
  running    `abort` ends the whole job.  `descriptor`, where there is one, becomes readable when the launcher has
             something to say or is gone; `poll` then deals with it.
  close      `finalize`, once, on every process: afterwards the process may exit without being taken for a failure.
  fork       A child of the process is no part of the job: `leave_to_parent` is the one thing that is called there.  What the
             process was started with (descriptors, variables that name them) is not handed on to programs that it starts.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from ompy.core.board import Board

INTERFACE = 1
interface = INTERFACE  # as the compiled contracts have it


class Rte:
    """One process's place in its job.

    Attributes:
        job: the job's name, the same on every rank and different from every other job's on the host.
        job_number: 0 for the job that a person started, others for spawned ones; in context ids.
        rank, size: in the job's world.
        local_rank, local_size: among the job's processes on this host.
        secret: the job's secret, known to its ranks alone.
        board: the job board that the launcher made, or None.
        descriptor: readable when `poll` has something to do; -1 for none.
    """

    job: str = ""
    job_number: int = 0
    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1
    secret: bytes = b""
    board: Board | None = None
    descriptor: int = -1

    def put(self, key: str, value: bytes) -> None:
        """Publish `value` under this rank's `key`; seen by the others after `commit_and_fence`."""
        raise NotImplementedError

    def commit_and_fence(self) -> None:
        """Wait until every rank of the job is here; what was put before is then visible to all.

        After the first time the engine has to go on meanwhile (`ompy.core.progress.serve_until_readable`): a rank that is
        not here yet may need a message sent again, or acknowledged.
        """
        raise NotImplementedError

    def get(self, rank: int, key: str) -> bytes:
        """What `rank` published under `key`.  Raises MPIError when it published nothing there."""
        raise NotImplementedError

    def poll(self) -> None:
        """Deal with what made `descriptor` readable; a launcher that is gone ends the process."""

    def abort(self, code: int, message: str) -> NoReturn:
        """End every process of the job with exit status `code`, after `message` on the error output."""
        raise NotImplementedError

    def finalize(self) -> None:
        """Leave the job."""

    def leave_to_parent(self) -> None:
        """In a child made by fork: let go of what leads to the launcher, without a word to it."""
