"""Figures 5-4 and 5-5: LAM/MPI's collectives on 16 tiles, root 6."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ompy_raw_experiments.catalogue.latency import draw_lines
from ompy_raw_experiments.experiment import Claim, Experiment, Gathered, Row, within
from ompy_raw_experiments.job import Job, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TILES = 16
CALLS = ("gather", "scatter", "reduce", "allgather")
# Words at which the broadcasts are compared.
LARGE = 100_000


def powers(most: int) -> list[int]:
    return [10**power for power in range(6) if 10**power <= most]


def table(lines: Results, calls: tuple[str, ...]) -> list[Row]:
    cycles = {(line["call"], line["words"]): line["cycles"] for line in lines}
    return [
        (words, *(cycles.get((call, words), "") for call in calls))
        for words in sorted({words for call, words in cycles if call in calls})
    ]


def broadcast_rows(results: Gathered) -> list[Row]:
    linear, logarithmic = (
        {line["words"]: line["cycles"] for line in results[f"broadcast, {algorithm}"]}
        for algorithm in ("linear", "logarithmic")
    )
    return [(words, linear[words], logarithmic[words], round(linear[words] / logarithmic[words], 3)) for words in linear]


def draw_broadcast(axes: Axes, rows: list[Row]) -> None:
    words, linear, logarithmic, _ = zip(*rows, strict=True)
    draw_lines(axes, words, {"linear": linear, "logarithmic": logarithmic})


def broadcast_claims(rows: list[Row]) -> list[Claim]:
    [ratio] = [row[3] for row in rows if row[0] == LARGE]
    return [
        Claim(
            f"logarithmic broadcast is 3.2 times as fast as linear at {LARGE} words",
            "5.4.2, figure 5-4",
            3.2,
            ratio,
            within(ratio, 3.2, 0.15),
        )
    ]


def call_rows(results: Gathered) -> list[Row]:
    rows = table(results["collectives"], ("bcast", *CALLS))
    # Allgather's second half broadcasts what 16 processes gave.
    whole = {line["words"]: line["cycles"] for line in results["collectives"] if line["call"] == "bcast"}
    return [(*row, whole.get(TILES * row[0], "")) for row in rows if row[2] != ""]


def draw_calls(axes: Axes, rows: list[Row]) -> None:
    words, *columns, _ = zip(*rows, strict=True)
    draw_lines(axes, words, dict(zip(("broadcast", *CALLS), columns, strict=True)))


def call_claims(rows: list[Row]) -> list[Claim]:
    claims = []
    for words, _, gather, _, _, allgather, whole in rows:
        if isinstance(words, int) and words >= 100 and isinstance(whole, int):
            together = gather + whole
            claims.append(
                Claim(
                    f"allgather costs about gather plus broadcast, {words} words a process",
                    "5.4.3, figure 5-5",
                    1.0,
                    round(allgather / together, 3),
                    within(allgather, together, 0.2),
                    f"gather {gather}, broadcast of all {TILES * words} words {whole}, allgather {allgather} cycles",
                )
            )
    where, last = "5.4.3, figure 5-5", rows[-1]
    words, bcast, gather, scatter, reduce, allgather, _ = last
    told = (
        ("reduce and gather take longer than broadcast", f"{reduce}, {gather}; {bcast}", bcast < min(reduce, gather)),
        ("gather and reduce take longer than scatter", f"{gather}, {reduce}; {scatter}", scatter < min(gather, reduce)),
        ("allgather takes longest", allgather, allgather > max(bcast, gather, scatter, reduce)),
    )
    note = f"cycles; {words} words a process in gather, scatter and allgather, and in all in broadcast and reduce"
    claims += [Claim(says, where, "order", ours, holds, note) for says, ours, holds in told]
    return claims


def experiments(full: bool) -> list[Experiment]:
    broadcast = {"calls": {"bcast": powers(LARGE)}}
    words = powers(100_000 if full else 10_000)
    calls = dict.fromkeys(CALLS, words) | {"bcast": sorted({*words, *(TILES * count for count in words)})}
    return [
        Experiment(
            "figure_5_4",
            "Broadcast on 16 tiles",
            jobs=[
                Job(
                    f"broadcast, {algorithm}",
                    "collectives",
                    broadcast,
                    len(broadcast["calls"]["bcast"]),
                    mca={"coll_bcast_algorithm": algorithm},
                )
                for algorithm in ("linear", "logarithmic")
            ],
            header=("words", "linear, cycles", "logarithmic, cycles", "ratio"),
            rows=broadcast_rows,
            draw=draw_broadcast,
            claims=broadcast_claims,
        ),
        Experiment(
            "figure_5_5",
            "Collectives on 16 tiles",
            jobs=[
                Job(
                    "collectives",
                    "collectives",
                    {"calls": calls},
                    sum(map(len, calls.values())),
                    mca={f"coll_{call}_algorithm": "logarithmic" for call in ("bcast", *CALLS)},
                )
            ],
            header=("words", "broadcast, cycles", *(f"{call}, cycles" for call in CALLS), "broadcast of 16 times the words"),
            rows=call_rows,
            draw=draw_calls,
            claims=call_claims,
        ),
    ]
