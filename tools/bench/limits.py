"""What the machine allows at best, where that is known: the least copying that a row needs, shared by the two cores."""

from __future__ import annotations

import itertools
import statistics
from time import perf_counter

import numpy as np

from ompy.core.convertor import Convertor
from ompy.core.typemap import predefined

ROUNDS = 30
COLD = 96 << 20
BYTE = 1
# Shorter messages are bound by software and the way between the cores, not by copying.
SHORTEST = 4096


def seconds_of_copy(nbytes: int, *, cold: bool = False) -> float:
    """One copy of so many bytes by one core."""
    arrays = [np.ones(nbytes, dtype=np.uint8) for _ in range(max(2, COLD // nbytes) if cold else 2)]
    turn = itertools.cycle(arrays)
    repeat = 1 if cold else max(1, (1 << 20) // nbytes)
    found = []
    for _ in range(ROUNDS):
        source, target = next(turn), next(turn)
        begin = perf_counter()
        for _ in range(repeat):
            np.copyto(target, source)
        found.append((perf_counter() - begin) / repeat)
    return statistics.median(found)


def seconds_of_column(count: int) -> float:
    """A column of doubles gathered and scattered once by one core, as the two do in half a round trip."""
    matrix = np.ones((count, count))
    convertor = Convertor()
    convertor.aim(matrix.ctypes.data, 1, predefined(BYTE).create_hvector(count, matrix.itemsize, matrix.strides[0]))
    found = []
    for _ in range(ROUNDS * 10):
        begin = perf_counter()
        convertor.seek_to(0)
        packed = convertor.pack_bytes(convertor.total)
        convertor.seek_to(0)
        convertor.unpack_bytes(packed)
        found.append(perf_counter() - begin)
    return statistics.median(found)


def limit_of(row: str) -> float | None:
    """Seconds below which the row can't get on this machine; None where nobody knows."""
    name, *arguments = row.split("@")[0].split(":")
    size = int(arguments[0]) if arguments else 0
    if name == "column":
        return seconds_of_column(size)
    if name in ("latency", "heap", "numpy_heap", "window", "pickle_array", "cold") and size >= SHORTEST:
        return seconds_of_copy(size, cold=name == "cold") / 2
    return None
