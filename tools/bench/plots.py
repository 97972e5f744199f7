"""The comparison as pictures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from figures import Figures


def plot(figures: Figures, folder: Path) -> None:
    """Half round trip and its bandwidth over size, logarithmic on both axes, a line a library."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    drawn: dict[str, list[tuple[int, float]]] = {}
    for row in figures.rows.values():
        kind, nbytes = row.name.split("@")[0].split(":")[:2] if ":" in row.name else ("", "0")
        for library in row.rounds if row.ranks == 2 else ():
            name = {"latency": library, "heap": "ompy, shared heap" if library == "ompy" else ""}.get(kind, "")
            if name:
                drawn.setdefault(name, []).append((int(nbytes), row.median(library)))
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
