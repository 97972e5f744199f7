"""A process's doorbell."""

from __future__ import annotations

import subprocess
import sys

# Each thread makes what it would have when the other one has begun to, too.
AT_ONCE = """
import os, threading
from ompy.core import doorbell

meeting, pipe2 = threading.Barrier(2, timeout=20), os.pipe2

def pipe_after_the_other(flags):
    meeting.wait()
    return pipe2(flags)

os.pipe2 = pipe_after_the_other
before = set(os.listdir("/proc/self/fd"))
found = []
threads = [threading.Thread(target=lambda: found.append(doorbell.own())) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
first, second = found
assert first is second
assert doorbell.own() is first
assert first.card()
doorbell.disown()
assert set(os.listdir("/proc/self/fd")) == before
"""


def test_threads_that_ask_for_the_doorbell_at_once_have_one_and_the_same() -> None:
    result = subprocess.run([sys.executable, "-c", AT_ONCE], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
