"""Results of runs, kept in one file beside this one, so that clients can be run one at a time and stand in one table."""

from __future__ import annotations

import json
import os
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from client import Client, Trial
from environment import LIBRARIES
from trial import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

KEPT = Path(__file__).resolve().parent / "results.json"
# What the clock and the machine's other work may add to a run, relative and in seconds.
NOISE = 0.05
NOISE_SECONDS = 0.3
# Runs of the same differ by so much, relative, on a processor that is shared with other machines.
NEAR = 0.1
# Of the cores that a job has.
BUSY = 0.8


def key(client: Client, trial: Trial, version: str) -> str:
    return f"{client.name} {trial.ranks} {version}"


def read(path: Path = KEPT) -> dict[str, dict[str, Any]]:
    return json.loads(path.read_text()) if path.exists() else {}


def summary(rounds: list[Outcome], clocked: Sequence[str] = (), in_turns: Sequence[Outcome] = ()) -> dict[str, Any]:
    """Of one library: the worst of the rounds for each test, and the median of the times.

    Parameters:
        clocked: tests that ask the clock, of which the best of the rounds counts.
        in_turns: runs at once with the other library, whose times count instead of those of the rounds.
    """
    everything, timed = [*rounds, *in_turns], in_turns or rounds
    names = {name for outcome in everything for name in outcome.tests}
    failed = []
    for name in sorted(names):
        failures = [outcome.tests.get(name, "failed") == "failed" for outcome in everything]
        if (all if name.rpartition("::")[2] in clocked else any)(failures):
            failed.append(name)
    skipped = sum(all(outcome.tests.get(name) == "skipped" for outcome in everything) for name in names)
    return {
        "passed": len(names) - len(failed) - skipped,
        "skipped": skipped,
        "failed": failed,
        "seconds": round(median(outcome.seconds for outcome in timed), 2),
        "cpu_seconds": round(median(outcome.cpu_seconds for outcome in timed), 2),
        "rounds": len(rounds),
        "in_turns": len(in_turns),
    }


def is_near(ours: list[Outcome], theirs: list[Outcome]) -> bool:
    """Whether the median times of the two libraries are nearer to each other than runs of one of them may be."""

    def spread(rounds: list[Outcome], middle: float) -> float:
        return median(abs(outcome.seconds - middle) for outcome in rounds)

    middles = [median(outcome.seconds for outcome in rounds) for rounds in (ours, theirs)]
    return abs(middles[0] - middles[1]) < max(NEAR * min(middles), *map(spread, (ours, theirs), middles))


def computes(rounds: list[Outcome], cores: int) -> bool:
    """Whether that many cores were busy nearly all the time: what waits for times is no faster while others are stopped."""
    return median(outcome.cpu_seconds / outcome.seconds for outcome in rounds) > BUSY * cores


def merge(found: dict[str, dict[str, Any]], path: Path = KEPT) -> dict[str, dict[str, Any]]:
    """Add what was found to what is kept; the newer counts, for each library by itself."""
    everything = read(path)
    for name, libraries in found.items():
        everything.setdefault(name, {}).update(libraries)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(f".{os.getpid()}")
    fresh.write_text(json.dumps(everything, indent=1, sort_keys=True) + "\n")
    os.replace(fresh, path)
    return everything


def verdict(libraries: dict[str, Any]) -> list[str]:
    """In what ompy is behind, in words: nothing when it passes as much in at most the time."""
    ours, theirs = (libraries.get(name) for name in LIBRARIES)
    if ours is None or theirs is None:
        return ["one library only"]
    words = []
    if behind := [name for name in ours["failed"] if name not in theirs["failed"]]:
        words.append(f"{len(behind)} fail{'s' * (len(behind) == 1)} here only")
    if ours["passed"] < theirs["passed"] and not behind:
        words.append(f"{theirs['passed'] - ours['passed']} fewer pass")
    if ours["seconds"] > theirs["seconds"] * (1 + NOISE) + NOISE_SECONDS:
        words.append(f"{ours['seconds'] / theirs['seconds']:.2f} times the time")
    return words
