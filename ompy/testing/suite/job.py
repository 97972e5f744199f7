"""One module of the suite as a job of ompyrun, watched: one that falls silent is told of and ended."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from ompy.testing.suite.outcomes import Outcome, merge, read
from ompy.testing.suite.source import installed, sources

OMPYRUN = (sys.executable, "-m", "ompy.cli.ompyrun")
PROGRAM = Path(__file__).resolve().with_name("rank.py")
# Seconds that a job has for ending its ranks.
GRACE = 10.0
LOOK = 1.0


class Setting(NamedTuple):
    """What a module runs on: number of ranks, and (name, value) of MCA parameters."""

    ranks: int
    mca: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return f"{self.ranks} rank{'s' * (self.ranks > 1)}" + "".join(f", {name} {value}" for name, value in self.mca)


class Result(NamedTuple):
    """What came of a module on a setting.

    Parameters:
        outcomes: of each test, by its name (module.class.test).
        trouble: what befell the job as a whole, empty if nothing did.
        output: what ranks and launcher printed.
    """

    module: str
    setting: Setting
    outcomes: dict[str, Outcome]
    trouble: str
    output: str
    seconds: float

    def count(self, kind: str) -> int:
        return sum(outcome.kind == kind for outcome in self.outcomes.values())


def environment() -> dict[str, str]:
    """Of the ranks: the suite and mpi4py's pure-Python parts on the path, no threads under NumPy."""
    path = [str(sources() / "test"), str(installed()), os.environ.get("PYTHONPATH", "")]
    return os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, path)),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


def sizes(folder: Path) -> list[int]:
    return [path.stat().st_size for path in sorted(folder.iterdir())]


def watch(process: subprocess.Popen[bytes], folder: Path, output: Path, silence: float) -> str:
    """Wait for the job's end; returns what was wrong with it.  Nothing new in its files for so many seconds ends it."""
    known, since = sizes(folder), time.monotonic()
    while True:
        try:
            status = process.wait(LOOK)
            return f"ompyrun exited with {status}" if status else ""
        except subprocess.TimeoutExpired:
            pass
        if (found := sizes(folder)) != known:
            known, since = found, time.monotonic()
        elif time.monotonic() - since > silence:
            break
    with output.open("ab") as file:
        subprocess.run([*OMPYRUN, "--report-state", str(process.pid)], stdout=file, stderr=file, timeout=GRACE, check=False)
    process.terminate()
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    return f"nothing happened for {silence:g} s"


def run(module: str, setting: Setting, timeout: float, silence: float) -> Result:
    """Run `test_<module>` to its end.

    Parameters:
        timeout: seconds in all.
        silence: seconds without a test that ends and without output.
    """
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        output = folder / "output"
        command = [*OMPYRUN, "--mpi4py", "--oversubscribe", "-n", str(setting.ranks)]
        command += ["--timeout", f"{timeout:g}", "--report-state-on-timeout"]
        command += [word for name, value in setting.mca for word in ("--mca", name, value)]
        command += [sys.executable, str(PROGRAM), f"test_{module}", str(folder)]
        # Appending: when the job falls silent, what it is asked goes behind what it printed.
        with output.open("ab") as file:
            process = subprocess.Popen(
                command,
                cwd=sources() / "test",
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        try:
            trouble = watch(process, folder, output, silence)
        except BaseException:
            process.terminate()
            process.wait()
            raise
        outcomes = merge(read(folder), setting.ranks)
        printed = output.read_text(encoding="utf-8", errors="replace")
    if not outcomes:
        trouble = trouble or "no test was loaded"
    return Result(module, setting, outcomes, trouble, printed, time.monotonic() - start)
