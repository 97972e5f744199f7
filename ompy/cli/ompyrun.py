"""`ompyrun`: start a program on several ranks."""

from __future__ import annotations

import os
import sys

from ompy.cli.command_line import Segment, UsageError, help_text, parse, read_programs
from ompy.runtime import hostfile, mapping
from ompy.runtime.job import Job, Output, Program
from ompy.runtime.output import Tag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

USAGE = 2
# Names under which tools that know of mpi4py only look for a launcher.
MPI4PY_LAUNCHERS = ("mpiexec", "mpirun")
CANNOT_RUN = 1
# Descriptors that a rank costs the launcher, and those that it needs for itself.
DESCRIPTORS_A_RANK = 6
OWN_DESCRIPTORS = 64
# What does not change the order of ranks on one host.
ORDERS = ("slot", "core", "hwthread", "socket", "package", "numa", "l1cache", "l2cache", "l3cache", "node")


def number(text: str, name: str, kind: type[int] | type[float], least: float) -> float:
    """An option's value as a number."""
    try:
        value = kind(text)
    except ValueError:
        value = least - 1
    if not least <= value < float("inf"):
        words = "a whole number" if kind is int else "a number"
        raise UsageError(f"{name} takes {words} of at least {least:g}, found {text!r}")
    return value


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
    return name


def inherited(name: str, environment: Mapping[str, str]) -> dict[str, str]:
    """A variable of this process, or all that a pattern like `OMP_*` stands for."""
    if variable_name(name) in environment:
        return {name: environment[name]}
    if "*" in name or "?" in name:
        from fnmatch import fnmatchcase

        return {known: value for known, value in environment.items() if fnmatchcase(known, name)}
    raise UsageError(f"-x {name}: there is no such variable here; -x {name}=VALUE gives it a value")


def slots(segments: Sequence[Segment]) -> int | None:
    """Slots of --host and --hostfile; None when neither is given."""
    hosts: list[hostfile.Host] = []
    for segment in segments:
        for (text,) in segment.options.get("host", []):
            hosts += hostfile.parse_list(text)
        for (path,) in segment.options.get("hostfile", []):
            hosts += hostfile.read(path)
    return hostfile.slots_here(hosts) if hosts else None


class Policy:
    """What `--map-by` says: ranks on each host, and processors for each rank (0: not said)."""

    def __init__(self, text: str) -> None:
        self.a_host = 0
        self.processors = 0
        self.oversubscribe = self.nooversubscribe = False
        words = text.lower().split(":")
        if words[0] == "ppr":
            if len(words) < 3 or words[2] != "node":
                raise UsageError(f"--map-by {text}: ppr:N:node is all that is known of ppr")
            self.a_host = int(number(words[1], "--map-by ppr:N:node", int, 1))
            words = words[2:]
        elif words[0] and words[0] not in ORDERS:
            raise UsageError(f"--map-by takes {', '.join(ORDERS)}, ppr:N:node, found {text!r}; --rankfile places each rank")
        for word in words[1:]:
            name, _, value = word.partition("=")
            if name == "pe":
                self.processors = int(number(value, "--map-by ...:PE=N", int, 1))
            elif name in ("oversubscribe", "nooversubscribe"):
                setattr(self, name, True)
            else:
                raise UsageError(f"--map-by {text}: PE=N, OVERSUBSCRIBE and NOOVERSUBSCRIBE can stand here, found {word!r}")


def programs(segments: Sequence[Segment], policy: Policy, a_host: int) -> list[Program]:
    """The programs with their numbers of ranks.

    Parameters:
        a_host: most ranks on a host; 0 for no such limit.
    """
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
            ranks = a_host or available or len(os.sched_getaffinity(0))
        folder = segment.last("wdir")
        if folder is not None and not os.path.isdir(folder[0]):
            raise UsageError(f"--wdir {folder[0]}: no such folder")
        found.append(Program(segment.command, ranks, variables(segment, os.environ), folder[0] if folder else None))
    total = sum(program.count for program in found)
    given = {key for segment in segments for key in segment.options}
    if a_host and total > a_host:
        raise UsageError(f"{total} ranks do not fit: there is one host, and it is to have at most {a_host}")
    if available is not None and total > available and "oversubscribe" not in given and not policy.oversubscribe:
        raise UsageError(f"{total} ranks do not fit into the {available} slots of the hosts given; --oversubscribe lets them")
    processors = len(os.sched_getaffinity(0))
    if available is None and total > processors and ("nooversubscribe" in given or policy.nooversubscribe):
        raise UsageError(f"{total} ranks do not fit onto {processors} processors, and --nooversubscribe is given")
    make_room(total)
    return found


def make_room(ranks: int) -> None:
    """Have this process allowed as many descriptors as so many ranks need."""
    from resource import RLIMIT_NOFILE, getrlimit, setrlimit

    needed = OWN_DESCRIPTORS + DESCRIPTORS_A_RANK * ranks
    soft, hard = getrlimit(RLIMIT_NOFILE)
    if needed > hard:
        most = max(0, hard - OWN_DESCRIPTORS) // DESCRIPTORS_A_RANK
        raise UsageError(f"{ranks} ranks need {needed} descriptors, and {hard} are allowed (ulimit -Hn): at most {most} ranks")
    if needed > soft:
        setrlimit(RLIMIT_NOFILE, (needed, hard))


def placing(segment: Segment, ranks: int, policy: Policy) -> list[mapping.Place]:
    """Where each rank runs, as the whole command line says."""
    allowed = os.sched_getaffinity(0)
    if path := segment.last("rankfile"):
        return mapping.read_rank_file(path[0], ranks, allowed)
    each = policy.processors
    if text := segment.last("cpus-per-rank"):
        each = int(number(text[0], "--cpus-per-rank", int, 1))
    binding = "share"
    if given := segment.last("bind-to"):
        binding = {"hwthread": "core"}.get(given[0], given[0])
        if binding not in mapping.POLICIES:
            raise UsageError(f"--bind-to takes {', '.join(mapping.POLICIES)}, found {given[0]!r}")
    order = segment.last("rank-by")
    if order is not None and order[0].lower() not in ORDERS:
        raise UsageError(f"--rank-by takes {', '.join(ORDERS)}, found {order[0]!r}; --rankfile orders ranks freely")
    return mapping.places(ranks, allowed, binding, each if binding != "none" else 0)


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
            patterns = [f"{value.replace('%', '%%')}/1/rank.%r/{stream}" for stream in ("stdout", "stderr")]
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
            found.files[stream] = pattern[0]
            found.passed_on[stream] = False
    found.tag = Tag(style, has_time)
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


def displayed(segment: Segment) -> set[str]:
    """What `--display` names."""
    words = {word.lower() for (text,) in segment.options.get("display", []) for word in text.split(",")}
    words |= {word for key, word in (("display-map", "map"), ("report-bindings", "bind")) if key in segment.options}
    if words - {"map", "bind"}:
        raise UsageError(f"--display takes map, bind, found {min(words - {'map', 'bind'})!r}")
    return words


def job_of(segments: Sequence[Segment]) -> Job:
    """The job that the command line asks for."""
    whole = Segment()
    for segment in segments:
        for key, values in segment.options.items():
            whole.options.setdefault(key, []).extend(values)
    given = whole.options
    policy = Policy((whole.last("map-by") or [""])[0])
    a_host = whole.last("npernode")
    found = programs(segments, policy, int(number(a_host[0], "--npernode", int, 1)) if a_host else policy.a_host)
    job = Job(found, placing(whole, sum(program.count for program in found), policy))
    job.environment = parameters(segments)
    job.grace = max(0.0, grace())
    job.environment |= {variable_name(name): value for name, value in given.get("genv", [])}
    job.output = output(whole)
    job.report_state = "report-state-on-timeout" in given
    job.stack_traces = "get-stack-traces" in given
    job.verbose = "verbose" in given
    job.report_bindings = "bind" in displayed(whole)
    job.display_map = "map" in displayed(whole)
    job.goes_on = "disable-auto-cleanup" in given
    if timeout := whole.last("timeout"):
        job.timeout = number(timeout[0], "--timeout", float, 0)
    if target := whole.last("stdin"):
        job.stdin = {"none": None, "all": Job.EVERY_RANK}.get(target[0], 0)
        if target[0] not in ("none", "all"):
            job.stdin = int(number(target[0], "--stdin", int, 0))
            if job.stdin >= job.size:
                raise UsageError(f"--stdin {job.stdin}: the job has ranks 0 to {job.size - 1}")
    if "mpi4py" in given or os.path.basename(sys.argv[0]) in MPI4PY_LAUNCHERS:
        from ompy.compat import folder

        path = os.environ.get("PYTHONPATH")
        job.environment["PYTHONPATH"] = folder() + (os.pathsep + path if path else "")
    return job


def grace() -> float:
    """`ompyrun_grace`."""
    from ompy.mca.frameworks import declare
    from ompy.mca.params import registry

    declare()
    return float(registry.value("ompyrun_grace"))


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
    fill_missing_streams()
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
        if path := segments[0].last("app"):
            segments = read_programs(path[0], segments)
        job = job_of(segments)
        if where := segments[0].last("report-pid"):
            report_pid(where[0])
    except (UsageError, ValueError, OSError, RuntimeError) as error:
        print(f"ompyrun: {error}", file=sys.stderr)
        return USAGE
    from ompy.runtime.launcher import Launcher

    try:
        launcher = Launcher(job)
    except OSError as error:
        print(f"ompyrun: the system has no room for a job of {job.size} ranks: {error.strerror}", file=sys.stderr)
        return CANNOT_RUN
    return launcher.run()


if __name__ == "__main__":
    sys.exit(main())
