"""From what the ranks wrote to one outcome a test."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

# From the best to the worst: a test has the worst of its ranks' outcomes.
OUTCOMES = ("passed", "skipped", "failed", "not run")


def merge(records: Iterable[dict[str, Any]], ranks: int) -> dict[str, tuple[str, str]]:
    """The worst outcome of each test, with its reason; a test that a rank never finished is "not run".

    Parameters:
        records: for each rank and test first a record "not run", then those of what happened, of which a failure counts.
    """
    by_rank: dict[str, dict[int, tuple[str, str]]] = {}
    for record in records:
        seen = by_rank.setdefault(record["test"], {})
        rank, outcome = record["rank"], record["outcome"]
        known = seen.get(rank, ("not run", ""))
        if known[0] != "failed":
            seen[rank] = (outcome, record["reason"])
    return {
        test: max(
            (*seen.values(), *((("not run", "a rank never loaded it"),) if len(seen) < ranks else ())),
            key=lambda pair: OUTCOMES.index(pair[0]),
        )
        for test, seen in by_rank.items()
    }
