"""Figures 5-2 and 5-3."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ompy_raw_experiments.experiment import Claim, Experiment, Gathered, Row
from ompy_raw_experiments.job import Job

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Words of which one is a header, in version III's packets.
PACKET_WORDS = 31


def sizes(most: int) -> list[int]:
    """1, 2, 5, 10 ... words."""
    return [step * 10**power for power in range(8) for step in (1, 2, 5) if step * 10**power <= most]


def overhead_rows(results: Gathered) -> list[Row]:
    cycles = {(line["way"], line["words"]): line["cycles"] for line in results["overhead"]}
    rows: list[Row] = []
    for words in sorted({words for _, words in cycles}):
        bare, rmpi = cycles["over_network", words], cycles["with_rmpi", words]
        rows.append((words, bare, rmpi, rmpi - bare, round(100 * (rmpi - bare) / bare, 2)))
    return rows


def draw_overhead(axes: Axes, rows: list[Row]) -> None:
    words, bare, rmpi, *_ = zip(*rows, strict=True)
    draw_lines(axes, words, {"rMPI, version III": rmpi, "network alone": bare})


def draw_lines(axes: Axes, words: Row, lines: dict[str, Row]) -> None:
    for label, cycles in lines.items():
        axes.plot(words, cycles, marker="o", label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("words")
    axes.set_ylabel("cycles")
    axes.legend()


def overhead_claims(rows: list[Row]) -> list[Claim]:
    extra = {row[0]: row[3] for row in rows}
    percent = {row[0]: row[4] for row in rows}
    small = [extra[words] for words in extra if words <= 10]
    large = max(extra)
    packets = -(-(large - 27) // 30) + 1
    share = 100 * packets / (large + 4 + packets - 1)
    per_word = extra[large] / large
    return [
        Claim(
            "the overhead is constant at small sizes",
            "5.3, figure 5-2",
            "constant",
            f"{min(small)} to {max(small)} cycles, 1 to 10 words",
            max(small) <= 1.2 * min(small),
        ),
        Claim(
            "it narrows with size",
            "5.3, figure 5-2",
            "narrows",
            f"{percent[1]:.0f}% at 1 word, {percent[large]:.0f}% at {large}",
            percent[large] < percent[1] / 10,
        ),
        Claim(
            "1 word in 31 of a long message is header",
            "5.3",
            "3.2%",
            f"{share:.1f}% of its packets' words",
            abs(share - 100 / PACKET_WORDS) < 0.2,
            f"the rest of the overhead at {large} words, of {per_word:.1f} cycles a word, is software: the interrupt handler's "
            "loop looks for each word and counts it, the bare one knows how much will come",
        ),
    ]


def ping_pong_rows(results: Gathered) -> list[Row]:
    return [(line["words"], line["cycles"]) for line in results["ping-pong"]]


def ping_pong_claims(rows: list[Row]) -> list[Claim]:
    cycles = {row[0]: row[1] for row in rows}
    return [
        Claim(
            "latency stays about constant until 100 words, then grows",
            "5.4.1, figure 5-3",
            "elbow at 100 words",
            f"{cycles[1]} cycles at 1 word, {cycles[100]} at 100, {cycles[1000]} at 1000",
            cycles[100] < 2.5 * cycles[1] and cycles[1000] > 4 * cycles[100] > 0,
        )
    ]


def draw_ping_pong(axes: Axes, rows: list[Row]) -> None:
    words, cycles = zip(*rows, strict=True)
    draw_lines(axes, words, {"there and back": cycles})


def experiments() -> list[Experiment]:
    overhead, ping_pong = [*sizes(1_000_000), 10_000_000], sizes(100_000)
    return [
        Experiment(
            "figure_5_2",
            "A message from tile 3 to tile 7",
            jobs=[Job("overhead", "latency", {"ways": ["over_network", "with_rmpi"], "words": overhead}, 2 * len(overhead))],
            header=("words", "network alone, cycles", "rMPI, cycles", "difference", "percent"),
            rows=overhead_rows,
            draw=draw_overhead,
            claims=overhead_claims,
        ),
        Experiment(
            "figure_5_3",
            "Ping-pong between tiles 3 and 7",
            jobs=[Job("ping-pong", "latency", {"ways": ["ping_pong"], "words": ping_pong}, len(ping_pong))],
            header=("words", "cycles"),
            rows=ping_pong_rows,
            draw=draw_ping_pong,
            claims=ping_pong_claims,
        ),
    ]
