"""`ompyrun`: start a program on several ranks."""

from __future__ import annotations

import os
import sys

from ompy.cli.command_line import Segment, UsageError, help_text, parse, read_programs, whole
from ompy.cli.placement import Placement, number
from ompy.runtime.job import Job, Output, Program
from ompy.runtime.output import Tag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

USAGE = 2
# As a shell says of a command that SIGINT ended; to import `signal` costs each start an enum.
INTERRUPTED = 128 + 2
# Of a job on several hosts: more would fill the launcher's memory before one is started.
MOST_RANKS = 1 << 20
# Names under which tools that know of mpi4py only look for a launcher.
MPI4PY_LAUNCHERS = ("mpiexec", "mpirun")
# With another value than one of these, that mpi4py stays what it is.
VARIABLE = "OMPY_MPI4PY"
YES = ("yes", "true", "on", "1")


def variables(segment: Segment, environment: Mapping[str, str]) -> dict[str, str]:
    """What `-x` and `-env` give the ranks of one program."""
    found: dict[str, str] = {}
    for name, value in segment.options.get("env", []):
        found[name] = value
    for (text,) in segment.options.get("x", []):
        # A value may hold commas: a list is of names, and what stands behind `=` is one value to its end.
        names, equals, value = text.partition("=")
        *others, last = names.split(",")
        for name in others if equals else [*others, last]:
            found |= inherited(name, environment)
        if equals:
            found[variable_name(last)] = value
    return {variable_name(name): value for name, value in found.items()}


def variable_name(name: str) -> str:
    if not name:
        raise UsageError("-x and -env: a variable's name is missing")
    if "=" in name:
        raise UsageError(f"-env {name}: a variable's name and its value are two words, as in -env NAME VALUE")
    return name


def inherited(name: str, environment: Mapping[str, str]) -> dict[str, str]:
    """A variable of this process, or all that a pattern like `OMP_*` stands for."""
    if variable_name(name) in environment:
        return {name: environment[name]}
    if "*" in name or "?" in name:
        from fnmatch import fnmatchcase

        return {known: value for known, value in environment.items() if fnmatchcase(known, name)}
    raise UsageError(f"-x {name}: there is no such variable here; -x {name}=VALUE gives it a value")


def programs(segments: Sequence[Segment], default: int) -> list[Program]:
    """The programs with their numbers of ranks.

    Parameters:
        default: ranks of a single program when nobody says how many.
    """
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
            ranks = default
        folder = segment.last("wdir")
        found.append(Program(segment.command, ranks, variables(segment, os.environ), folder[0] if folder else None))
    return found


def look_for_room(ranks: int) -> None:
    """Refuse more ranks than this process may have descriptors for."""
    from resource import RLIMIT_NOFILE, getrlimit

    from ompy.runtime.descriptors import A_RANK, OWN

    needed = OWN + A_RANK * ranks
    _, hard = getrlimit(RLIMIT_NOFILE)
    if needed > hard:
        most = max(0, hard - OWN) // A_RANK
        raise UsageError(f"{ranks} ranks need {needed} descriptors, and {hard} are allowed (ulimit -Hn): at most {most} ranks")


def output(segment: Segment) -> Output:
    """What becomes of what the ranks write, as the whole command line says."""
    found = Output()
    words = [word for (text,) in segment.options.get("output", []) for word in text.split(",")]
    names = {"tag-output": "tag", "timestamp-output": "timestamp", "merge-stderr-to-stdout": "merge", "l": "rank"}
    words += [word for key, word in names.items() if key in segment.options]
    words += [f"dir={text}" for (text,) in segment.options.get("output-filename", [])]
    style, has_time = "", False
    for word in words:
        name, equals, value = word.partition("=")
        value, _, copying = value.partition(":")
        if equals and (not value or copying not in ("", "copy", "nocopy") or name not in ("dir", "file")):
            raise UsageError(f"--output {word}: dir=FOLDER or file=NAME is expected, and :nocopy may follow")
        if name == "dir":
            patterns = [f"{value.replace('%', '%%')}/%j/rank.%r/{stream}" for stream in ("stdout", "stderr")]
        elif name == "file":
            patterns = [f"{value.replace('%', '%%')}.%r"] * 2
        elif name in ("tag", "rank"):
            style = {"tag": "stream"}.get(name, name)
        elif name == "timestamp":
            has_time = True
        elif name == "merge":
            found.merged = True
        else:
            raise UsageError(f"--output takes tag, timestamp, merge, dir=FOLDER, file=NAME, found {word!r}")
        if equals:
            found.files = list(patterns)
            found.passed_on = [copying != "nocopy"] * 2
    for stream, key in enumerate(("outfile-pattern", "errfile-pattern")):
        if pattern := segment.last(key):
            if not pattern[0]:
                raise UsageError(f"--{key}: the name of a file is expected, with %r where a rank's number is to be")
            found.files[stream] = pattern[0]
            found.passed_on[stream] = False
    found.tag = Tag(style, has_time)
    return found


def launch_agent(segment: Segment) -> list[tuple[str, str]]:
    """What `--launch-agent` stands for."""
    given = segment.last("launch-agent")
    return [("plm", "ssh"), ("plm_ssh_agent", given[0])] if given else []


def parameters(segments: Sequence[Segment]) -> dict[str, str]:
    """The environment that hands on --mca and --tune, checked: a rank should not be the first to find a wrong name."""
    pairs = [pair for segment in segments for pair in launch_agent(segment)]
    files = [path for segment in segments for (value,) in segment.options.get("tune", []) for path in value.split(",")]
    from ompy.mca import discovery
    from ompy.mca.params import STARTUP, command_line, registry

    for segment in segments:
        keys = {name: name.removeprefix("mpi_").replace("_", "-") for name in STARTUP}
        pairs += [(name, value) for name, key in keys.items() for (value,) in segment.options.get(key, [])]
        pairs += [(name, value) for name, value in segment.options.get("mca", [])]
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


def displayed(segment: Segment) -> set[str]:
    """What `--display` names."""
    words = {word.lower() for (text,) in segment.options.get("display", []) for word in text.split(",")}
    words |= {word for key, word in (("display-map", "map"), ("report-bindings", "bind")) if key in segment.options}
    if words - {"map", "bind"}:
        raise UsageError(f"--display takes map, bind, found {min(words - {'map', 'bind'})!r}")
    return words


def job_of(segments: Sequence[Segment]) -> Job:
    """The job that the command line asks for."""
    spoken = whole(segments)
    given = spoken.options
    placement = Placement(spoken)
    found = programs(segments, placement.default_ranks)
    ranks = sum(program.count for program in found)
    if placement.is_here:
        look_for_room(ranks)
    elif ranks > MOST_RANKS:
        raise UsageError(f"{ranks} ranks: a job has at most {MOST_RANKS}")
    job = Job(found, placement.place(ranks))
    placement.give_to(job)
    for program in found:
        if not job.remote_hosts and program.directory is not None and not os.path.isdir(program.directory):
            raise UsageError(f"--wdir {program.directory}: no such folder")
    job.environment = parameters(segments)
    job.grace, job.silence, job.start_limit = map(own_parameter, ("grace", "host_silence", "start_timeout"))
    job.fan_out = int(own_parameter("fan_out"))
    job.environment |= {variable_name(name): value for name, value in given.get("genv", [])}
    job.output = output(spoken)
    job.report_state = "report-state-on-timeout" in given
    job.stack_traces = "get-stack-traces" in given
    job.verbose = "verbose" in given
    job.report_bindings = "bind" in displayed(spoken)
    job.display_map = "map" in displayed(spoken)
    job.goes_on = "disable-auto-cleanup" in given
    if timeout := spoken.last("timeout"):
        job.timeout = number(timeout[0], "--timeout", float, 0)
    if target := spoken.last("stdin"):
        job.stdin = {"none": None, "all": Job.EVERY_RANK}.get(target[0], 0)
        if target[0] not in ("none", "all"):
            job.stdin = int(number(target[0], "--stdin", int, 0))
            if job.stdin >= job.size:
                raise UsageError(f"--stdin {job.stdin}: the job has ranks 0 to {job.size - 1}")
    is_named_so = os.path.basename(sys.argv[0]) in MPI4PY_LAUNCHERS and os.environ.get(VARIABLE, YES[0]).lower() in YES
    if "mpi4py" in given or is_named_so:
        from ompy.compat import folder

        path = os.environ.get("PYTHONPATH")
        job.gives_mpi4py = True
        job.environment["PYTHONPATH"] = folder() + (os.pathsep + path if path else "")
    return job


def own_parameter(name: str) -> float:
    """The value of a parameter of `ompyrun`'s."""
    from ompy.mca.frameworks import declare
    from ompy.mca.params import registry

    declare()
    return float(registry.value(f"ompyrun_{name}"))


def report_pid(where: str) -> None:
    """Write this process's number where `--report-pid` says; OSError if that can't be."""
    if where in ("-", "+"):
        print(os.getpid(), file=sys.stdout if where == "-" else sys.stderr, flush=True)
    else:
        with open(where, "w", encoding="ascii") as stream:
            print(os.getpid(), file=stream)


def fill_missing_streams() -> None:
    """Descriptors 0, 1 and 2 where the caller has closed them (cron does): something of the job's would get their numbers."""
    while True:
        descriptor = os.open(os.devnull, os.O_RDWR)
        if descriptor > 2:
            os.close(descriptor)
            return
        os.set_inheritable(descriptor, True)


def main() -> int:
    """Entry point of `ompyrun`; returns the exit status."""
    try:
        return run()
    except KeyboardInterrupt:  # before there is a job to end
        return INTERRUPTED


def run() -> int:
    fill_missing_streams()
    try:
        segments = parse(sys.argv[1:])
        if path := whole(segments).last("app"):
            segments = read_programs(path[0], segments)
        spoken = whole(segments)
        if "help" in spoken.options:
            print(help_text())
            return 0
        if "version" in spoken.options:
            from importlib.metadata import version

            print(f"ompyrun (ompy) {version('ompy')}")
            return 0
        if state := spoken.last("report-state"):
            from ompy.runtime.report import report_process

            print(report_process(int(number(state[0], "--report-state", int, 1))))
            return 0
        job = job_of(segments)
        if where := spoken.last("report-pid"):
            report_pid(where[0])
    except (UsageError, ValueError, OSError, RuntimeError) as error:
        print(f"ompyrun: {error}", file=sys.stderr)
        return USAGE
    from ompy.runtime.launcher import Launcher

    return Launcher(job).run()


if __name__ == "__main__":
    sys.exit(main())
