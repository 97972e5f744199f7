#!/usr/bin/env python3
"""Rebuild what is stale, in place: the inner development loop.

    tools/build.py

That is a `.pyx` newer than its shared object, or one that cimports a newer `.pxd`, at any depth; `setup.py` says how.
Shared objects are replaced, never overwritten, so that running ranks keep the one that they mapped.
"""

from __future__ import annotations

import re
import subprocess
import sys
import zlib
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
LAYOUT = TOP / "ompy" / "mca" / "layout.pxd"
NUMBER = re.compile(r"(?<=LAYOUT = )\w+")


def layout_number() -> int:
    """Another one whenever something is declared otherwise that compiled components may be built with; 31 bits."""
    number = 0
    for folder in ("core", "mca"):
        for path in sorted((TOP / "ompy" / folder).glob("*.pxd")):
            declared = re.sub(r"\s*(#.*)?$", "", path.read_text(), flags=re.MULTILINE) if path != LAYOUT else ""
            number = zlib.crc32(f"{path.name}\n{declared}".encode(), number)
    return number & 0x7FFFFFFF


def write_layout() -> None:
    before = LAYOUT.read_text()
    after = NUMBER.sub(f"{layout_number():#x}", before)
    if after != before:
        LAYOUT.write_text(after)


if __name__ == "__main__":
    write_layout()
    python = [str(TOP / ".venv" / "bin" / "python"), "-W", "ignore"]
    sys.exit(subprocess.run([*python, "setup.py", "--quiet", "build_ext", "--inplace", *sys.argv[1:]], cwd=TOP).returncode)
