"""`ompyrun`: start a program on several ranks."""

from __future__ import annotations

import os
import sys

from ompy.cli.command_line import Segment, UsageError, help_text, parse
from ompy.runtime import hostfile
from ompy.runtime.binding import POLICIES
from ompy.runtime.job import Job, Program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

USAGE = 2
# Names under which tools that know of mpi4py only look for a launcher.
MPI4PY_LAUNCHERS = ("mpiexec", "mpirun")


def number(text: str, name: str, kind: type[int] | type[float], least: float) -> float:
    """An option's value as a number."""
    try:
        value = kind(text)
    except ValueError:
        value = least - 1
    if value < least:
        words = "a whole number" if kind is int else "a number"
        raise UsageError(f"{name} takes {words} of at least {least:g}, found {text!r}")
    return value


def variables(segment: Segment, environment: Mapping[str, str]) -> dict[str, str]:
    """What `-x` gives the ranks of one program."""
    found = {}
    for (text,) in segment.options.get("x", []):
        name, equals, value = text.partition("=")
        if equals:
            found[name] = value
        elif name in environment:
            found[name] = environment[name]
        else:
            raise UsageError(f"-x {name}: there is no such variable here; -x {name}=VALUE gives it a value")
    return found


def slots(segments: Sequence[Segment]) -> int | None:
    """Slots of --host and --hostfile; None when neither is given."""
    hosts: list[hostfile.Host] = []
    for segment in segments:
        for (text,) in segment.options.get("host", []):
            hosts += hostfile.parse_list(text)
        for (path,) in segment.options.get("hostfile", []):
            hosts += hostfile.read(path)
    return hostfile.slots_here(hosts) if hosts else None


def programs(segments: Sequence[Segment]) -> list[Program]:
    """The programs with their numbers of ranks."""
    available = slots(segments)
    found = []
    for segment in segments:
        if not segment.command:
            raise UsageError("a program is missing. ompyrun -n 4 python prog.py starts four ranks; --help tells more")
        count = segment.last("n")
        if count is not None:
            ranks = int(number(count[0], "-n", int, 1))
        elif len(segments) > 1:
            ranks = 1
        else:
            ranks = available or len(os.sched_getaffinity(0))
        folder = segment.last("wdir")
        if folder is not None and not os.path.isdir(folder[0]):
            raise UsageError(f"--wdir {folder[0]}: no such folder")
        found.append(Program(segment.command, ranks, variables(segment, os.environ), folder[0] if folder else None))
    total = sum(program.count for program in found)
    given = {key for segment in segments for key in segment.options}
    if available is not None and total > available and "oversubscribe" not in given:
        raise UsageError(f"{total} ranks do not fit into the {available} slots of the hosts given; --oversubscribe lets them")
    processors = len(os.sched_getaffinity(0))
    if available is None and total > processors and "nooversubscribe" in given:
        raise UsageError(f"{total} ranks do not fit onto {processors} processors, and --nooversubscribe is given")
    return found


def parameters(segments: Sequence[Segment]) -> dict[str, str]:
    """The environment that hands on --mca and --tune, checked: a rank should not be the first to find a wrong name."""
    pairs = [(name, value) for segment in segments for name, value in segment.options.get("mca", [])]
    files = [path for segment in segments for (value,) in segment.options.get("tune", []) for path in value.split(",")]
    from ompy.mca import discovery
    from ompy.mca.params import command_line, registry

    environment = discovery.handed_down()
    if files:
        environment["OMPY_TUNE"] = ",".join(os.path.abspath(path) for path in files)
    if pairs:
        environment |= command_line(pairs)
    os.environ.update(environment)
    if registry.read():
        from ompy.mca.loading import check_parameters

        check_parameters()
    return environment


def job_of(segments: Sequence[Segment]) -> Job:
    """The job that the command line asks for."""
    whole = Segment()
    for segment in segments:
        for key, values in segment.options.items():
            whole.options.setdefault(key, []).extend(values)
    job = Job(programs(segments))
    job.environment = parameters(segments)
    given = whole.options
    job.tag_output = "tag-output" in given or ["tag"] in given.get("output", [])
    job.report_state = "report-state-on-timeout" in given
    job.stack_traces = "get-stack-traces" in given
    job.verbose = "verbose" in given
    job.report_bindings = "report-bindings" in given
    if timeout := whole.last("timeout"):
        job.timeout = number(timeout[0], "--timeout", float, 0)
    if policy := whole.last("bind-to"):
        job.bind_to = {"hwthread": "core"}.get(policy[0], policy[0])
        if job.bind_to not in POLICIES:
            raise UsageError(f"--bind-to takes {', '.join(POLICIES)}, found {policy[0]!r}")
    if target := whole.last("stdin"):
        job.stdin = None if target[0] == "none" else int(number(target[0], "--stdin", int, 0))
        if job.stdin is not None and job.stdin >= job.size:
            raise UsageError(f"--stdin {job.stdin}: the job has ranks 0 to {job.size - 1}")
    if "mpi4py" in given or os.path.basename(sys.argv[0]) in MPI4PY_LAUNCHERS:
        from ompy.compat import folder

        path = os.environ.get("PYTHONPATH")
        job.environment["PYTHONPATH"] = folder() + (os.pathsep + path if path else "")
    return job


def main() -> int:
    """Entry point of `ompyrun`; returns the exit status."""
    try:
        segments = parse(sys.argv[1:])
        options = segments[0].options
        if "help" in options:
            print(help_text())
            return 0
        if "version" in options:
            from importlib.metadata import version

            print(f"ompyrun (ompy) {version('ompy')}")
            return 0
        if state := segments[0].last("report-state"):
            from ompy.runtime.report import report_process

            print(report_process(int(number(state[0], "--report-state", int, 1))))
            return 0
        job = job_of(segments)
    except (UsageError, ValueError, OSError, RuntimeError) as error:
        print(f"ompyrun: {error}", file=sys.stderr)
        return USAGE
    from ompy.runtime.launcher import Launcher

    return Launcher(job).run()


if __name__ == "__main__":
    sys.exit(main())
