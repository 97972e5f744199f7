"""One run of a client over one library: what became of its tests, and how long it took."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import psutil
from client import Client, Trial
from environment import Environment, sources

WRAPPER = Path(__file__).resolve().with_name("rank_tests.py")
CORES = len(os.sched_getaffinity(0))
# The worst word of all ranks is a test's.
WORDS = ("passed", "skipped", "begun", "failed")
GRACE = 5.0
# Not below /tmp, which tests of pytest-isolate-mpi name as a folder to empty: pytest refuses that where it runs below it.
SCRATCH = "/var/tmp"


class Outcome(NamedTuple):
    """What became of one run.

    Parameters:
        tests: a word of each test, by its name.
        seconds: from the launch to the end.
        cpu_seconds: of all processes together; what else the machine does counts little in them.
        output: of what did not pass.
    """

    tests: dict[str, str]
    seconds: float
    cpu_seconds: float
    output: str

    def count(self, word: str) -> int:
        return sum(found == word for found in self.tests.values())


def used() -> float:
    """CPU seconds of everything that was started and has ended."""
    counted = resource.getrusage(resource.RUSAGE_CHILDREN)
    return counted.ru_utime + counted.ru_stime


def launcher(library: str, ranks: int) -> list[str]:
    """The command up to the program; a core for each rank where there are enough, none for all where not."""
    return ["mpiexec", "-n", str(ranks), "--bind-to", "core" if ranks <= CORES else "none"] if ranks else []


def end(started: subprocess.Popen[bytes]) -> None:
    """End a command and what it left behind, in whichever session; `adopt_orphans` has made that ours."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(started.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            started.wait(timeout=GRACE)
            break
    while left := psutil.Process().children(recursive=True):
        for process in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(left)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def execute(
    command: list[str], folder: Path, variables: dict[str, str], seconds: float, typed: str = ""
) -> tuple[int | None, str]:
    """Exit status, None when the time was over, and output."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as input_:
        input_.write(typed.encode())
        input_.seek(0)
        started = subprocess.Popen(
            command, cwd=folder, env=variables, stdin=input_, stdout=output, stderr=output, start_new_session=True
        )
        try:
            status: int | None = started.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            end(started)
        output.seek(0)
        return status, output.read().decode(errors="replace")


def told(folder: Path) -> dict[str, str]:
    """The ranks' words, the worst of each test; one that began and did not end is a failure."""
    tests: dict[str, str] = {}
    for file in folder.glob("*.tests"):
        of_rank: dict[str, str] = {}
        for line in file.read_text().splitlines():
            word, _, name = line.partition("\t")
            before = of_rank.get(name)
            of_rank[name] = word if before in (None, "begun") else max(before, word, key=WORDS.index)
        for name, word in of_rank.items():
            tests[name] = max(tests.get(name, "passed"), word, key=WORDS.index)
    return {name: "failed" if word == "begun" else word for name, word in tests.items()}


def run(client: Client, trial: Trial, environment: Environment, library: str) -> Outcome:
    """Everything of the trial, in a copy of the client's folder."""
    with tempfile.TemporaryDirectory(prefix="ompy-clients-", dir=SCRATCH) as scratch:
        work = Path(scratch, "work")
        shutil.copytree(sources(client, environment.python), work, symlinks=True)
        variables = environment.variables(library) | client.variables | {"HOME": scratch, "TMPDIR": scratch}
        start = [*launcher(library, trial.ranks), str(environment.python)]
        tests: dict[str, str] = {}
        outputs: list[str] = []
        begin, used_before = time.monotonic(), used()
        for number, arguments in enumerate(trial.pytest):
            words = Path(scratch, f"words-{number}")
            words.mkdir()
            status, output = execute(
                [*start, str(WRAPPER), str(words), *arguments], work, variables, trial.seconds, client.typed
            )
            found = told(words)
            if status != 0 or not found:
                found[f"pytest {' '.join(arguments)}"] = "failed"
                output += f"\n(exit status {status})" if status is not None else f"\n(not within {trial.seconds:g} s)"
            outputs += [output] if "failed" in found.values() else []
            tests |= found
        for program in trial.programs:
            status, output = execute([*start, *program], work, variables, trial.seconds, client.typed)
            tests[" ".join(program)] = "passed" if status == 0 else "failed"
            if status != 0:
                outputs.append(f"--- {' '.join(program)} ({'time is over' if status is None else f'exit {status}'})\n{output}")
        return Outcome(tests, time.monotonic() - begin, used() - used_before, "\n".join(outputs))
