"""What a process holds, to see whether something is left behind."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import threading
from collections.abc import Callable

from ompy.core.lane import Lane

# Bytes that may come and go with whatever the interpreter keeps for later, and parts of the memory that it has from the kernel.
SLACK = 8192
NAMES = ("open files", "shared mappings", "threads", "bytes of memory")


class _Mallinfo2(ctypes.Structure):
    """`struct mallinfo2` of glibc (malloc.h), in bytes but for the two counts of chunks."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
    ]


_mallinfo2 = getattr(ctypes.CDLL(None), "mallinfo2", None)
if _mallinfo2 is not None:
    _mallinfo2.restype = _Mallinfo2


def held() -> tuple[int, int]:
    """Open files, and mappings of shared memory."""
    gc.collect()
    with open("/proc/self/maps") as lines:
        shared = sum("/dev/shm/" in line or "memfd:" in line for line in lines)
    return len(os.listdir("/proc/self/fd")), shared


def allocated() -> tuple[int, int]:
    """Blocks of Python's allocator, and bytes of C's (0 where the C library does not tell)."""
    gc.collect()
    info = _mallinfo2() if _mallinfo2 is not None else None
    return sys.getallocatedblocks(), info.uordblks + info.hblkhd if info else 0


def leaks(use: Callable[[], None], times: int) -> str:
    """What a process holds more each time that something has been done so often; empty for nothing."""
    found = []
    for _ in range(3):
        for _ in range(times):
            use()
        found.append((*held(), threading.active_count() + Lane.threads, allocated()[1]))
    more = {
        name: last - first
        for name, first, last, slack in zip(NAMES, found[1], found[2], (0, 0, 0, SLACK), strict=True)
        if last - first > slack
    }
    return f"after {times} times more: {more}" if more else ""
