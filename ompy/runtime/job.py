"""What a person asked to be run: programs, how many ranks of each, and how."""

from __future__ import annotations

import os

from ompy.runtime.output import Tag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ompy.runtime.mapping import Place
    from ompy.runtime.topology import Topology


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
        files: patterns of file names for standard output and standard error, or None; `%r` is the rank, `%j` the job,
            `%h` the host, `%%` a per cent sign.  The files get what the ranks write, byte for byte.
        passed_on: it goes on the launcher's own streams (too).
    """

    def __init__(self) -> None:
        self.tag = Tag()
        self.merged = False
        self.files: list[str | None] = [None, None]
        self.passed_on = [True, True]


class Task:
    """One rank, where it runs.

    Attributes:
        rank: in its job.
        program: index among the job's programs.
        processors: those that it may run on; None for wherever the system likes.
    """

    __slots__ = ("processors", "program", "rank")

    def __init__(self, rank: int, program: int, processors: set[int] | None) -> None:
        self.rank = rank
        self.program = program
        self.processors = processors


class Share:
    """The ranks of a job that run on one host, and what they need to start there.

    Parameters:
        job: whose ranks they are.
        tasks: the ranks.

    Attributes:
        job: number of the job.
        size: of the whole job.
        programs: of the whole job.
        environment: what all ranks get.
        stack_traces: they are to write their Python stacks when asked.
        merged: their standard error goes where their standard output goes.
    """

    def __init__(self, job: Job, tasks: list[Task]) -> None:
        self.job = job.number
        self.size = job.size
        self.tasks = tasks
        self.programs = job.programs
        self.environment = job.environment
        self.stack_traces = job.stack_traces
        self.merged = job.output.merged

    def as_data(self) -> dict[str, Any]:
        """In numbers, text and lists, for another host."""
        return {
            "job": self.job,
            "size": self.size,
            "tasks": [[it.rank, it.program, None if it.processors is None else sorted(it.processors)] for it in self.tasks],
            "programs": [[it.command, it.environment, it.directory] for it in self.programs],
            "environment": self.environment,
            "stack_traces": self.stack_traces,
            "merged": self.merged,
        }

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Share:
        """The reverse of `as_data`."""
        share = cls.__new__(cls)
        share.__dict__.update(data)
        share.tasks = [Task(rank, program, None if where is None else set(where)) for rank, program, where in data["tasks"]]
        share.programs = [Program(command, 0, environment, folder) for command, environment, folder in data["programs"]]
        return share


class Job:
    """Programs that share one world of ranks, numbered through in the order of the programs.

    Attributes:
        number: 0 for the job that a person started.
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
        gives_mpi4py: ompy is found there under that name.
        values: what they find in the job's key-value space.
        here: this host, as `places` call it.
        bind: gives ranks on other hosts their processors, once it is known which there are.  ValueError when there are too
            few.
        silence: seconds without a sign of life after which another host is lost.
        start_limit: seconds that the proxies of other hosts have to call back.
        fan_out: proxies that one process starts, the launcher or a proxy; 0 for all.
    """

    EVERY_RANK = -1

    def __init__(self, programs: list[Program], places: list[Place]) -> None:
        self.programs = programs
        self.places = places
        self.number = 0
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
        self.gives_mpi4py = False
        self.environment: dict[str, str] = {}
        self.values: dict[str, str] = {}
        self.here = os.uname().nodename
        self.bind: Callable[[Mapping[str, Topology]], None] = lambda hosts: None
        self.silence = 7.5
        self.start_limit = 60.0
        self.fan_out = 32

    @property
    def remote_hosts(self) -> list[str]:
        """The other hosts, each once."""
        return list(dict.fromkeys(place.host for place in self.places if place.host != self.here))

    @property
    def size(self) -> int:
        return len(self.places)

    def program_of_ranks(self) -> list[Program]:
        """What each rank runs."""
        return [program for program in self.programs for _ in range(program.count)]

    def shares(self) -> dict[str, Share]:
        """The ranks of each host, by its name."""
        found: dict[str, Share] = {}
        numbers = [number for number, program in enumerate(self.programs) for _ in range(program.count)]
        for rank, place in enumerate(self.places):
            if place.host not in found:
                found[place.host] = Share(self, [])
            found[place.host].tasks.append(Task(rank, numbers[rank], place.processors))
        return found
