"""One module of the suite as a job of ompyrun or another launcher, watched: one that falls silent is told of and ended."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from ompy.compat import folder as stand_in
from ompy.testing.suite.outcomes import Outcome, merge, read
from ompy.testing.suite.source import installed, sources

OMPYRUN = (sys.executable, "-m", "ompy.cli.ompyrun")
PROGRAM = Path(__file__).resolve().with_name("rank.py")
# What a launcher may not hand on by itself.
TOLD = ("PYTHONPATH", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
# Seconds that a job has for ending its ranks.
GRACE = 10.0
LOOK = 1.0


class Setting(NamedTuple):
    """What a module runs on: number of ranks, (name, value) of MCA parameters, and whose launcher starts them.

    Parameters:
        launcher: its words, `{ranks}` for their number; none: ompyrun.
    """

    ranks: int
    mca: tuple[tuple[str, str], ...]
    launcher: tuple[str, ...] = ()

    def __str__(self) -> str:
        ranks = f"{self.ranks} rank{'s' * (self.ranks > 1)}" + "".join(f", {name} {value}" for name, value in self.mca)
        commands = [Path(word).name for word in self.launcher if "=" not in word and word != "env"]
        return f"{ranks}, under {commands[0]}" if commands else ranks

    def command(self, timeout: float) -> list[str]:
        """Up to the program."""
        if self.launcher:
            told = [f"{name}={value}" for name, value in environment(stand_in()).items() if name in TOLD]
            told += [f"OMPY_MCA_{name}={value}" for name, value in self.mca]
            return [*(word.format(ranks=self.ranks) for word in self.launcher), "env", *told]
        command = [*OMPYRUN, "--mpi4py", "--oversubscribe", "-n", str(self.ranks)]
        command += ["--timeout", f"{timeout:g}", "--report-state-on-timeout"]
        return [*command, *(word for name, value in self.mca for word in ("--mca", name, value))]


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


def environment(*first: str) -> dict[str, str]:
    """Of the ranks: these folders, the suite and mpi4py's pure-Python parts on the path, no threads under NumPy."""
    path = [*first, str(sources() / "test"), str(installed()), os.environ.get("PYTHONPATH", "")]
    return os.environ | dict(zip(TOLD, (os.pathsep.join(filter(None, path)), "1", "1"), strict=True))


def sizes(folder: Path) -> list[int]:
    return [path.stat().st_size for path in sorted(folder.iterdir())]


def watch(process: subprocess.Popen[bytes], folder: Path, output: Path, timeout: float, silence: float, has_state: bool) -> str:
    """Wait for the job's end; returns what was wrong with it.

    It has `timeout` seconds, and is ended where there is nothing new in its files for `silence` seconds; where
    `has_state`, what its ranks wait for is asked before.
    """
    begin = time.monotonic()
    known, since = sizes(folder), begin
    while True:
        try:
            status = process.wait(LOOK)
            return f"the launcher exited with {status}" if status else ""
        except subprocess.TimeoutExpired:
            pass
        if (found := sizes(folder)) != known:
            known, since = found, time.monotonic()
        elif time.monotonic() - since > silence:
            trouble = f"nothing happened for {silence:g} s"
            break
        if time.monotonic() - begin > timeout + GRACE:  # of ompyrun, which has an end of its own, this is the second one
            trouble = f"it has not ended within {timeout:g} s"
            break
    if has_state:
        with output.open("ab") as file:
            subprocess.run([*OMPYRUN, "--report-state", str(process.pid)], stdout=file, stderr=file, timeout=GRACE, check=False)
    process.terminate()
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    return trouble


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
        command = [*setting.command(timeout), sys.executable, str(PROGRAM), f"test_{module}", str(folder)]
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
            trouble = watch(process, folder, output, timeout, silence, not setting.launcher)
        except BaseException:
            process.terminate()
            process.wait()
            raise
        outcomes = merge(read(folder), setting.ranks)
        printed = output.read_text(encoding="utf-8", errors="replace")
    if not outcomes:
        trouble = trouble or "no test was loaded"
    return Result(module, setting, outcomes, trouble, printed, time.monotonic() - start)
