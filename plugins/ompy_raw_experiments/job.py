"""A job on the simulated chip: started, watched, and its results read."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

Results = list[dict[str, Any]]
# A job that says nothing for so long hangs.
SILENCE_SECONDS = 600.0


class Job:
    """A program of `ompy_raw_experiments.programs` under ompyrun.

    Parameters:
        name: under which its results are known.
        program: the module.
        options: for the program, as JSON.
        results: how many lines it will report, for the progress display.
        ranks: on tiles 0 to ranks - 1.
        rpi: the version of rMPI.
        mca: further parameters.
        deadlocks: it is meant to end so.
    """

    def __init__(
        self,
        name: str,
        program: str,
        options: dict[str, Any],
        results: int,
        *,
        ranks: int = 16,
        rpi: str = "raw_v3",
        mca: dict[str, object] | None = None,
        deadlocks: bool = False,
    ) -> None:
        self.name = name
        self.program = program
        self.options = options
        self.results = results
        self.ranks = ranks
        self.rpi = rpi
        self.mca = dict(mca or {})
        self.deadlocks = deadlocks

    def command(self, path: Path) -> list[str]:
        """What is run; results go to `path`."""
        parameters = {"pml": "rpi", "rpi": self.rpi, "coll": "basic", "rpi_base_verbose": -1, **self.mca}
        words = [word for name, value in parameters.items() for word in ("--mca", name, str(value))]
        program = ["-m", f"ompy_raw_experiments.programs.{self.program}", str(path), json.dumps(self.options)]
        return [sys.executable, "-m", "ompy.cli.ompyrun", "-n", str(self.ranks), *words, sys.executable, *program]

    def run(self, progress: Callable[[int], None]) -> Results:
        """Its results, in the order of their report; `progress` is told their number as it grows.

        Of a job that is meant to deadlock: the diagnosis, as the one result.  Raises RuntimeError when it ends otherwise.
        """
        with tempfile.TemporaryDirectory(prefix="ompy-raw-") as folder:
            path, output = Path(folder, "results"), Path(folder, "output")
            path.touch()
            with output.open("w") as stream:
                environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
                process = subprocess.Popen(self.command(path), stdout=stream, stderr=stream, env=environment)
                try:
                    self.watch(process, path, progress)
                except BaseException:
                    process.send_signal(signal.SIGINT)
                    process.wait()
                    raise
            said = output.read_text()
            if self.deadlocks:
                if "deadlock on the Raw chip" not in said:
                    raise RuntimeError(f"job {self.name} was to deadlock, but ended with status {process.returncode}:\n{said}")
                lines = said[said.index("deadlock on the Raw chip") :].splitlines()
                return [{"diagnosis": "\n".join(lines[:4])}]
            if process.returncode:
                raise RuntimeError(f"job {self.name} ended with status {process.returncode}:\n{said}")
            return [json.loads(line) for line in path.read_text().splitlines()]

    def watch(self, process: subprocess.Popen[bytes], path: Path, progress: Callable[[int], None]) -> None:
        """Until the job is over."""
        count, silent = 0, 0.0
        while True:
            try:
                process.wait(0.2)
                return
            except subprocess.TimeoutExpired:
                now = path.read_text().count("\n")
                silent = silent + 0.2 if now == count else 0.0
                count = now
                progress(count)
            if silent > SILENCE_SECONDS:
                raise RuntimeError(f"job {self.name} has reported nothing for {SILENCE_SECONDS:.0f} s")
