"""What a process holds, to see whether something is left behind."""

from __future__ import annotations

import ctypes
import gc
import os
import sys


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
