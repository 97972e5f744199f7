"""Figures 5-6 to 5-12: the four applications."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ompy_raw_experiments.experiment import Claim, Experiment, Gathered, Row, within
from ompy_raw_experiments.job import Job

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TILES = (1, 2, 4, 8, 16)
TOLERANCE = 0.2

# What the thesis gives: part of the perfect speed-up, or the speed-up.
TRAPEZOID = {4: 0.98, 8: 0.94, 16: 0.77}
PI = {8: 0.95, 16: 0.91}
JACOBI = {2: 1.2, 4: 2.3, 8: 4.4, 16: 9.3}
MATRIX = {4: 2.8, 8: 5.8, 16: 8.5}


def speed_ups(name: str, program: str = "") -> Callable[[Gathered], list[Row]]:
    """Rows of tiles, cycles, speed-up and share of the perfect one; `program` picks among several of the job's."""

    def rows(results: Gathered) -> list[Row]:
        lines = [line for line in results[name] if not program or line["tiles"] == 1 or line["program"] == program]
        serial = next(line["cycles"] for line in lines if line["tiles"] == 1)
        return [
            (
                line["tiles"],
                line["cycles"],
                round(serial / line["cycles"], 3),
                round(serial / line["cycles"] / line["tiles"], 3),
            )
            for line in lines
        ]

    return rows


def draw_speed_up(theirs: Mapping[int, float]) -> Callable[[Axes, list[Row]], None]:
    """Ours as a line, the thesis's as crosses."""

    def draw(axes: Axes, rows: list[Row]) -> None:
        tiles, _, ours, *_ = zip(*rows, strict=True)
        axes.plot(tiles, tiles, color="lightgrey", label="perfect")
        axes.plot(tiles, ours, marker="o", label="here")
        axes.plot(list(theirs), list(theirs.values()), "kx", markersize=9, label="thesis")
        axes.set_xlabel("tiles")
        axes.set_ylabel("times as fast as the serial program")
        axes.legend()

    return draw


def efficiency_claims(where: str, theirs: dict[int, float]) -> Callable[[list[Row]], list[Claim]]:
    def claims(rows: list[Row]) -> list[Claim]:
        ours = {row[0]: row[3] for row in rows}
        return [
            Claim(f"part of perfect speed-up on {tiles} tiles", where, part, ours[tiles], within(ours[tiles], part, TOLERANCE))
            for tiles, part in theirs.items()
        ]

    return claims


def jacobi_rows(results: Gathered) -> list[Row]:
    tested = {row[0]: row[2] for row in speed_ups("jacobi", "tested")(results)}
    return [(*row, tested[row[0]]) for row in speed_ups("jacobi", "same")(results)]


def draw_jacobi(axes: Axes, rows: list[Row]) -> None:
    draw_speed_up(JACOBI)(axes, rows)
    axes.plot(
        [row[0] for row in rows], [row[4] for row in rows], marker="s", label="test and copy in the parallel program only"
    )
    axes.legend()


def jacobi_claims(rows: list[Row]) -> list[Claim]:
    where = "5.5.3, figure 5-10"
    same = "serial and parallel program do the same for each point; the thesis's programs are not printed"
    tested = (
        "the parallel program also tests for convergence and copies the new values back, as tutorial programs do, and the "
        "serial one does not: an assumption, made because the thesis's loss is the same at every number of tiles"
    )
    claims = []
    for column, case, note in ((2, "like for like", same), (4, "test and copy in the parallel program only", tested)):
        ours = {row[0]: row[column] for row in rows}
        claims += [
            Claim(f"speed-up on {tiles} tiles, {case}", where, times, ours[tiles], within(ours[tiles], times, TOLERANCE), note)
            for tiles, times in JACOBI.items()
        ]
    return claims


def matrix_claims(rows: list[Row]) -> list[Claim]:
    where = "5.5.4, figure 5-12"
    ours = {row[0]: row[2] for row in rows}
    return [
        Claim("two tiles take longer than one", where, "below 1", ours[2], ours[2] < 1),
        *(
            Claim(f"speed-up on {tiles} tiles", where, times, ours[tiles], within(ours[tiles], times, TOLERANCE))
            for tiles, times in MATRIX.items()
        ),
    ]


def integrand(
    function: str, low: float, high: float
) -> tuple[Callable[[Gathered], list[Row]], Callable[[Axes, list[Row]], None]]:
    def rows(_: Gathered) -> list[Row]:
        import numpy as np

        from ompy_raw_experiments import integrands

        x = np.linspace(low, high, 101)
        return [(float(place), float(value)) for place, value in zip(x, getattr(integrands, function)(x), strict=True)]

    def draw(axes: Axes, rows: list[Row]) -> None:
        axes.plot(*zip(*rows, strict=True))
        axes.set_xlabel("x")

    return rows, draw


def partition_rows(_: Gathered) -> list[Row]:
    from ompy_raw_experiments.partition import shares

    return [
        (tiles, worker, first, count)
        for tiles in TILES[1:]
        for worker, (first, count) in enumerate(shares(640, tiles - 1), start=1)
    ]


def draw_partition(axes: Axes, rows: list[Row]) -> None:
    for tiles, worker, first, count in rows:
        if tiles == TILES[-1]:
            axes.barh(first + count / 2, 700, height=count, edgecolor="white")
            axes.text(350, first + count / 2, f"tile {worker}", va="center", ha="center", fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel("columns of C; each worker has all of B")
    axes.set_ylabel("rows of A and C")


def integration(name: str, program: str, low: float, high: float, steps: int) -> Job:
    options = {"program": program, "low": low, "high": high, "steps": steps, "tiles": TILES}
    return Job(name, "integration", options, len(TILES))


def experiments() -> list[Experiment]:
    header = ("tiles", "cycles", "speed-up", "part of perfect")
    polynomial, draw_polynomial = integrand("polynomial", 1.0, 1048576.0)
    circle, draw_circle = integrand("quarter_circle", 0.0, 1.0)
    return [
        Experiment(
            "figure_5_6", "The trapezoidal rule's integrand", header=("x", "f(x)"), rows=polynomial, draw=draw_polynomial
        ),
        Experiment(
            "figure_5_7",
            "Trapezoidal rule",
            jobs=[integration("trapezoid", "trapezoid", 0.0, 1048576.0, 16384)],
            header=header,
            rows=speed_ups("trapezoid"),
            draw=draw_speed_up({tiles: tiles * part for tiles, part in TRAPEZOID.items()}),
            claims=efficiency_claims("5.5.1, figure 5-7", TRAPEZOID),
        ),
        Experiment(
            "figure_5_8",
            "Estimation of pi",
            jobs=[integration("pi", "pi", 0.0, 1.0, 100_000)],
            header=header,
            rows=speed_ups("pi"),
            draw=draw_speed_up({tiles: tiles * part for tiles, part in PI.items()}),
            claims=efficiency_claims("5.5.2, figure 5-8", PI),
        ),
        Experiment("figure_5_9", "The integrand of pi", header=("x", "4 / (1 + x^2)"), rows=circle, draw=draw_circle),
        Experiment(
            "figure_5_10",
            "Jacobi relaxation, 3200 x 3200",
            jobs=[Job("jacobi", "jacobi", {"side": 3200, "sweeps": 4, "tiles": TILES}, 2 * len(TILES) - 1)],
            header=(*header, "speed-up with test and copy in the parallel program only"),
            rows=jacobi_rows,
            draw=draw_jacobi,
            claims=jacobi_claims,
        ),
        Experiment(
            "figure_5_11",
            "Rows of the matrix product",
            header=("tiles", "worker", "first row", "rows"),
            rows=partition_rows,
            draw=draw_partition,
        ),
        Experiment(
            "figure_5_12",
            "Matrix product, 640 x 150 by 150 x 700",
            jobs=[Job("matrix", "matrix", {"shape": [640, 150, 700], "tiles": TILES}, len(TILES))],
            header=header,
            rows=speed_ups("matrix"),
            draw=draw_speed_up(MATRIX),
            claims=matrix_claims,
        ),
    ]
