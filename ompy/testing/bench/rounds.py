"""Jobs of two ranks, one transport after the other and back again, so that a machine's moods fall on all of them alike."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from statistics import median
from typing import NamedTuple

# What is measured -> bytes of a message -> value.
Figures = dict[str, dict[int, float]]
TIMEOUT = 120  # seconds of one job


class Sample(NamedTuple):
    """One job's figures, or why there are none."""

    transport: str
    figures: Figures
    problem: str = ""


def job(transport: str, mca: Sequence[tuple[str, str]]) -> Sample:
    """Two ranks on this host over one transport."""
    options = [word for name, value in (("btl", f"{transport},self"), *mca) for word in ("--mca", name, value)]
    command = [sys.executable, "-m", "ompy.cli.ompyrun", "-n", "2", "--oversubscribe", "--timeout", str(TIMEOUT), *options]
    done = subprocess.run([*command, sys.executable, "-m", "ompy.testing.bench.rank"], capture_output=True, text=True)
    if done.returncode:
        return Sample(transport, {}, done.stderr.strip() or f"the job ended with {done.returncode}")
    told = json.loads(done.stdout.splitlines()[-1])
    return Sample(transport, {what: {int(size): value for size, value in by.items()} for what, by in told.items()})


def run(transports: Sequence[str], rounds: int, mca: Sequence[tuple[str, str]]) -> Iterator[Sample]:
    """A B C, C B A, ..."""
    for turn in range(rounds):
        for transport in transports if turn % 2 == 0 else reversed(transports):
            yield job(transport, mca)


def medians(samples: Sequence[Sample]) -> dict[str, Figures]:
    """Of each transport that has been measured."""
    found: dict[str, Figures] = {}
    for transport in dict.fromkeys(sample.transport for sample in samples):
        good = [sample.figures for sample in samples if sample.transport == transport and not sample.problem]
        if good:
            found[transport] = {
                what: {size: median(figures[what][size] for figures in good) for size in good[0][what]} for what in good[0]
            }
    return found
