"""The process that ends a job whose launcher was killed.

    launcher ----pipe----> keeper       "+4711\n" a rank started, "-4711\n" it has been reaped, "done\n" all is well
        X                    |
              end of file    +--- without "done": SIGKILL to every rank's process group, segments swept

No signal reaches the launcher's own code when somebody says `kill -9`; only a process beside it can see that.
"""

from __future__ import annotations

import contextlib
import os
import signal

SEGMENTS = "/dev/shm"


def sweep(job: str) -> list[str]:
    """Remove what ranks of the job have left in /dev/shm, and return the names."""
    try:
        names = [name for name in os.listdir(SEGMENTS) if job in name]
    except OSError:
        return []
    for name in names:
        with contextlib.suppress(OSError):
            os.unlink(f"{SEGMENTS}/{name}")
    return names


class Keeper:
    """The launcher's end.

    Parameters:
        job: the job's name, which its segments' names contain.
    """

    def __init__(self, job: str) -> None:
        reader, self.writer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            # Nothing of the launcher's may stay open here, or its readers would wait for this process too.
            os.closerange(0, reader)
            os.closerange(reader + 1, 4096)
            os.setsid()
            with open("/proc/self/comm", "w") as name:
                name.write("ompyrun-keeper")
            try:
                watch(reader, job)
            finally:
                os._exit(0)
        os.close(reader)

    def tell(self, line: str) -> None:
        # If somebody has killed the keeper, the job runs on without.
        with contextlib.suppress(OSError):
            os.write(self.writer, line.encode() + b"\n")

    def dismiss(self) -> None:
        self.tell("done")
        os.close(self.writer)
        os.waitpid(self.pid, 0)


def watch(reader: int, job: str) -> None:
    """Until end of file; then end what is left."""
    data = b""
    while piece := os.read(reader, 65536):
        data += piece
    lines = data.decode().split()
    if "done" in lines:
        return
    gone = {line[1:] for line in lines if line.startswith("-")}
    for line in lines:
        if line.startswith("+") and line[1:] not in gone:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(int(line[1:]), signal.SIGKILL)
    sweep(job)
