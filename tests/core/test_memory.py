"""What `malloc` keeps when it is told to."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import resource
from ompy.core.memory import keep_freed

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        pieces = [bytes(1 << 20) for _ in range(4)]
        del pieces
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

fresh = faults()
told = keep_freed(2 << 20, 64 << 20)
faults()
print(told, fresh, faults())
"""


def test_kept_memory_has_its_pages():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True)
    told, fresh, kept = done.stdout.split()
    if told == "True":
        assert int(kept) < int(fresh) / 10, done.stdout
