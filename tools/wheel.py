#!/usr/bin/env python3
"""Check that a wheel holds what it must: every module compiled, stubs, contracts, entry points.

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
    shared = {name.split(".")[0] for name in names if name.endswith(".so")}
    for root in project["tool"]["setuptools"]["packages"]["find"]["where"]:
        for source in (path.relative_to(TOP / root) for path in (TOP / root).glob("ompy*/**/*.pyx")):
            if not {str(source.with_suffix("")), str(source.with_name("_compiled"))} & shared:
                found.append(f"{source} is not compiled in it")
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
