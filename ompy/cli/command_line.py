"""The command line of `ompyrun`, which follows Open MPI's `mpirun` and takes Hydra's words too.

    ompyrun [options] [program options] program [arguments] [ : [program options] program [arguments] ... ]

Options end where the program begins; words with one dash mean the same as with two (`-np`, `-host`), and a value may be
joined with `=`.  This grammar is not click's, and importing click takes as long as starting the ranks.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class UsageError(Exception):
    """What is wrong with the command line, in words."""


class Option:
    """Something that can be said before the program.

    Parameters:
        names: spellings, the one to show first.
        values: what follows it, a word for each.
        help: a line for people; "" for options that are taken in silence because Open MPI or Hydra has them.
        local: it belongs to one of the programs separated by `:`, not to the job.
    """

    def __init__(self, names: str, values: str, help: str, local: bool = False) -> None:
        self.names = names.split()
        self.values = values.split()
        self.help = help
        self.local = local

    @property
    def key(self) -> str:
        return self.names[0].lstrip("-")


OPTIONS = (
    Option(
        "--n -n --np -c", "N", "run N ranks of the program (default: as many as there are slots, or processors)", local=True
    ),
    Option(
        "--x -x",
        "NAME,...[=VALUE]",
        "give the ranks variables; without a value, what they are here; NAME* for all such; a value is all behind =",
        local=True,
    ),
    Option("--env", "NAME VALUE", "give the ranks of this program a variable", local=True),
    Option("--genv", "NAME VALUE", "give all ranks a variable"),
    Option("--wdir --wd", "FOLDER", "run the program there", local=True),
    Option("--app --configfile", "FILE", "read the programs from a file: a line each, as on the command line between `:`"),
    Option("--host -H --hosts", "NAME[:N],...", "run on these hosts, N ranks each; +n0: the first of a file or an allocation"),
    Option("--hostfile --machinefile --f", "FILE", "hosts, a line each: NAME [slots=N] [max-slots=N]"),
    Option(
        "--launch-agent",
        "COMMAND",
        "start what runs on other hosts by COMMAND HOST LINE, as ssh is called; of more than 32 also from other hosts",
    ),
    Option("--npernode -N --ppn --perhost", "N", "ranks on each host"),
    Option("--oversubscribe", "", "take more ranks than --host or --hostfile have slots (more than processors always go)"),
    Option("--nooversubscribe", "", "take no more ranks than processors"),
    Option(
        "--map-by",
        "POLICY",
        "slot, node, seq; package, numa, l3cache, l2cache, l1cache, core, hwthread: round these, and bound to them; "
        "ppr:N:node, ppr:N:numa, ...: N on each; :PE=N behind it for N processors a rank",
    ),
    Option(
        "--rank-by",
        "POLICY",
        "slot: all of one host before the next; node: one of each host in turn; fill: all of what they are mapped by before "
        "the next one; package, numa, ...: one of each in turn",
    ),
    Option("--rankfile", "FILE", "which rank runs where, a line each: rank N=HOST slot=PROCESSORS, or slot=PACKAGE:CORES"),
    Option("--cpus-per-rank --cpus-per-proc", "N", "bind each rank to N processors of its own"),
    Option(
        "--bind-to",
        "POLICY",
        "processors of a rank: share (an equal one each, the default), none (all), package, numa, l3cache, l2cache, l1cache, "
        "core, hwthread; :overload-allowed behind it where ranks may share cores",
    ),
    Option("--report-bindings", "", "say which processors each rank has"),
    Option("--display", "map|bind,...", "say where each rank will run, or which processors it has"),
    Option("--display-map", "", "the same as --display map"),
    Option("--mca --gmca", "NAME VALUE", "set a parameter of a component; `ompy_info --all` lists them"),
    Option(
        "--initial-errhandler",
        "NAME",
        "mpi_errors_are_fatal, mpi_errors_abort or mpi_errors_return: as --mca mpi_initial_errhandler NAME",
    ),
    Option("--memory-alloc-kinds", "KIND,...", "ask for support of kinds of memory: as --mca mpi_memory_alloc_kinds"),
    Option("--tune --am", "FILE,...", "read parameters from files"),
    Option("--mpi4py", "", "`from mpi4py import MPI` in the program receives ompy's"),
    Option("--output", "WORD,...", "tag, timestamp, merge, dir=FOLDER or file=NAME; as the following five"),
    Option("--tag-output", "", "put [job,rank]<stream>: before each line of output"),
    Option("--timestamp-output", "", "put the time before each line of output"),
    Option("--merge-stderr-to-stdout", "", "standard error goes where standard output goes, in order"),
    Option("--output-filename", "FOLDER", "write FOLDER/1/rank.N/stdout and stderr as well; FOLDER:nocopy: only there"),
    Option("--l --prepend-rank", "", "put [rank] before each line of output"),
    Option(
        "--outfile-pattern", "NAME", "write standard output to files alone; %r in the name is the rank, %h the host, %j the job"
    ),
    Option("--errfile-pattern", "NAME", "the same for standard error"),
    Option("--stdin", "RANK|all|none", "rank that reads standard input (default 0); all: each gets the whole"),
    Option("--timeout", "SECONDS", "end the job then, with exit code 124"),
    Option("--report-state-on-timeout", "", "say then which rank is blocked in what, and who waits for whom"),
    Option("--get-stack-traces", "", "print then every rank's Python stack"),
    Option("--disable-auto-cleanup --enable-recovery", "", "a rank that fails does not end the others"),
    Option("--report-pid", "FILE|-|+", "write the launcher's process number to a file, standard output (-) or error (+)"),
    Option("--report-state", "PID", "say of the running ompyrun with this process number which rank is blocked in what"),
    Option("--verbose -v", "", "say what is started and how it ends"),
    Option("--version -V", "", "print ompy's version"),
    Option("--help -h -?", "", "print this"),
    Option("--allow-run-as-root", "", ""),
    Option("--quiet -q", "", ""),
    Option("--genvall --envall", "", ""),
    Option("--prtemca", "NAME VALUE", ""),
    Option("--pmixmca", "NAME VALUE", ""),
)
BY_NAME = {name: option for option in OPTIONS for name in option.names}

# What people know from other launchers, and why it is not here.
HERE = "every host is to have the files already: name them, or use --wdir"
LEFT_OUT = {
    "--preload-files": HERE,
    "--preload-binary": HERE,
    "--xterm": "the terminal is one rank's at a time, --stdin RANK says whose: ompyrun --stdin 1 -n 2 python -m pdb prog.py",
    "--genvnone": "ranks need PATH and more to start; `env -i NAME=VALUE ... ompyrun` starts them with what you name",
    "--envnone": "ranks need PATH and more to start; `env -i NAME=VALUE ... ompyrun` starts them with what you name",
    "--genvlist": "ranks have the whole environment of ompyrun; -x NAME,... says the same of some",
    "--envlist": "ranks have the whole environment of ompyrun; -x NAME,... says the same of some",
    "--launcher": "--mca plm ssh or slurm says how other hosts are reached, --launch-agent by which command",
    "--cpu-set": "start ompyrun itself under `taskset -c`: ranks share out the processors that it may use",
    "--debug": "--report-state-on-timeout, --report-state PID and --get-stack-traces say what ranks do",
}


class Segment:
    """One program of the command line, before it is checked."""

    def __init__(self) -> None:
        self.options: dict[str, list[list[str]]] = {}
        self.command: list[str] = []

    def last(self, key: str) -> list[str] | None:
        """The values of an option as it was given last."""
        given = self.options.get(key)
        return given[-1] if given else None


def whole(segments: Sequence[Segment]) -> Segment:
    """All that the segments say of the job: its options count wherever they stand."""
    found = Segment()
    for segment in segments:
        for key, values in segment.options.items():
            found.options.setdefault(key, []).extend(values)
    return found


def find(word: str) -> Option:
    """The option of that spelling; UsageError with the reason why there is none, or the nearest one."""
    for spelling in (word, "-" + word):
        if spelling in BY_NAME:
            return BY_NAME[spelling]
        if spelling in LEFT_OUT:
            raise UsageError(f"there is no option {word} here: {LEFT_OUT[spelling]}")
    from difflib import get_close_matches

    known = [name for name in BY_NAME if BY_NAME[name].help and len(name) > 3]
    near = get_close_matches("--" + word.lstrip("-"), known, n=1, cutoff=0.75)
    raise UsageError(f"there is no option {word}." + (f" Did you mean {near[0]}?" if near else " --help lists them."))


def parse(words: Sequence[str]) -> list[Segment]:
    """The segments between `:`; UsageError on an unknown option or a missing value."""
    segments = [Segment()]
    waiting = list(reversed(words))
    while waiting:
        segment = segments[-1]
        word = waiting.pop()
        if word == ":":
            if not segment.command:
                raise UsageError("a program is missing before `:`")
            segments.append(Segment())
        elif segment.command or not word.startswith("-") or word == "-":
            segment.command.append(word)
        elif word == "--":
            if not waiting:
                raise UsageError("a program is missing after `--`")
            segment.command.append(waiting.pop())
        else:
            read_option(segment, word, waiting)
    for segment in segments:
        if segment.command and not segment.command[0]:
            raise UsageError("the program's name is empty")
    return segments


def read_option(segment: Segment, word: str, waiting: list[str]) -> None:
    """One option and its values, which are taken off the end of `waiting`."""
    name, equals, value = word.partition("=")
    option = find(name)
    values = [value] if equals else []
    while len(values) < len(option.values):
        if not waiting:
            raise UsageError(f"{name} needs {' '.join(option.values)}")
        values.append(waiting.pop())
    if len(values) > len(option.values):
        raise UsageError(f"{name} takes no value, found {value!r}")
    segment.options.setdefault(option.key, []).append(values)


def read_programs(path: str, segments: list[Segment]) -> list[Segment]:
    """The segments of an application file, behind the options that were given on the command line.

    Errors: UsageError that names the line; OSError for a file that can't be read.
    """
    import shlex

    for segment in segments:
        if segment.command:
            raise UsageError(f"--app {path} says what to run; {segment.command[0]!r} on the command line does so too")
    first, *_ = segments
    found: list[Segment] = []
    with open(path, encoding="utf-8", errors="surrogateescape") as stream:
        for number, line in enumerate(stream, 1):
            try:
                if "\0" in line:
                    raise UsageError("there is a NUL byte in it, which no argument can have")
                words = shlex.split(line, comments=True)
                more = parse(words) if words else []
                if whole(more).last("app"):
                    raise UsageError("--app in such a file: the programs of the other file are to stand here themselves")
                found += more
            except (ValueError, UsageError) as error:
                raise UsageError(f"{path}:{number}: {error}") from None
    if not found:
        raise UsageError(f"{path}: no program in it")
    for key, values in first.options.items():
        found[0].options[key] = values + found[0].options.get(key, [])
    return found


def help_text() -> str:
    lines = ["usage: ompyrun [options] program [arguments] [ : [program options] program [arguments] ... ]", ""]
    lines.append("Runs a program on several ranks, of this machine or of others.")
    for title, local in (("Options of the job", False), ("Options of a program, repeatable after `:`", True)):
        lines += ["", title + ":"]
        for option in OPTIONS:
            if option.help and option.local == local:
                spelling = ", ".join(option.names) + "".join(f" {value}" for value in option.values)
                lines.append(f"  {spelling}\n        {option.help}")
    lines += [
        "",
        "Exit status: that of the first rank that failed, 128 and the signal's number for one that was killed, 124 when the",
        "time is over. Signals INT, TERM, HUP, USR1 and USR2 are passed on, TSTP as STOP; a second Ctrl-C kills; QUIT",
        "(Ctrl-\\) prints who is blocked in what, and the job goes on.",
    ]
    return "\n".join(lines)
