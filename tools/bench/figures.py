"""What was measured: one figure a row, a library and a round."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple


class Round(NamedTuple):
    """What one launch of a library measured of a row: seconds or bytes, and CPU seconds of one operation."""

    median: float
    late: float  # 95 of 100 are not above it
    cpu: float  # of all ranks together

    @staticmethod
    def of(samples: list[float], cpu: float = 0.0) -> Round:
        """The figures of one launch's samples."""
        ordered = sorted(samples)
        return Round(statistics.median(ordered), ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))], cpu)


class Row:
    """One line of the table.

    Parameters:
        name: `what:bytes:more@ranks`.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.rounds: dict[str, list[Round]] = {}
        self.failures: dict[str, str] = {}  # why a library has fewer rounds than others, or none

    @property
    def ranks(self) -> int:
        return int(self.name.split("@")[1])

    @property
    def unit(self) -> tuple[float, str]:
        """Factor and name of the unit that the row is shown in."""
        if self.name.startswith("resident"):
            return 1e-6, "MB"
        return (1.0, "s") if self.name.startswith(("start_up", "spawn")) else (1e6, "us")

    def add(self, library: str, figures: Round) -> None:
        self.rounds.setdefault(library, []).append(figures)

    def median(self, library: str) -> float:
        return statistics.median(each.median for each in self.rounds[library])

    def ratios(self, library: str, others: Sequence[str]) -> list[float]:
        """For each round, how many times better a library was than the best of the others."""
        own, *peers = (self.rounds[name] for name in (library, *others) if name in self.rounds)
        together = zip(own, *peers, strict=False)
        return [min(value.median for value in values) / mine.median for mine, *values in together if values and mine.median]


class Figures:
    """All rows, in the order in which they were first heard of."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}

    def row(self, name: str) -> Row:
        return self.rows.setdefault(name, Row(name))

    def as_json(self) -> dict[str, dict[str, object]]:
        return {
            row.name: {library: [each._asdict() for each in rounds] for library, rounds in row.rounds.items()}
            | {library: why for library, why in row.failures.items() if library not in row.rounds}
            for row in self.rows.values()
        }
