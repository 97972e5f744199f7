"""What a launcher knows of one rank, wherever it runs."""

from __future__ import annotations

from ompy.runtime.signals import name_of

WIDEST = 100


class Rank:
    """One rank of a job.

    Attributes:
        job: number of the job; 0 for the one that a person started.
        number: of the rank in its job.
        host: where it runs.
        command: what it runs.
        pid: its process there; 0 until it has been started.
        status: exit code, or minus the signal that killed it; None while it runs.
        initialised, finalised: whether it has begun and ended MPI, as far as it has told.
        is_refusing: it has rights that keep signals from it, which has been said.
    """

    def __init__(self, job: int, number: int, host: str, command: list[str]) -> None:
        self.job = job
        self.number = number
        self.host = host
        self.command = command
        self.pid = 0
        self.status: int | None = None
        self.initialised = False
        self.finalised = False
        self.is_refusing = False

    @property
    def name(self) -> str:
        """For people."""
        whose = f" of spawned job {self.job}" if self.job else ""
        return f"rank {self.number}{whose} ({self.host}, {self.pid})"

    @property
    def shown_command(self) -> str:
        """In one line, not too long a one."""
        line = " ".join(" ".join(self.command).split())
        return line if len(line) <= WIDEST else f"{line[:WIDEST]} .."

    @property
    def exit_code(self) -> int:
        """As a shell would say it: 128 and the signal's number for a killed rank."""
        status = self.status or 0
        return 128 - status if status < 0 else status

    @property
    def ending(self) -> str:
        """In words."""
        status = self.status or 0
        if status < 0:
            return f"killed by {name_of(-status)}"
        return f"exited with code {status}"
