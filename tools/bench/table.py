"""The comparison as tables: for a terminal, and for the documentation."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from figures import Figures, Row
from libraries import BEFORE, CORES, VULCAN
from limits import limit_of
from rich.console import Console
from rich.table import Table as Drawn

# What stands between these lines of a page is the last run's.
MARKS = ("<!-- begin of the last run -->", "<!-- end of the last run -->")
MARKS_OF_HOSTS = ("<!-- begin of the last run between hosts -->", "<!-- end of the last run between hosts -->")


def cell(row: Row, library: str) -> str:
    """The median of the rounds; where ranks outnumber cores, the 95th percentile and the CPU time as well."""
    if library not in row.rounds:
        return row.failures.get(library, "-")
    factor, name = row.unit
    rounds = row.rounds[library]
    text = f"{row.median(library) * factor:.3g} {name}"
    if not rounds[0].cpu or row.ranks <= CORES:
        return text
    late = statistics.median(each.late for each in rounds) * factor
    cpu = statistics.median(each.cpu for each in rounds) * factor
    return f"{text} ({late:.3g}, {cpu:.3g})"


class Table:
    """Some rows side by side.

    Parameters:
        rows: lines of the table.
        libraries: its columns.
        with_limits: has a column for what the machine allows.
        compared: heading -> the others with whose best the first library is compared; all, unless it is given.
    """

    def __init__(
        self,
        rows: list[Row],
        libraries: tuple[str, ...],
        *,
        with_limits: bool,
        compared: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        self.libraries = libraries
        self.compared = {"ratio": libraries[1:]} if compared is None else compared
        ratios = [heading for ratio in self.compared for heading in (ratio, "lowest to highest")]
        self.headings = ["row@ranks", *libraries, *ratios, *(["limit"] if with_limits else [])]
        first = 1 + len(libraries)
        self.ratios = range(first, first + len(ratios), 2)
        self.lines = [self.line(row, with_limits=with_limits) for row in rows]

    def line(self, row: Row, *, with_limits: bool) -> list[str]:
        cells = [row.name, *(cell(row, library) for library in self.libraries)]
        for others in self.compared.values():
            known = self.libraries[0] in row.rounds and not row.name.startswith("line")
            each = row.ratios(self.libraries[0], others) if known else []
            cells += [f"{statistics.median(each):.2f}", f"{min(each):.2f} to {max(each):.2f}"] if each else ["-", "-"]
        if with_limits:
            factor, name = row.unit
            limit = limit_of(row.name)
            cells.append(f"{limit * factor:.3g} {name}" if limit else "-")
        return cells

    def show(self, console: Console, title: str) -> None:
        """On a terminal; losses in red."""
        drawn = Drawn(*self.headings, title=title)
        for cells in self.lines:
            drawn.add_row(*(coloured(text) if at in self.ratios else text for at, text in enumerate(cells)))
        console.print(drawn)

    def markdown(self) -> str:
        return "\n".join(
            "| " + " | ".join(cells) + " |" for cells in (self.headings, ["---"] * len(self.headings), *self.lines)
        )


def coloured(ratio: str) -> str:
    colour = "white" if ratio == "-" else "green" if float(ratio) >= 1 else "red"
    return f"[{colour}]{ratio}[/]"


def between_hosts(figures: Figures, libraries: tuple[str, ...], peers: tuple[str, ...], limit: str) -> list[tuple[str, Table]]:
    """The table of libraries between hosts: the first compared with the better peer, and with what the network allows."""
    title = "Between two hosts: median of rounds; ratio of the first library against the better peer, and against bare sockets"
    compared = {"ratio": peers, f"to {limit}": (limit,)}
    return [(title, Table(list(figures.rows.values()), libraries, with_limits=False, compared=compared))]


def tables(figures: Figures, names: tuple[str, ...]) -> list[tuple[str, Table]]:
    """All there is to show of libraries on one host, with titles."""
    rows: dict[str, list[Row]] = {"sockets": [], "file": [], "": []}
    for row in figures.rows.values():
        rows[next(begin for begin in rows if row.name.startswith(begin))].append(row)
    found = []
    if rows[""]:
        title = "Median of rounds (95th percentile, CPU time where ranks outnumber cores); ratio against the better peer"
        libraries = tuple(name for name in names if name != VULCAN)
        found.append((title, Table(rows[""], libraries, with_limits=True)))
    if rows["file"]:
        title = "Files: one call, the same way; ratio against the best of the others, the exchange by hand included"
        libraries = tuple(name for name in names if not name.endswith("single"))
        by_hand = tuple(f"{name} by hand" for name in libraries if name != VULCAN)
        found.append((title, Table(rows["file"], libraries + by_hand, with_limits=False)))
    if rows["sockets"]:
        title = "TCP by btl/zmq and by raw pyzmq, same processes: half round trip, and time of a message in a window of 16"
        found.append((title, Table(rows["sockets"], ("btl/zmq", "pyzmq"), with_limits=False)))
    return found


def slower(figures: Figures, by: float) -> list[str]:
    """Each row that takes longer than before by more than this part of it: what it is, and how many times as long it takes."""
    found = []
    for row in figures.rows.values():
        times = [1 / ratio for ratio in row.ratios("ompy", (BEFORE,)) if ratio]
        if times and not row.name.startswith("line") and statistics.median(times) > 1 + by:
            found.append(f"{row.name}: {statistics.median(times):.2f} times what it was")
    return found


def machine(rounds: int) -> str:
    """Where and when."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if os.path.exists("/proc/cpuinfo") else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    cores = f"{CORES} cores" if CORES > 1 else "one core"
    of = f" of {models[0]}" if models else ""
    system = f"{platform.system()} {platform.release()}, {platform.python_implementation()} {platform.python_version()}"
    return f"{datetime.now(UTC):%Y-%m-%d}, {cores}{of}, {system}, rounds: {rounds}."


def write_markdown(found: list[tuple[str, Table]], rounds: int, file: Path, marks: tuple[str, str] = MARKS) -> None:
    """Tables for the documentation: into their place in a page that has one, between the marks, else a file of their own."""
    begin, end = marks
    parts = [machine(rounds), *(f"{title}.\n\n{table.markdown()}" for title, table in found)]
    text = f"{begin}\n\n" + "\n\n".join(parts) + f"\n\n{end}"
    page = file.read_text() if file.exists() else ""
    before, begins, rest = page.partition(begin)
    _, ends, after = rest.partition(end)
    file.write_text(before + text + after if begins and ends else text + "\n")
