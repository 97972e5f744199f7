#!/usr/bin/env python3
"""Check that a wheel holds what it must: every extension module of pyproject.toml compiled, stubs, contracts, entry points.

    tools/wheel.py dist/ompy-*.whl

A build that loses its extension modules says nothing about it and makes a `py3-none-any` wheel.
"""

from __future__ import annotations

import sys
import tomllib
import zipfile
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent


def problems(wheel: Path) -> list[str]:
    """What is wrong with the wheel, in words; empty when nothing is."""
    project = tomllib.loads((TOP / "pyproject.toml").read_text())
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    found = []
    if wheel.name.endswith("py3-none-any.whl"):
        found.append(f"{wheel.name} is tagged py3-none-any: it holds no compiled module")
    for entry in project["tool"]["setuptools"]["ext-modules"]:
        stem = entry["name"].replace(".", "/")
        if not any(name.startswith(f"{stem}.") and name.endswith(".so") for name in names):
            found.append(f"{entry['name']} is not compiled in it")
    data = ("ompy/*/*.pxd", "ompy/*/*.pyi", "ompy/py.typed", "ompy/scaffold/templates/**/*.template")
    for path in (path for pattern in data for path in TOP.glob(pattern)):
        if str(path.relative_to(TOP)) not in names:
            found.append(f"{path.relative_to(TOP)} is missing")
    found += [f"{name} is C source" for name in names if name.endswith((".c", ".cpp"))]
    if not any(name.endswith("entry_points.txt") for name in names):
        found.append("it declares no entry points, so no component would be found")
    return found


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    found = problems(Path(sys.argv[1]))
    for problem in found:
        print(f"{sys.argv[1]}: {problem}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
