"""Tables 4.2 and 5.1."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from ompy_raw.trace import load

from ompy_raw_experiments.experiment import Claim, Experiment, Gathered, Row
from ompy_raw_experiments.job import Job, Results
from ompy_raw_experiments.roots import ROOTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes

# Header and payload of first and other packets.
TABLE_4_2 = {"I": ((5, 26), (2, 29)), "II": ((7, 24), (3, 28)), "III": ((4, 27), (1, 30))}
MARK = 0xA5A5A5A5
WORDS = 200
PROCESSOR = 0


class WireJob(Job):
    """A job whose result is what crossed the wires: the packets that hold marked words."""

    def run(self, progress: Callable[[int], None]) -> Results:
        with tempfile.TemporaryDirectory(prefix="ompy-raw-") as folder:
            path = str(Path(folder, "trace"))
            self.mca["machine_raw_trace"] = path
            super().run(progress)
            return packets(load(path))


def packets(trace: dict[str, list[tuple[int, int, int, int]]]) -> Results:
    """Header and payload words of each packet that tile 0 sent and that holds marked words, as its link carried them."""
    crossed = [word for _, tile, side, word in trace["words"] if tile == 0 and side != PROCESSOR]
    found: Results = []
    while crossed:
        length = crossed[0] >> 24 & 31
        body, crossed = crossed[1 : 1 + length], crossed[1 + length :]
        payload = body.count(MARK)
        if payload:
            found.append({"header": length - payload, "payload": payload})
    return found


def wire_rows(results: Gathered) -> list[Row]:
    rows: list[Row] = []
    for version in TABLE_4_2:
        first, other = results[f"packets of version {version}"][:2]
        rows.append((version, first["header"], first["payload"], other["header"], other["payload"]))
    return rows


def draw_lengths(axes: Axes, rows: list[Row]) -> None:
    labels = [f"{version}, {kind}" for version, *_ in rows for kind in ("first", "other")]
    headers = [row[column] for row in rows for column in (1, 3)]
    payloads = [row[column] for row in rows for column in (2, 4)]
    axes.barh(labels, headers, label="header")
    axes.barh(labels, payloads, left=headers, label="payload")
    axes.invert_yaxis()
    axes.set_xlabel("words of a packet")
    axes.legend()


def draw_roots(axes: Axes, rows: list[Row]) -> None:
    from matplotlib.patches import Rectangle

    for place, (tiles, root) in enumerate(rows):
        for tile in range(16):
            colour = "tab:red" if tile == root else "tab:blue" if tile < tiles else "lightgrey"
            axes.add_patch(Rectangle((5 * place + tile % 4, -(tile // 4)), 0.9, 0.9, color=colour))
        axes.text(5 * place + 2, 1.4, f"{tiles} tiles", ha="center")
    axes.set_xlim(-0.5, 5 * len(rows))
    axes.set_ylim(-3.5, 2.2)
    axes.set_aspect("equal")
    axes.axis("off")


def packet_claims(rows: list[Row]) -> list[Claim]:
    claims = []
    for version, *found in rows:
        theirs = [number for packet in TABLE_4_2[str(version)] for number in packet]
        claims.append(
            Claim(
                f"version {version}: header (payload) lengths of first and other packets, in words",
                "table 4.2",
                theirs,
                found,
                theirs == found,
                "read from the words that left tile 0",
            )
        )
    return claims


def experiments() -> list[Experiment]:
    options = {"mark": MARK, "words": WORDS}
    jobs = [
        WireJob(f"packets of version {version}", "packets", options, 1, ranks=2, rpi=f"raw_v{len(version)}")
        for version in TABLE_4_2
    ]
    return [
        Experiment(
            "table_4_2",
            "Header and payload lengths",
            jobs=jobs,
            header=("version", "first header", "first payload", "other header", "other payload"),
            rows=wire_rows,
            draw=draw_lengths,
            claims=packet_claims,
        ),
        Experiment(
            "table_5_1",
            "Root tiles of collectives",
            header=("tiles", "root tile"),
            rows=lambda _: [(tiles, root) for tiles, root in ROOTS.items() if tiles > 1],
            draw=draw_roots,
        ),
    ]
