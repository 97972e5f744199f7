"""What a person asked to be run: programs, how many ranks of each, and how."""

from __future__ import annotations

import os

from ompy.runtime.output import Tag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ompy.runtime.mapping import Place


class Program:
    """One command and the ranks that run it.

    Parameters:
        command: program and arguments.
        count: number of ranks.
        environment: variables that these ranks get on top of the job's.
        directory: where they run; None for the launcher's working directory.
    """

    def __init__(
        self, command: list[str], count: int, environment: dict[str, str] | None = None, directory: str | None = None
    ) -> None:
        self.command = command
        self.count = count
        self.environment = environment or {}
        self.directory = directory


class Output:
    """What becomes of what the ranks write.

    Attributes:
        tag: what stands before each line.
        merged: standard error goes where standard output goes, in the order of the writes.
        files: patterns of file names for standard output and standard error, or None; `%r` is the rank, `%h` the host, `%%` a
            per cent sign.  The files get what the ranks write, byte for byte.
        passed_on: it goes on the launcher's own streams (too).
    """

    def __init__(self) -> None:
        self.tag = Tag()
        self.merged = False
        self.files: list[str | None] = [None, None]
        self.passed_on = [True, True]


class Job:
    """Programs that share one world of ranks, numbered through in the order of the programs.

    Attributes:
        name: unique on this machine; it begins with `ompy-`, by which a rank knows an ompy launcher.
        output: what becomes of what the ranks write.
        timeout: seconds until the job is ended, or None.
        grace: seconds between the signal that tells a rank to end and SIGKILL.
        report_state: print who is blocked in what when the time is over.
        stack_traces: print every rank's Python stack when the time is over.
        places: where each rank runs.
        stdin: rank that gets standard input, `EVERY_RANK`, or None.
        verbose: say what is started and how it ended.
        report_bindings: say which processors each rank has.
        display_map: say where each rank will run.
        goes_on: a rank that fails does not end the others.
        environment: what all ranks get.
    """

    EVERY_RANK = -1

    def __init__(self, programs: list[Program], places: list[Place]) -> None:
        self.programs = programs
        self.places = places
        self.name = f"ompy-{os.getpid()}-{os.urandom(4).hex()}"
        self.output = Output()
        self.timeout: float | None = None
        self.grace = 30.0
        self.report_state = False
        self.stack_traces = False
        self.stdin: int | None = 0
        self.verbose = False
        self.report_bindings = False
        self.display_map = False
        self.goes_on = False
        self.environment: dict[str, str] = {}

    @property
    def size(self) -> int:
        return len(self.places)
