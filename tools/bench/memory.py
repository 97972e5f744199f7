"""Memory that a rank takes: its proportional share of pages, so that what ranks share counts once."""

from __future__ import annotations

import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
# What a rank that measures its memory has imported, but for MPI.
BARE = "import json, numpy, line, memory, sys; print(flush=True); sys.stdin.read()"


def resident() -> int:
    """Bytes of this process in memory; of pages that n processes share, an n-th."""
    return of("self")


def of(process: int | str) -> int:
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()[1:]
    return int(dict(line.split(":") for line in lines)["Pss"].split()[0]) * 1024


def bare(python: Path, count: int, environment: dict[str, str]) -> float:
    """Mean of as many interpreters with NumPy at a time: what ranks would take without MPI."""
    command = [str(python), "-c", BARE]
    started = [
        subprocess.Popen(command, env=environment, cwd=HERE, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(count)
    ]
    for process in started:
        assert process.stdout is not None
        process.stdout.readline()
    taken = [of(process.pid) for process in started]
    for process in started:
        process.communicate()
    return sum(taken) / count
