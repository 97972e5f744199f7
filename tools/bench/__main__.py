"""Compare ompy with mpi4py over Open MPI and over MPICH, in one run.

\b
    python tools/bench                    every row
    python tools/bench --rows latency     rows whose name begins so
    python tools/bench --json out.json --plot docs/figures --markdown docs/benchmarks.md
    python tools/bench --before TREE      this tree and another one of ompy, set up as this is, in turns
    python tools/bench --hosts            between two hosts, which are network namespaces: as root

Libraries take turns (A B C, C B A, ...), ranks are bound to cores while there are enough, and each round gives one ratio
against the better peer; the table shows their median, lowest and highest.  Losses are shown like gains, and so is a library
that did not come to an end.
"""

from __future__ import annotations

import json
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import click
from figures import Figures, Round
from libraries import BEFORE, HERE, NAMES, VULCAN, Library, library, ompy
from memory import bare
from plots import plot
from rich.console import Console
from rich.progress import Progress
from table import MARKS, MARKS_OF_HOSTS, Table, between_hosts, slower, tables, write_markdown

SIZES = (0, 8, 64, 256, 1024, 4096, 8192, 65536, 1 << 20, 4 << 20)
COLLECTIVES = ("bcast", "reduce", "allreduce", "allgather", "alltoall", "reduce_scatter", "scan")

# Rows that one launch of a library measures in one go, by number of ranks.
POINT_TO_POINT = [
    *(f"latency:{size}" for size in SIZES),
    *(f"heap:{size}" for size in (65536, 1 << 20, 4 << 20)),
    *(f"cold:{size}" for size in (65536, 1 << 20)),
    "window:8:64",
    "window:65536:64",
    f"window:{1 << 20}:16",
    "pickle_dict",
    f"pickle_array:{1 << 20}",
    *(f"{kind}:{depth}" for kind in ("unexpected", "posted") for depth in (1, 64, 4096, 10000)),
    "column:512",
]
IN_PAIRS = ["latency:8", "latency:65536", f"latency:{1 << 20}", "window:8:64", "pickle_dict"]
OF_ALL = ["barrier:0", *(f"{name}:{size}" for size in (8, 65536, 1 << 20) for name in COLLECTIVES)]
LIVES = [
    *(f"comm_{name}" for name in ("dup", "dup_self", "split", "create_group", "cart_sub")),
    "win_allocate",
    "type_subarray",
    "type_vector",
]
FLAVORS = ("allocate", "shared", "create")
MOVES = ("put", "get", "accumulate")
ONE_SIDED = [
    *(f"rma_{what}_{flavor}:{size}" for flavor in FLAVORS for size in (8, 4096, 65536, 1 << 20) for what in MOVES),
    *(f"rma_{what}_column_{flavor}:8000" for flavor in FLAVORS for what in MOVES),
    *(f"rma_{what}_{flavor}:8" for flavor in FLAVORS for what in ("fetch_and_op", "compare_and_swap", "lock", "fence", "pscw")),
]
BUSY = [*(f"busy_put_{flavor}:8" for flavor in (*FLAVORS, "dynamic")), f"busy_isend:{1 << 20}", f"busy_iallreduce:{1 << 20}"]
ROWS = {2: [*POINT_TO_POINT, *OF_ALL, *LIVES, *ONE_SIDED, *BUSY], 4: [*IN_PAIRS, *OF_ALL, *LIVES], 8: [*IN_PAIRS, *OF_ALL]}
FILES = [
    *(f"file_plain_{way}:8" for way in ("write_at", "read_at", "write_shared", "write_ordered")),
    *(f"file_plain_{way}:{4 << 20}" for way in ("write_all", "read_all")),
    *(f"file_interleaved_{way}:{piece}" for piece in (8, 64, 4096) for way in ("write", "read")),
    *(f"file_columns_{way}:8192" for way in ("write", "read")),
]
# NumPy arrays in ompy's shared heap; the peers' are where they always are.
NUMPY_HEAP = [f"numpy_heap:{size}" for size in (65536, 1 << 20, 4 << 20)]
IN_HEAP = {"OMPY_MCA_mpi_numpy_heap": "65536"}
START_UP = (1, 2, 4, 8, 16)
RESIDENT = (2, 8, 32, 64)
SOCKETS = [*(f"sockets:{size}" for size in (8, 4096, 1 << 20)), *(f"sockets_window:{size}" for size in (65536, 1 << 20))]

# Between two hosts, half of the ranks on each.
BETWEEN_HOSTS = {
    2: [
        *(f"latency:{size}" for size in SIZES if size),
        "window:8:64",
        "window:1024:64",
        "window:65536:64",
        f"window:{1 << 20}:16",
        f"window:{4 << 20}:8",
    ],
    4: [f"{name}:{size}" for size in (8, 1024, 65536, 1 << 20) for name in ("allreduce", "alltoall")],
}

# Of a row, this part more than before is told.
SLOWER = 0.03

# Seconds that a launch may take, and each of its rows besides; `rows.py` itself stops sampling a row after a few.
LONGEST_LAUNCH = 120.0
LONGEST_ROW = 10.0


class Job:
    """Rows that are measured together, on so many ranks."""

    def __init__(self, ranks: int, rows: list[str]) -> None:
        self.ranks = ranks
        self.rows = rows

    def measures(self, library: Library) -> bool:
        """Whether it says anything about the library."""
        return library.name != VULCAN

    def column(self, library: Library, way: str) -> str:
        """Where the figures of a library belong, and of a way in which it was done."""
        return way or library.name

    def run(self, library: Library, figures: Figures) -> None:
        """One round."""
        self.take(library, figures, "rows.py")

    def take(self, library: Library, figures: Figures, program: str, settings: dict[str, str] | None = None) -> None:
        """Run a program of this folder, which prints the samples of each row when it has them."""
        timeout = LONGEST_LAUNCH + LONGEST_ROW * len(self.rows)
        printed = library.run(self.ranks, str(HERE / program), *self.rows, timeout=timeout, settings=settings)
        missing = set(self.rows)
        for line in printed.lines:
            if not line.startswith("{"):
                continue
            measured = json.loads(line)
            missing.discard(measured["row"])
            row = figures.row(f"{measured['row']}@{self.ranks}")
            for name, samples in measured["samples"].items():
                row.add(self.column(library, name), Round.of(samples, measured["cpu"]))
        for name in self.rows:
            if name in missing:
                figures.row(f"{name}@{self.ranks}").failures[library.name] = printed.failure or "not there"


class Spawning(Job):
    """Processes that a rank starts, which have no core each; Hydra can't start any for a rank that is bound."""

    def run(self, library: Library, figures: Figures) -> None:
        super().run(library.without_binding(), figures)


class InHeap(Job):
    """With NumPy's memory in the shared heap."""

    def run(self, library: Library, figures: Figures) -> None:
        self.take(library, figures, "rows.py", IN_HEAP)


class Files(Job):
    """What ranks write to one file and read, by the library and by hand."""

    def measures(self, library: Library) -> bool:
        return not library.name.endswith("single")

    def column(self, library: Library, way: str) -> str:
        return f"{library.name} {way}".rstrip()


class Sockets(Job):
    """btl/zmq and raw pyzmq, in the same processes."""

    def measures(self, library: Library) -> bool:
        return library.name == "ompy"

    def run(self, library: Library, figures: Figures) -> None:
        self.take(library, figures, "sockets.py", {"OMPY_MCA_btl": "self,zmq"})


class StartUp(Job):
    """From the command to its end, for a program that imports and exits."""

    def run(self, library: Library, figures: Figures) -> None:
        row = figures.row(f"start_up@{self.ranks}")
        begin = time.perf_counter()
        printed = library.run(self.ranks, "-c", "from mpi4py import MPI", timeout=LONGEST_LAUNCH)
        if printed.failure:
            row.failures[library.name] = printed.failure
        else:
            row.add(library.name, Round.of([time.perf_counter() - begin]))


class Resident(Job):
    """Memory of ranks beyond that of as many interpreters with NumPy."""

    def run(self, library: Library, figures: Figures) -> None:
        row = figures.row(f"resident@{self.ranks}")
        printed = library.run(self.ranks, str(HERE / "rows.py"), "resident", timeout=LONGEST_LAUNCH)
        measured = [json.loads(line) for line in printed.lines if line.startswith("{")]
        if measured:
            taken = bare(library.python, self.ranks, library.variables())
            row.add(library.name, Round.of([measured[0]["samples"][""][0] - taken]))
        else:
            row.failures[library.name] = printed.failure or "not there"


class OnHosts(Job):
    """Rows between hosts; the programs on bare sockets have those of two ranks."""

    def measures(self, library: Library) -> bool:
        return self.ranks == 2 or library.name != "bare sockets"


def jobs(wanted: tuple[str, ...], hosts: bool) -> list[Job]:
    """What there is to measure, on this host or between hosts; only rows that begin as wanted, if anything is."""

    def chosen(rows: list[str], ranks: int) -> list[str]:
        return [row for row in rows if not wanted or any(f"{row}@{ranks}".startswith(begin) for begin in wanted)]

    if hosts:
        return [job for job in (OnHosts(ranks, chosen(rows, ranks)) for ranks, rows in BETWEEN_HOSTS.items()) if job.rows]
    found = [Job(ranks, chosen(rows, ranks)) for ranks, rows in ROWS.items()]
    found += [Spawning(1, chosen(["spawn:4"], 1))]
    found += [Files(ranks, chosen(FILES, ranks)) for ranks in (2, 4)]
    found += [InHeap(2, chosen(NUMPY_HEAP, 2)), Sockets(2, chosen(SOCKETS, 2))]
    found += [StartUp(ranks, chosen(["start_up"], ranks)) for ranks in START_UP]
    found += [Resident(ranks, chosen(["resident"], ranks)) for ranks in RESIDENT]
    return [job for job in found if job.rows]


def compare(group: list[Library], rounds: int, todo: list[Job], console: Console) -> Figures:
    """Each round there and back, so that a drift of the machine weighs on all alike."""
    figures = Figures()
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("", total=len(todo) * rounds * len(group))
        for job in todo:
            for number in range(rounds):
                for one in group if number % 2 == 0 else group[::-1]:
                    progress.update(task, description=f"{one.name}, {job.ranks} ranks, {len(job.rows)} rows")
                    if job.measures(one):
                        job.run(one, figures)
                    progress.advance(task)
    return figures


def names_between_hosts() -> tuple[str, ...]:
    """The libraries that can be compared between hosts."""
    from hosts import NAMES, installed

    return tuple(name for name in NAMES if installed(name))


def compare_hosts(
    names: tuple[str, ...], rounds: int, todo: list[Job], congestion: str, console: Console
) -> tuple[Figures, list[tuple[str, Table]]]:
    """The same between two hosts; raises ClickException where there can be none."""
    import hosts

    try:
        with hosts.two_hosts(congestion) as machines:
            figures = compare([hosts.library(name, machines) for name in names], rounds, todo, console)
    except hosts.NoHosts as error:
        raise click.ClickException(f"no hosts on this machine: {error}") from None
    return figures, between_hosts(figures, names, hosts.PEERS, hosts.BARE)


@click.command(help=__doc__)
@click.option("--rows", multiple=True, metavar="NAME", help="Only rows that begin so, e.g. latency:8@2.  Repeatable.")
@click.option("--rounds", default=5, show_default=True, help="Turns of each library.")
@click.option("--only", multiple=True, metavar="LIBRARY", help=f"Only these libraries: {', '.join(NAMES)}.  Repeatable.")
@click.option(
    "--before",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="TREE",
    help="Beside another tree of ompy in place of the peers; rows that take 3% longer here are told.",
)
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write the figures of every round.")
@click.option(
    "--markdown", "markdown_file", type=click.Path(path_type=Path), help="Write the tables; in a page that has them, in place."
)
@click.option("--plot", "plot_folder", type=click.Path(path_type=Path), help="Draw latency and bandwidth over size.")
@click.option("--hosts", is_flag=True, help="Between two hosts, made of namespaces with half of the processors each.")
@click.option("--congestion", default="", metavar="NAME", help="Between hosts that send by this algorithm of TCP, e.g. reno.")
def main(
    rows: tuple[str, ...],
    rounds: int,
    only: tuple[str, ...],
    before: Path | None,
    json_file: Path | None,
    markdown_file: Path | None,
    plot_folder: Path | None,
    hosts: bool,
    congestion: str,
) -> None:
    if hosts:
        # The tests' hosts.
        sys.path.append(str(HERE.parent.parent / "tests" / "hosts"))
    known = names_between_hosts() if hosts else NAMES
    for name in only:
        if name not in known:
            raise click.BadParameter(f"{name}: one of {', '.join(known)} expected", param_hint="--only")
    if before and (hosts or only):
        raise click.BadParameter("--before has no --hosts and no --only beside it", param_hint="--before")
    if congestion and not hosts:
        raise click.BadParameter("is of --hosts", param_hint="--congestion")
    if before and not (before / ".venv" / "bin" / "ompyrun").exists():
        raise click.BadParameter(f"{before} is no tree that tools/setup has set up", param_hint="--before")
    todo = jobs(rows, hosts)
    if not todo:
        raise click.BadParameter(f"no row begins with {' or '.join(rows)}", param_hint="--rows")
    if plot_folder and not find_spec("matplotlib"):
        raise click.BadParameter("pictures need matplotlib: tools/setup plots", param_hint="--plot")
    console = Console(stderr=not sys.stdout.isatty(), width=None if sys.stdout.isatty() else 160)
    if hosts:
        figures, found = compare_hosts(only or known, rounds, todo, congestion, console)
    else:
        group = [library(name) for name in (("ompy",) if before else only or known)]
        group += [ompy(BEFORE, before.resolve() / ".venv" / "bin")] if before else []
        figures = compare(group, rounds, todo, console)
        found = tables(figures, ("ompy", BEFORE) if before else NAMES)
    wide = Console(width=None if sys.stdout.isatty() else 200)
    for title, table in found:
        table.show(wide, title)
    if before:
        wide.print("\n".join(slower(figures, SLOWER)) or f"no row is slower by more than {SLOWER:.0%}")
    if json_file:
        json_file.write_text(json.dumps(figures.as_json(), indent=1))
    if markdown_file:
        write_markdown(found, rounds, markdown_file, MARKS_OF_HOSTS if hosts else MARKS)
    if plot_folder:
        plot(figures, plot_folder)


if __name__ == "__main__":
    main()
