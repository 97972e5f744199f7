"""A run of the chip as a picture: tiles and links, links over time, buffers over time, and who is stuck."""

from __future__ import annotations

from itertools import pairwise

from ompy_raw.diagnosis import BUFFER_WORDS, WORDS_OF
from ompy_raw.trace import SIDES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Of each side: where it lies seen from a tile's middle, y to the south as on the chip.
STEPS = {1: (0.0, -1.0), 2: (1.0, 0.0), 3: (0.0, 1.0), 4: (-1.0, 0.0)}
# Half a tile's side; the rest of the pitch belongs to the links.
HALF = 0.3
# Links that have a label of their own in the picture of links over time.
MOST_LABELS = 48
SHADES = "Blues"
DEADLOCKED = "#c62828"


def links(trace: dict[str, Any]) -> list[tuple[int, int]]:
    """(tile, side) of every link between two tiles, in the order of tiles."""
    width, height = trace["width"], trace["height"]
    return [
        (tile, side)
        for tile in range(width * height)
        for side, (step_x, step_y) in STEPS.items()
        if 0 <= tile % width + step_x < width and 0 <= tile // width + step_y < height
    ]


def link_name(trace: dict[str, Any], tile: int, side: int) -> str:
    step_x, step_y = STEPS[side]
    return f"{tile}→{int(tile + step_x + trace['width'] * step_y)}"


def utilisation(trace: dict[str, Any], tile: int, side: int) -> float:
    """Words a cycle over the whole run, 0 to 1."""
    return float(trace["crossed"][SIDES * tile + side] / max(trace["cycles"], 1))


def draw(trace: dict[str, Any]) -> Figure:
    """The whole picture."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 8.5), layout="constrained")
    grid = figure.add_gridspec(2, 2, width_ratios=(1.15, 1), height_ratios=(1.6, 1))
    draw_chip(figure, figure.add_subplot(grid[:, 0]), trace)
    draw_links(figure, figure.add_subplot(grid[0, 1]), trace)
    draw_buffers(figure.add_subplot(grid[1, 1]), trace)
    seconds = trace["cycles"] / trace["cycles_per_second"]
    state = ", deadlocked" if trace["deadlock"] else ""
    title = (
        f"Raw chip of {trace['width']} x {trace['height']} tiles: {trace['cycles']:,} simulated cycles ({seconds:.3g} s){state}"
    )
    figure.suptitle(title, color=DEADLOCKED if state else "black")
    return figure


def draw_chip(figure: Figure, axes: Axes, trace: dict[str, Any]) -> None:
    """Tiles, the words in their buffers at the end, and links by their use."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.patches import FancyArrow, Rectangle

    width, height = trace["width"], trace["height"]
    busiest = max((utilisation(trace, *link) for link in links(trace)), default=0.0) or 1.0
    shades = ScalarMappable(Normalize(0, busiest), SHADES)
    for tile, side in links(trace):
        step_x, step_y = STEPS[side]
        # The two directions of a pair lie side by side.
        x = tile % width + HALF * step_x - 0.07 * step_y
        y = tile // width + HALF * step_y + 0.07 * step_x
        length = 1 - 2 * HALF
        used = utilisation(trace, tile, side)
        color = colormaps[SHADES](used / busiest) if used else "#e8e8e8"
        arrow = FancyArrow(
            x, y, length * step_x, length * step_y,
            width=0.05, head_width=0.12, head_length=0.12, length_includes_head=True, color=color,
        )  # fmt: skip
        axes.add_patch(arrow)
    stuck = {tile: WORDS_OF[activity].format(done=done, count=count) for tile, activity, done, count in trace["waits"]}
    for tile in range(width * height):
        x, y = tile % width, tile // width
        blocked = trace["deadlock"] and tile in stuck
        edge = DEADLOCKED if blocked else "#455a64"
        line = 2 if blocked else 1
        axes.add_patch(Rectangle((x - HALF, y - HALF), 2 * HALF, 2 * HALF, facecolor="#f5f7f8", edgecolor=edge, linewidth=line))
        axes.text(x, y - 0.05, str(tile), ha="center", va="center", fontsize=11, fontweight="bold")
        if blocked:
            words = stuck[tile].replace(", ", ",\n").replace(" words", "\nwords")
            axes.text(x, y + 0.1, words, ha="center", va="center", fontsize=5, color=DEADLOCKED)
        draw_inputs(axes, x, y, trace["buffers"][SIDES * tile : SIDES * (tile + 1)])
    axes.set_xlim(-0.7, width - 0.3)
    axes.set_ylim(height - 0.3, -0.7)
    axes.set_aspect("equal")
    axes.axis("off")
    axes.set_title("links by words a cycle; buffers with the words in them at the end (top left: \\$CGNO)", fontsize=9)
    figure.colorbar(shades, ax=axes, shrink=0.5, label="words a cycle over the whole run", location="bottom")


def draw_inputs(axes: Axes, x: float, y: float, counts: list[int]) -> None:
    """The five buffers of a tile: four cells each, filled ones dark, all red when full."""
    from matplotlib.patches import Rectangle

    cell = 0.045
    places = {0: (-0.17, -0.15), 1: (0.0, -0.24), 2: (0.24, 0.0), 3: (0.0, 0.24), 4: (-0.24, 0.0)}
    for side, count in enumerate(counts):
        middle_x, middle_y = places[side]
        upright = side in (2, 4)
        for index in range(BUFFER_WORDS):
            offset = (index - 1.5) * cell
            left = x + middle_x + (0 if upright else offset) - cell / 2
            top = y + middle_y + (offset if upright else 0) - cell / 2
            filled = DEADLOCKED if count == BUFFER_WORDS else "#37474f"
            color = filled if index < count else "white"
            axes.add_patch(Rectangle((left, top), cell, cell, facecolor=color, edgecolor="#90a4ae", linewidth=0.4))


def draw_links(figure: Figure, axes: Axes, trace: dict[str, Any]) -> None:
    """One row a link that was used: words a cycle, from sample to sample."""
    samples = trace["samples"]
    used = [link for link in links(trace) if trace["crossed"][SIDES * link[0] + link[1]]]
    axes.set_title("links over time", fontsize=9)
    axes.set_xlabel("cycle")
    if len(samples) < 2 or not used:
        axes.text(0.5, 0.5, "too short a run to be sampled", ha="center", transform=axes.transAxes)
        return
    cycles = [sample[0] for sample in samples]
    rates = [
        [
            (after[2][SIDES * tile + side] - before[2][SIDES * tile + side]) / (after[0] - before[0])
            for before, after in pairwise(samples)
        ]
        for tile, side in used
    ]
    mesh = axes.pcolormesh(cycles, range(len(used) + 1), rates, cmap=SHADES, vmin=0)
    every = -(-len(used) // MOST_LABELS)
    axes.set_yticks([row + 0.5 for row in range(0, len(used), every)])
    axes.set_yticklabels([link_name(trace, *link) for link in used[::every]], fontsize=6)
    axes.invert_yaxis()
    figure.colorbar(mesh, ax=axes, label="words a cycle")


def draw_buffers(axes: Axes, trace: dict[str, Any]) -> None:
    """Words in the whole network, and how many buffers are full."""
    samples = trace["samples"]
    cycles = [sample[0] for sample in samples]
    axes.step(cycles, [sum(sample[1]) for sample in samples], where="post", label="words in buffers")
    full = [sum(count == BUFFER_WORDS for count in sample[1]) for sample in samples]
    axes.step(cycles, full, where="post", label="full buffers", color=DEADLOCKED)
    axes.set_title("buffers over time", fontsize=9)
    axes.set_xlabel("cycle")
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=8)
