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

import click
from libraries import HERE, Library, libraries
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

SIZES = (0, 8, 64, 256, 1024, 4096, 8192, 65536, 1 << 20, 4 << 20)
COLLECTIVES = ("bcast", "reduce", "allreduce", "allgather", "alltoall", "reduce_scatter", "scan")

# Rows that one process of a library measures in one go, by number of ranks.
POINT_TO_POINT = [
    *(f"latency:{size}" for size in SIZES),
    *(f"heap:{size}" for size in (65536, 1 << 20, 4 << 20)),
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

Figures = dict[str, dict[str, list[float]]]


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
    jobs += [(ranks, chosen(["start_up"], ranks), "start_up") for ranks in START_UP]
    jobs += [(ranks, chosen(["resident"], ranks), "rows") for ranks in RESIDENT]
    jobs = [job for job in jobs if job[1]]
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("", total=len(jobs) * rounds * len(group))
        for ranks, rows, kind in jobs:
            for order in in_turns(group, rounds):
                for library in order:
                    progress.update(task, description=f"{library.name}, {ranks} ranks, {len(rows)} rows")
                    try:
                        if kind == "start_up":
                            found = {"start_up": [start_up(library, ranks)]}
                        else:
                            found = json.loads(library.run(ranks, str(HERE / "rows.py"), *rows).splitlines()[-1])
                    except Exception as error:
                        console.print(f"[red]{library.name}, {ranks} ranks: {error}")
                        found = {}
                    for row, samples in found.items():
                        place = figures.setdefault(f"{row}@{ranks}", {})
                        place.setdefault(library.name, []).append(statistics.median(samples))
                    progress.advance(task)
    return figures


def ratios(place: dict[str, list[float]]) -> list[float]:
    """For each round, how many times better ompy was than the better peer."""
    peers = [figures for name, figures in place.items() if name != "ompy"]
    return [min(values) / own for own, *values in zip(place.get("ompy", []), *peers, strict=False) if values and own]


def unit(row: str) -> tuple[float, str]:
    """Factor and name of the unit that a row is shown in."""
    if row.startswith("resident"):
        return 1e-6, "MB"
    return (1.0, "s") if row.startswith("start_up") else (1e6, "us")


def show(figures: Figures, console: Console) -> Table:
    """The table for a terminal."""
    names = ["ompy", "Open MPI", "Open MPI single", "MPICH", "MPICH single"]
    table = Table("row@ranks", *names, "ratio", "lowest to highest", title="median of rounds; ratio against the better peer")
    for row, place in figures.items():
        factor, name = unit(row)
        cells = [f"{statistics.median(place[library]) * factor:.3g} {name}" if library in place else "-" for library in names]
        found = ratios(place)
        colour = "green" if found and statistics.median(found) >= 1 else "red"
        ratio = f"[{colour}]{statistics.median(found):.2f}[/]" if found else "-"
        table.add_row(row, *cells, ratio, f"{min(found):.2f} to {max(found):.2f}" if found else "-")
    console.print(table)
    return table


def markdown(figures: Figures) -> str:
    """The table for the documentation."""
    names = ["ompy", "Open MPI", "Open MPI single", "MPICH", "MPICH single"]
    lines = ["| row@ranks | " + " | ".join(names) + " | ratio | lowest to highest |", "| --- |" + " --- |" * (len(names) + 2)]
    for row, place in figures.items():
        factor, name = unit(row)
        cells = [f"{statistics.median(place[library]) * factor:.3g} {name}" if library in place else "-" for library in names]
        found = ratios(place)
        told = [f"{statistics.median(found):.2f}", f"{min(found):.2f} to {max(found):.2f}"] if found else ["-", "-"]
        lines.append("| " + " | ".join([row, *cells, *told]) + " |")
    return "\n".join(lines) + "\n"


def plot(figures: Figures, folder: Path) -> None:
    """Half round trip and its bandwidth over size, logarithmic on both axes, a line a library."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    lines: dict[str, list[tuple[int, float]]] = {}
    for row, place in figures.items():
        if row.startswith("latency:"):
            nbytes = int(row.split(":")[1].split("@")[0])
            for library, values in place.items():
                lines.setdefault(library, []).append((nbytes, statistics.median(values)))
    drawings: list[tuple[str, str, Callable[[int, float], float]]] = [
        ("latency", "half round trip, microseconds", lambda _, seconds: seconds * 1e6),
        ("bandwidth", "gigabytes a second", lambda nbytes, seconds: nbytes / seconds / 1e9),
    ]
    for name, label, value in drawings:
        figure, axes = plt.subplots(figsize=(8, 5))
        for library, points in lines.items():
            shown = [(nbytes, value(nbytes, seconds)) for nbytes, seconds in sorted(points) if nbytes]
            axes.loglog(*zip(*shown, strict=True), marker="o", linewidth=2 if library == "ompy" else 1, label=library)
        axes.set_xlabel("bytes")
        axes.set_ylabel(label)
        axes.grid(which="both", alpha=0.3)
        axes.legend()
        figure.tight_layout()
        figure.savefig(folder / f"{name}.png", dpi=120)
        plt.close(figure)


@click.command(help=__doc__)
@click.option("--rows", multiple=True, metavar="NAME", help="Only rows that begin so, e.g. latency:8@2.  Repeatable.")
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
    show(figures, Console(width=None if sys.stdout.isatty() else 160))
    if json_file:
        json_file.write_text(json.dumps(figures, indent=1))
    if markdown_file:
        markdown_file.write_text(markdown(figures))
    if plot_folder:
        plot(figures, plot_folder)


if __name__ == "__main__":
    main()
