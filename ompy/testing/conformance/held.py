"""What a process has open, to see whether something is left behind."""

from __future__ import annotations

import gc
import os


def held() -> tuple[int, int]:
    """Open files, and mappings of shared memory."""
    gc.collect()
    with open("/proc/self/maps") as lines:
        shared = sum("/dev/shm/" in line or "memfd:" in line for line in lines)
    return len(os.listdir("/proc/self/fd")), shared
