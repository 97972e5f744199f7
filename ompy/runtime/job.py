"""What a person asked to be run: programs, how many ranks of each, and how."""

from __future__ import annotations

import os


class Program:
    """One command and the ranks that run it.

    Parameters:
        command: program and arguments.
        count: number of ranks.
        environment: variables that these ranks get on top of the launcher's own.
        directory: where they run; None for the launcher's working directory.
    """

    def __init__(
        self, command: list[str], count: int, environment: dict[str, str] | None = None, directory: str | None = None
    ) -> None:
        self.command = command
        self.count = count
        self.environment = environment or {}
        self.directory = directory


class Job:
    """Programs that share one world of ranks, numbered through in the order of the programs.

    Attributes:
        name: unique on this machine; it begins with `ompy-`, by which a rank knows an ompy launcher.
        tag_output: put `[job,rank]<stdout>: ` before each line.
        timeout: seconds until the job is ended, or None.
        report_state: print who is blocked in what when the time is over.
        stack_traces: print every rank's Python stack when the time is over.
        bind_to: "share", "core" or "none".
        stdin: rank that gets standard input, or None.
        verbose: say what is started and how it ended.
        report_bindings: say which processors each rank has.
        environment: variables that all ranks get.
    """

    def __init__(self, programs: list[Program]) -> None:
        self.programs = programs
        self.name = f"ompy-{os.getpid()}-{os.urandom(4).hex()}"
        self.tag_output = False
        self.timeout: float | None = None
        self.report_state = False
        self.stack_traces = False
        self.bind_to = "share"
        self.stdin: int | None = 0
        self.verbose = False
        self.report_bindings = False
        self.environment: dict[str, str] = {}

    @property
    def size(self) -> int:
        return sum(program.count for program in self.programs)
