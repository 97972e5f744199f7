"""Figure 3-5: two tiles that send to each other at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ompy_raw_experiments.experiment import Claim, Experiment, Gathered, Row
from ompy_raw_experiments.job import Job

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Payloads that cross the wire as 8 and as 9 words: version I's header has 5.
FITS, TOO_MUCH = 3, 4
WATCHDOG_CYCLES = 1000


def jobs(full: bool) -> list[Job]:
    pairs = {"words": [1, FITS, TOO_MUCH, 27, 28, 100, 1000] + ([10_000] if full else [])}
    return [
        Job("version I, 8 words", "crossing", {"words": [FITS]}, 1, ranks=2, rpi="raw_v1"),
        Job("version I, 9 words", "crossing", {"words": [TOO_MUCH]}, 1, ranks=2, rpi="raw_v1", deadlocks=True),
        Job(
            "version I with watchdog, 9 words",
            "crossing",
            {"words": [TOO_MUCH]},
            1,
            ranks=2,
            rpi="raw_v1",
            mca={"machine_raw_watchdog": WATCHDOG_CYCLES},
        ),
        Job("version II, 120 pairs", "crossing", pairs, len(pairs["words"]), rpi="raw_v2"),
        Job("version III, 120 pairs", "crossing", pairs, len(pairs["words"]), rpi="raw_v3"),
    ]


def rows(results: Gathered) -> list[Row]:
    found: list[Row] = []
    for name, lines in results.items():
        for line in lines:
            if "diagnosis" in line:
                found.append((name, TOO_MUCH, 0, "", " / ".join(part.strip() for part in line["diagnosis"].splitlines())))
            else:
                found.append((name, line["words"], line["pairs"], line["cycles"], "complete"))
    return found


def draw(axes: Axes, rows: list[Row]) -> None:
    for version in ("II", "III"):
        points = [(row[1], row[3]) for row in rows if row[0] == f"version {version}, 120 pairs"]
        axes.plot(*zip(*points, strict=True), marker="o", label=f"version {version}")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("words of each message")
    axes.set_ylabel("cycles until all 120 pairs have exchanged one")
    axes.legend()


def claims(rows: list[Row]) -> list[Claim]:
    by_name: dict[str, list[Row]] = {}
    for row in rows:
        by_name.setdefault(str(row[0]), []).append(row)
    [short], [long], [watched] = (by_name[f"version I{case}"] for case in (", 8 words", ", 9 words", " with watchdog, 9 words"))
    slower = watched[3] > short[3]
    told = [
        Claim(
            "neighbours that send each other 8 words, headers included, come out",
            "3.2.3",
            "complete",
            short[4],
            short[4] == "complete",
        ),
        Claim(
            "neighbours that send each other more than 8 words deadlock in version I",
            "3.2.3, figure 3-5",
            "deadlock",
            long[4],
            "deadlock" in str(long[4]) and "tile 0" in str(long[4]) and "tile 1" in str(long[4]) and "full" in str(long[4]),
        ),
        Claim(
            "with the watchdog they complete, slower",
            "3.2.3",
            "slower",
            f"{watched[3]} cycles, against {short[3]} of the 8 words",
            watched[4] == "complete" and slower,
        ),
    ]
    for version in ("II", "III"):
        runs = by_name[f"version {version}, 120 pairs"]
        largest = max(row[1] for row in runs)
        told.append(
            Claim(
                f"version {version} does not deadlock",
                "3.3.4, 4.3.3",
                "complete",
                f"all 120 pairs of 16 tiles, 1 to {largest} words",
                all(row[2] == 120 for row in runs),
            )
        )
    return told


def experiments(full: bool) -> list[Experiment]:
    return [
        Experiment(
            "figure_3_5",
            "Tiles that send to each other at once",
            jobs=jobs(full),
            header=("run", "words", "pairs complete", "cycles", "outcome"),
            rows=rows,
            draw=draw,
            claims=claims,
        )
    ]
