"""Run `ompyrun` with real processes, and see that it leaves none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence

MARK = "OMPY_TEST_MARK"
DEADLINE = 30.0
OMPYRUN = (sys.executable, "-m", "ompy.cli.ompyrun")

# A rank knows the job's secret, and so can look for it wherever other users may; prints how long it is.
LOOKS_FOR_SECRET = """
from ompy.mca import selection
secret = selection.chosen_modules["rte"][0].secret.hex().encode()
for name in os.listdir("/proc"):
    for part in ("cmdline", "environ"):
        try:
            data = open(f"/proc/{name}/{part}", "rb").read()
        except OSError:
            continue
        assert secret not in data, (name, part)
print(len(secret))
"""

# Starts the command behind it without the right to signal processes of other users (CAP_KILL, in PR_CAPBSET_DROP).
POWERLESS = """
import ctypes, os, sys
assert ctypes.CDLL(None).prctl(24, 5, 0, 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
"""


class Launch:
    """A started `ompyrun`; as a context manager it ends the job whatever the test does.

    Parameters:
        arguments: of ompyrun.
        stdin: what the launcher reads; None for nothing.
        command: what to start instead of ompyrun.
    """

    def __init__(
        self,
        *arguments: str,
        stdin: str | None = None,
        environment: dict[str, str] | None = None,
        command: Sequence[str] = OMPYRUN,
    ) -> None:
        self.mark = uuid.uuid4().hex
        self.begun = time.monotonic()
        self.stdin = stdin
        self.process = subprocess.Popen(
            [*command, *arguments],
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=os.environ | {MARK: self.mark} | (environment or {}),
        )
        self.stdout = ""
        self.stderr = ""

    def __enter__(self) -> Launch:
        return self

    def __exit__(self, *problem: object) -> None:
        for pid in self.living():
            os.kill(pid, signal.SIGKILL)
        self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()

    def lines(self, count: int) -> list[str]:
        """The next lines of standard output, as they come."""
        assert self.process.stdout is not None
        return [self.process.stdout.readline().decode().rstrip("\n") for _ in range(count)]

    def finish(self, seconds: float = DEADLINE) -> int:
        """Wait for the end; returns the exit code.  What it printed is in `stdout` and `stderr`."""
        out, err = self.process.communicate(None if self.stdin is None else self.stdin.encode(), timeout=seconds)
        self.stdout += out.decode()
        self.stderr += err.decode()
        self.seconds = time.monotonic() - self.begun
        return self.process.returncode

    def living(self) -> list[int]:
        """Processes of this launch that still run: the launcher, its ranks, and what they started."""
        needle = f"{MARK}={self.mark}".encode()
        found = []
        for name in os.listdir("/proc"):
            if name.isdigit():
                try:
                    with open(f"/proc/{name}/environ", "rb") as stream:
                        if needle in stream.read():
                            found.append(int(name))
                except OSError:
                    continue
        return found

    def wait_until_gone(self, seconds: float = 5.0) -> list[int]:
        """Processes that are still there when the time is over."""
        end = time.monotonic() + seconds
        while (left := self.living()) and time.monotonic() < end:
            time.sleep(0.01)
        return left


def launch(*arguments: str, stdin: str | None = None, environment: dict[str, str] | None = None) -> Launch:
    """Run to the end, and check that nothing is left."""
    with Launch(*arguments, stdin=stdin, environment=environment) as job:
        job.finish()
        assert job.wait_until_gone() == []
    return job


def python(source: str) -> Sequence[str]:
    """The command that runs a program's text."""
    return (sys.executable, "-c", source)


def mpi(source: str) -> Sequence[str]:
    """The command that runs an MPI program's text, with `MPI`, `comm` and `rank` at hand."""
    head = "import os, signal, sys, time\nfrom ompy import MPI\ncomm = MPI.COMM_WORLD\nrank = comm.Get_rank()\n"
    return python(head + source)
