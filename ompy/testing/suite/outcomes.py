"""From what the ranks wrote to one outcome a test."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

# From the best to the worst: a test has the worst of its ranks' outcomes.
OUTCOMES = ("passed", "skipped", "failed", "not run")


class Outcome(NamedTuple):
    """What came of a test, and in whose words."""

    kind: str
    reason: str


class Record(NamedTuple):
    """A line that a rank wrote."""

    rank: int
    test: str
    outcome: str
    reason: str


def read(folder: Path) -> list[Record]:
    """What the ranks wrote.  The last line of a killed rank may be half a line; its test was then not finished."""
    records = []
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
            if line.endswith("\n"):
                records.append(Record(**json.loads(line)))
    return records


def merge(records: Iterable[Record], ranks: int) -> dict[str, Outcome]:
    """The worst outcome of each test over the ranks; a test that some rank never finished is "not run".

    Parameters:
        records: of each rank first "not run" for every test, then what came of each, of which a failure counts:

            rank 0   not run t   not run u   passed t   failed u   passed u
            rank 1   not run t   not run u   passed t                            (killed in u)
                     t passed, u not run
    """
    by_rank: dict[str, dict[int, Outcome]] = {}
    for record in records:
        seen = by_rank.setdefault(record.test, {})
        if seen.get(record.rank, Outcome("", "")).kind != "failed":
            reason = f"rank {record.rank}: {record.reason}" if record.outcome in ("failed", "not run") else record.reason
            seen[record.rank] = Outcome(record.outcome, reason)
    merged = {}
    for test, seen in by_rank.items():
        missing = ranks - len(seen)
        outcomes = [*seen.values()] + ([Outcome("not run", f"{missing} ranks never loaded it")] if missing else [])
        merged[test] = max(outcomes, key=lambda outcome: OUTCOMES.index(outcome.kind))
    return merged
