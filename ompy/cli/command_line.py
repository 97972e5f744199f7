"""The command line of `ompyrun`, which follows Open MPI's `mpirun`.

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
        help: a line for people; "" for options that are taken in silence because Open MPI has them.
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
    Option("--x -x", "NAME[=VALUE]", "give the ranks a variable; without a value, the one it has here", local=True),
    Option("--wdir --wd", "FOLDER", "run the program there", local=True),
    Option("--host -H", "NAME[:N],...", "run on these hosts, N ranks each (names of this machine only, for now)"),
    Option("--hostfile --machinefile", "FILE", "hosts, a line each: NAME [slots=N]"),
    Option("--oversubscribe", "", "take more ranks than --host or --hostfile have slots (more than processors always go)"),
    Option("--bind-to", "share|core|none", "processors of a rank: an equal share (default), one each, or all"),
    Option("--report-bindings", "", "say which processors each rank has"),
    Option("--mca --gmca", "NAME VALUE", "set a parameter of a component; `ompy_info --all` lists them"),
    Option("--tune --am", "FILE,...", "read parameters from files"),
    Option("--mpi4py", "", "`from mpi4py import MPI` in the program receives ompy's"),
    Option("--tag-output", "", "put [job,rank]<stream>: before each line of output"),
    Option("--stdin", "RANK|none", "rank that reads standard input (default 0)"),
    Option("--timeout", "SECONDS", "end the job then, with exit code 124"),
    Option("--report-state-on-timeout", "", "say then which rank is blocked in what, and who waits for whom"),
    Option("--get-stack-traces", "", "print then every rank's Python stack"),
    Option("--report-state", "PID", "say of the running ompyrun with this process number which rank is blocked in what"),
    Option("--verbose -v", "", "say what is started and how it ends"),
    Option("--version -V", "", "print ompy's version"),
    Option("--help -h -?", "", "print this"),
    Option("--allow-run-as-root", "", ""),
    Option("--quiet -q", "", ""),
    Option("--nooversubscribe", "", ""),
    Option("--map-by", "POLICY", ""),
    Option("--rank-by", "POLICY", ""),
    Option("--output", "tag", ""),
    Option("--prtemca", "NAME VALUE", ""),
    Option("--pmixmca", "NAME VALUE", ""),
)
BY_NAME = {name: option for option in OPTIONS for name in option.names}


class Segment:
    """One program of the command line, before it is checked."""

    def __init__(self) -> None:
        self.options: dict[str, list[list[str]]] = {}
        self.command: list[str] = []

    def last(self, key: str) -> list[str] | None:
        """The values of an option as it was given last."""
        given = self.options.get(key)
        return given[-1] if given else None


def find(word: str) -> Option:
    """The option of that spelling; UsageError with the nearest one."""
    for spelling in (word, "-" + word):
        if spelling in BY_NAME:
            return BY_NAME[spelling]
    from difflib import get_close_matches

    near = get_close_matches(word, [name for name in BY_NAME if BY_NAME[name].help], n=1)
    raise UsageError(f"there is no option {word}." + (f" Did you mean {near[0]}?" if near else " --help lists them."))


def parse(words: Sequence[str]) -> list[Segment]:
    """The segments between `:`; UsageError on an unknown option or a missing value."""
    segments = [Segment()]
    waiting = list(words)
    while waiting:
        segment = segments[-1]
        word = waiting.pop(0)
        if word == ":":
            if not segment.command:
                raise UsageError("a program is missing before `:`")
            segments.append(Segment())
        elif segment.command or not word.startswith("-") or word == "-":
            segment.command.append(word)
        elif word == "--":
            segment.command.append(waiting.pop(0) if waiting else "")
        else:
            read_option(segment, word, waiting)
    return segments


def read_option(segment: Segment, word: str, waiting: list[str]) -> None:
    name, equals, value = word.partition("=")
    option = find(name)
    values = [value] if equals else []
    while len(values) < len(option.values):
        if not waiting:
            raise UsageError(f"{name} needs {' '.join(option.values)}")
        values.append(waiting.pop(0))
    if len(values) > len(option.values):
        raise UsageError(f"{name} takes no value, found {value!r}")
    segment.options.setdefault(option.key, []).append(values)


def help_text() -> str:
    lines = ["usage: ompyrun [options] program [arguments] [ : [program options] program [arguments] ... ]", ""]
    lines.append("Runs a program on several ranks of this machine.")
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
