"""What this process has started, directly or not: it adopts those whose parents end."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def reaped() -> Iterator[tuple[int, int]]:
    """The children that have ended: number and wait status of each."""
    with suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            yield found


def children() -> list[int]:
    """The processes that are children of this one now."""
    tasks = Path("/proc/self/task").iterdir()
    return [int(word) for task in tasks for word in (task / "children").read_text().split()]


def command_of(pid: int) -> str:
    """A process's command line, for people."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def end_children() -> None:
    """Kill all, and what becomes a child of this process thereby."""
    while found := children():
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in found:
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)
