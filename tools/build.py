#!/usr/bin/env python3
"""Rebuild what is stale, in place: the inner development loop.

    tools/build.py

That is a `.pyx` newer than its shared object, or one that cimports a newer `.pxd`, at any depth; `setup.py` says how.
Shared objects are replaced, never overwritten, so that running ranks keep the one that they mapped.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent

if __name__ == "__main__":
    python = [str(TOP / ".venv" / "bin" / "python"), "-W", "ignore"]
    sys.exit(subprocess.run([*python, "setup.py", "--quiet", "build_ext", "--inplace", *sys.argv[1:]], cwd=TOP).returncode)
