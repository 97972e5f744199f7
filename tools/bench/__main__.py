"""Compare ompy with mpi4py over Open MPI and over MPICH, in one run.

    python tools/bench                    every row
    python tools/bench --rows latency     rows whose name begins so
    python tools/bench --json out.json --plot figures --markdown docs/benchmarks.md

Libraries take turns (A B C, C B A, ...), ranks are bound to cores while there are enough, and each round gives one ratio
against the better peer; the table shows their median, lowest and highest.  Losses are shown like gains.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import click
from libraries import CORES, HERE, Library, libraries
from limits import limit_of
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

SIZES = (0, 8, 64, 256, 1024, 4096, 8192, 65536, 1 << 20, 4 << 20)
COLLECTIVES = ("bcast", "reduce", "allreduce", "allgather", "alltoall", "reduce_scatter", "scan")

# Rows that one process of a library measures in one go, by number of ranks.
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
OF_ALL = ["barrier:0", *(f"{name}:{size}" for size in (8, 65536, 1 << 20) for name in COLLECTIVES)]
GROUPS: dict[int, list[str]] = {2: [*POINT_TO_POINT, *OF_ALL], 4: OF_ALL, 8: OF_ALL}
START_UP = (1, 2, 4, 8, 16)
RESIDENT = (2, 8, 32, 64)
# NumPy arrays in ompy's shared heap; the peers' are where they always are.
NUMPY_HEAP = [f"numpy_heap:{size}" for size in (65536, 1 << 20, 4 << 20)]
IN_HEAP = {"OMPY_MCA_mpi_numpy_heap": "65536"}


class Round(NamedTuple):
    """What one launch of a library measured of a row: seconds or bytes, and CPU seconds of one operation."""

    median: float
    late: float  # 95 of 100 are not above it
    cpu: float


Figures = dict[str, dict[str, list[Round]]]


def in_turns(group: list[Library], rounds: int) -> list[list[Library]]:
    """Each round's order: there and back, so that a drift of the machine weighs on all alike."""
    return [group if number % 2 == 0 else group[::-1] for number in range(rounds)]


def start_up(library: Library, ranks: int) -> float:
    """Seconds from the command to its end, for a program that imports and exits."""
    begin = time.perf_counter()
    library.run(ranks, "-c", "from mpi4py import MPI")
    return time.perf_counter() - begin


def compare(group: list[Library], rounds: int, wanted: tuple[str, ...], console: Console) -> Figures:
    """{row: {library: [one figure a round]}}"""
    figures: Figures = {}

    def chosen(rows: list[str], ranks: int) -> list[str]:
        return [row for row in rows if not wanted or any(f"{row}@{ranks}".startswith(begin) for begin in wanted)]

    jobs: list[tuple[int, list[str], str]] = [(ranks, chosen(rows, ranks), "rows") for ranks, rows in GROUPS.items()]
    jobs += [(2, chosen(NUMPY_HEAP, 2), "in heap")]
    jobs += [(ranks, chosen(["start_up"], ranks), "start_up") for ranks in START_UP]
    jobs += [(ranks, chosen(["resident"], ranks), "rows") for ranks in RESIDENT]
    jobs = [job for job in jobs if job[1]]
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("", total=len(jobs) * rounds * len(group))
        for ranks, rows, kind in jobs:
            for order in in_turns(group, rounds):
                for library in order:
                    progress.update(task, description=f"{library.name}, {ranks} ranks, {len(rows)} rows")
                    found: dict[str, Any]
                    try:
                        if kind == "start_up":
                            found = {"start_up": {"samples": [start_up(library, ranks)], "cpu": 0.0}}
                        else:
                            settings = IN_HEAP if kind == "in heap" else {}
                            printed = library.run(ranks, str(HERE / "rows.py"), *rows, settings=settings)
                            found = json.loads(printed.splitlines()[-1])
                    except Exception as error:
                        console.print(f"[red]{library.name}, {ranks} ranks: {error}")
                        found = {}
                    for row, measured in found.items():
                        samples = sorted(measured["samples"])
                        late = samples[min(len(samples) - 1, int(0.95 * len(samples)))]
                        place = figures.setdefault(f"{row}@{ranks}", {})
                        place.setdefault(library.name, []).append(Round(statistics.median(samples), late, measured["cpu"]))
                    progress.advance(task)
    return figures


def ratios(place: dict[str, list[Round]]) -> list[float]:
    """For each round, how many times better ompy was than the better peer."""
    peers = [rounds for name, rounds in place.items() if name != "ompy"]
    together = zip(place.get("ompy", []), *peers, strict=False)
    return [min(value.median for value in values) / own.median for own, *values in together if values and own.median]


NAMES = ("ompy", "Open MPI", "Open MPI single", "MPICH", "MPICH single")
HEADINGS = ("row@ranks", *NAMES, "ratio", "lowest to highest", "limit")


def cell(rounds: list[Round], row: str) -> str:
    """The median of the rounds; where ranks outnumber cores, the 95th percentile and the CPU time as well."""
    factor, name = unit(row)
    median = statistics.median(each.median for each in rounds) * factor
    if not rounds[0].cpu or int(row.split("@")[1]) <= CORES:
        return f"{median:.3g} {name}"
    late = statistics.median(each.late for each in rounds) * factor
    cpu = statistics.median(each.cpu for each in rounds) * factor
    return f"{median:.3g} {name} ({late:.3g}, {cpu:.3g})"


def lines(figures: Figures) -> list[list[str]]:
    """The table's rows, a cell a heading."""
    found = []
    for row, place in figures.items():
        factor, name = unit(row)
        cells = [cell(place[library], row) if library in place else "-" for library in NAMES]
        each = ratios(place)
        told = [f"{statistics.median(each):.2f}", f"{min(each):.2f} to {max(each):.2f}"] if each else ["-", "-"]
        limit = limit_of(row)
        found.append([row, *cells, *told, f"{limit * factor:.3g} {name}" if limit else "-"])
    return found


def unit(row: str) -> tuple[float, str]:
    """Factor and name of the unit that a row is shown in."""
    if row.startswith("resident"):
        return 1e-6, "MB"
    return (1.0, "s") if row.startswith("start_up") else (1e6, "us")


def show(told: list[list[str]], console: Console) -> None:
    """The table for a terminal."""
    title = "median of rounds (95th percentile, CPU time where ranks outnumber cores); ratio against the better peer"
    table = Table(*HEADINGS, title=title)
    for cells in told:
        ratio = cells[len(NAMES) + 1]
        colour = "white" if ratio == "-" else "green" if float(ratio) >= 1 else "red"
        table.add_row(*(f"[{colour}]{text}[/]" if text is ratio else text for text in cells))
    console.print(table)


def markdown(told: list[list[str]]) -> str:
    """The table for the documentation."""
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (HEADINGS, ["---"] * len(HEADINGS), *told)) + "\n"


def compare_sockets(own: Library, console: Console) -> None:
    """btl/zmq and raw pyzmq between the same processes."""
    printed = own.run(2, str(HERE / "sockets.py"), settings={"OMPY_MCA_btl": "self,zmq"})
    table = Table("bytes", "btl/zmq", "pyzmq", "times as long", title="half round trip over TCP between the same processes")
    for size, (ours, raw) in json.loads(printed.splitlines()[-1]).items():
        table.add_row(size, f"{ours * 1e6:.3g} us", f"{raw * 1e6:.3g} us", f"{ours / raw:.2f}")
    console.print(table)


def plot(figures: Figures, folder: Path) -> None:
    """Half round trip and its bandwidth over size, logarithmic on both axes, a line a library."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    drawn: dict[str, list[tuple[int, float]]] = {}
    for row, place in figures.items():
        kind, nbytes = row.split("@")[0].split(":")[:2] if ":" in row else ("", "0")
        for library, rounds in place.items():
            name = {"latency": library, "heap": "ompy, shared heap" if library == "ompy" else ""}.get(kind, "")
            if name:
                drawn.setdefault(name, []).append((int(nbytes), statistics.median(each.median for each in rounds)))
    drawings: list[tuple[str, str, Callable[[int, float], float]]] = [
        ("latency", "half round trip, microseconds", lambda _, seconds: seconds * 1e6),
        ("bandwidth", "gigabytes a second", lambda nbytes, seconds: nbytes / seconds / 1e9),
    ]
    for name, label, value in drawings:
        figure, axes = plt.subplots(figsize=(8, 5))
        for library, points in drawn.items():
            shown = [(nbytes, value(nbytes, seconds)) for nbytes, seconds in sorted(points) if nbytes]
            axes.loglog(*zip(*shown, strict=True), marker="o", linewidth=2 if library.startswith("ompy") else 1, label=library)
        axes.set_xlabel("bytes")
        axes.set_ylabel(label)
        axes.grid(which="both", alpha=0.3)
        axes.legend()
        figure.tight_layout()
        figure.savefig(folder / f"{name}.png", dpi=120)
        plt.close(figure)


@click.command(help=__doc__)
@click.option(
    "--rows",
    multiple=True,
    metavar="NAME",
    help="Only rows that begin so, e.g. latency:8@2; sockets: btl/zmq against pyzmq.  Repeatable.",
)
@click.option("--rounds", default=5, show_default=True, help="Turns of each library.")
@click.option("--only", multiple=True, metavar="LIBRARY", help="Only these libraries (ompy always).")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write the figures of every round.")
@click.option("--markdown", "markdown_file", type=click.Path(path_type=Path), help="Write the table for the documentation.")
@click.option("--plot", "plot_folder", type=click.Path(path_type=Path), help="Draw latency and bandwidth over size.")
def main(
    rows: tuple[str, ...],
    rounds: int,
    only: tuple[str, ...],
    json_file: Path | None,
    markdown_file: Path | None,
    plot_folder: Path | None,
) -> None:
    console = Console(stderr=not sys.stdout.isatty(), width=None if sys.stdout.isatty() else 160)
    group = [library for library in libraries() if library.name == "ompy" or not only or library.name in only]
    figures = compare(group, rounds, rows, console)
    told = lines(figures)
    wide = Console(width=None if sys.stdout.isatty() else 200)
    show(told, wide)
    if not rows or "sockets" in rows:
        compare_sockets(group[0], wide)
    if json_file:
        rounds_of = {
            row: {name: [each._asdict() for each in found] for name, found in place.items()} for row, place in figures.items()
        }
        json_file.write_text(json.dumps(rounds_of, indent=1))
    if markdown_file:
        markdown_file.write_text(markdown(told))
    if plot_folder:
        plot(figures, plot_folder)


if __name__ == "__main__":
    main()
