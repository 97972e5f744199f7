"""Mutated packets and descriptors: no crash, no byte outside a descriptor, every drop counted and told.

In a process of its own, since a kernel that leaves its bounds meets a guard page and dies.  OMPY_HOSTILE_INPUTS=1000000 takes
about ten seconds.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

INPUTS = int(os.environ.get("OMPY_HOSTILE_INPUTS", "200000"))


def test_no_input_leads_the_kernel_astray(seed):
    command = [sys.executable, str(Path(__file__).with_name("hostile.py")), str(seed), str(INPUTS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    print(f"seed {seed}\n{done.stdout}")
    assert done.returncode == 0, f"seed {seed}, status {done.returncode}\n{done.stdout}{done.stderr}"
    told = dict(line.split(None, 1)[::-1] for line in done.stdout.splitlines())
    # All the ways that a message can go were gone.
    for kind in ("DEPOSITED DROP_NONE", "READ DROP_NONE", "MATCHED DROP_NONE", "LOST DROP_NONE"):
        assert int(told[f"EVENT_{kind}"]) > INPUTS // 20_000
    for reason in ("NO_PROCESS", "GROUP", "PORTAL", "EMPTY_PORTAL", "TOO_LONG", "INVALID", "FULL", "BROKEN_LIST", "MALFORMED"):
        assert int(told[f"EVENT_DROPPED DROP_{reason}"]) > INPUTS // 20_000


def test_the_guard_pages_bite():
    """The check itself: a write outside ends the process."""
    program = "import hostile, ctypes; area = hostile.Guarded(100); ctypes.memset(area.end, 1, 1)"
    folder = Path(__file__).parent
    assert subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, timeout=60).returncode == -11
