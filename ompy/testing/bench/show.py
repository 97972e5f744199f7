"""Figures as a table and as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ompy.testing.bench.rounds import Figures

if TYPE_CHECKING:
    from rich.table import Table


def seconds(value: float) -> str:
    return f"{value * 1e6:.3g} us" if value < 1e-3 else f"{value * 1e3:.3g} ms"


def bytes_a_second(value: float) -> str:
    return f"{value / 1e9:.3g} GB/s" if value >= 1e9 else f"{value / 1e6:.3g} MB/s"


def messages_a_second(value: float) -> str:
    return f"{value / 1e6:.3g} M/s" if value >= 1e6 else f"{value / 1e3:.3g} k/s"


WORDS = {"latency": seconds, "bandwidth": bytes_a_second, "rate": messages_a_second}


def table(found: Mapping[str, Figures]) -> Table:
    """A row for each figure, a column for each transport."""
    from rich.table import Table

    made = Table("", "bytes", *found)
    for what, words in WORDS.items():
        for size in next(iter(found.values()))[what]:
            made.add_row(what, str(size), *(words(figures[what][size]) for figures in found.values()))
        made.add_section()
    return made


def picture(found: Mapping[str, Figures], path: Path) -> None:
    """Latency and bandwidth by size, in the format that the file's name says.

    Errors: ImportError without matplotlib.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.5), constrained_layout=True)
    for name, figures in found.items():
        sizes = [size for size in figures["latency"] if size]
        left.plot(sizes, [figures["latency"][size] * 1e6 for size in sizes], marker="o", label=name)
        right.plot(list(figures["bandwidth"]), [value / 1e9 for value in figures["bandwidth"].values()], marker="o", label=name)
    left.set(title="half a round trip", xlabel="bytes", ylabel="us", xscale="log", yscale="log")
    right.set(title="bandwidth", xlabel="bytes", ylabel="GB/s", xscale="log", yscale="log")
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.legend()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
