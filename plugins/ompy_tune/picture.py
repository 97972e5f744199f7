"""The times as a picture: for each function time over bytes, each algorithm a line, the chosen ones bold."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ompy_tune.table import WITHOUT, Times, best, own
from ompy_tune.ways import Way

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = 3


def algorithms_of(seconds: Mapping[str, float]) -> dict[str, float]:
    """The fastest way of each algorithm."""
    found: dict[str, float] = {}
    for label, second in own(seconds).items():
        name = Way.parse(label).algorithm
        found[name] = min(second, found.get(name, second))
    return found


def draw_one(axes: Axes, function: str, sizes: dict[int, dict[str, float]]) -> None:
    names = dict.fromkeys(name for seconds in sizes.values() for name in algorithms_of(seconds))
    for number, name in enumerate(names):
        points = [(size, algorithms_of(seconds).get(name)) for size, seconds in sizes.items()]
        shown = [(size, second * 1e6) for size, second in points if second is not None]
        axes.plot(*zip(*shown, strict=True), label=name, color=f"C{number}", linewidth=0.9, marker=".")
    chosen = best(function, sizes)
    axes.plot(
        list(chosen),
        [sizes[size][label] * 1e6 for size, label in chosen.items()],
        label="chosen",
        color="black",
        linewidth=3.5,
        alpha=0.25,
    )
    if all(WITHOUT in seconds for seconds in sizes.values()):
        axes.plot(list(sizes), [it[WITHOUT] * 1e6 for it in sizes.values()], label="without it", color="black", linestyle=":")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_title(function, fontsize=10)
    axes.legend(fontsize=6)
    axes.grid(alpha=0.3)


def draw(path: Path, times: Times, ranks: int, title: str) -> None:
    """All functions that were measured on so many ranks."""
    from matplotlib.figure import Figure

    found = {function: dict(sorted(by_ranks[ranks].items())) for function, by_ranks in times.items() if ranks in by_ranks}
    # A single size is a point, which is of interest only where there is nothing else.
    found = {function: sizes for function, sizes in found.items() if len(sizes) > 1} or found
    rows = -(-len(found) // COLUMNS)
    figure = Figure(figsize=(4.2 * COLUMNS, 3.2 * rows), layout="constrained")
    panels = figure.subplots(rows, COLUMNS, squeeze=False).flat
    for function, sizes in found.items():
        draw_one(next(panels), function, sizes)
    for axes in panels:
        axes.set_visible(False)
    figure.suptitle(title)
    figure.supxlabel("bytes of a block")
    figure.supylabel("microseconds")
    figure.savefig(path, dpi=110, metadata={"Software": None})
