"""The process that ends a job whose launcher was killed.

    launcher ----pipe----> keeper       "4711\n" that rank has been reaped, "done\n" all is well
        X                    |
              end of file    +--- without "done": SIGKILL to every rank's process group, segments swept

No signal reaches the launcher's own code when somebody says `kill -9`; only a process beside it can see that.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time

SEGMENTS = "/dev/shm"
OPEN_LIMIT = 65536
KILL_LOOKS = 100
KILL_PAUSE = 0.01


def sweep(job: str) -> None:
    """Remove the segments that ranks of the job had no time to remove: their names contain the job's."""
    with contextlib.suppress(OSError):
        for name in os.listdir(SEGMENTS):
            if job in name:
                with contextlib.suppress(OSError):
                    os.unlink(f"{SEGMENTS}/{name}")


class Keeper:
    """The launcher's end.

    Parameters:
        job: the job's name.
        groups: process groups of the ranks, which have been started: forking first would keep them waiting.
    """

    def __init__(self, job: str, groups: list[int]) -> None:
        reader, self.writer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            # Nothing of the launcher's may stay open here, or its readers would wait for this process too.
            os.closerange(0, reader)
            os.closerange(reader + 1, OPEN_LIMIT)
            os.setsid()
            try:
                with open("/proc/self/comm", "w") as name:
                    name.write("ompyrun-keeper")
                watch(reader, job, set(groups))
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


def watch(reader: int, job: str, groups: set[int]) -> None:
    """Until end of file; then end what is left."""
    data = b""
    while piece := os.read(reader, 65536):
        data += piece
    lines = data.decode().split()
    if "done" in lines:
        return
    groups -= {int(line) for line in lines}
    for _ in range(KILL_LOOKS):
        groups = {group for group in groups if kill(group)}
        if not groups:
            break
        time.sleep(KILL_PAUSE)
    sweep(job)


def kill(group: int) -> bool:
    """False when there is nobody left in the process group; killed processes take a moment to be gone."""
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return False
    return True
