#!/usr/bin/env python3
"""Rebuild what changed, in place: the inner development loop.

    tools/build.py                       every stale module
    tools/build.py ompy.core.progress    that one and whatever cimports it, if stale
    tools/build.py --fast ...            without optimisation: quicker to compile, slow to run

A module is stale when its `.pyx`, its `.pxd` or any `.pxd` that it cimports (at any depth) is newer than its shared
object.  One module's error does not stop the others.  Shared objects are replaced, never overwritten, so that running
ranks keep the one that they mapped.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import re
import shlex
import subprocess
import sys
import sysconfig
import tomllib
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
ROOTS = [TOP, *(TOP / name for name in ("btl", "pml", "coll", "plugins"))]
# Asked once, here: sysconfig fills its table in without a lock, and modules are compiled in threads.
VARIABLES = sysconfig.get_config_vars()
CIMPORT = re.compile(r"^\s*(?:from\s+([\w.]+)\s+cimport\s+([^#\n]+)|cimport\s+([\w.]+))", re.MULTILINE)


def extensions() -> dict[str, Path]:
    """Module name -> source, as `pyproject.toml` declares them."""
    project = tomllib.loads((TOP / "pyproject.toml").read_text())
    return {entry["name"]: TOP / entry["sources"][0] for entry in project["tool"]["setuptools"]["ext-modules"]}


def pxd_of(module: str) -> Path | None:
    relative = Path(*module.split("."))
    for root in ROOTS:
        if (candidate := root / relative.with_suffix(".pxd")).exists():
            return candidate
    return None


@cache
def cimports(source: Path) -> frozenset[Path]:
    """Every `.pxd` of this project that the source cimports, at any depth."""
    found: set[Path] = set()
    waiting = [source, source.with_suffix(".pxd")]
    while waiting:
        path = waiting.pop()
        if not path.exists():
            continue
        for package, names, module in CIMPORT.findall(path.read_text()):
            candidates = [module or package]
            candidates += [f"{package}.{name.split()[0]}" for name in names.strip("() ").split(",") if package and name.strip()]
            for candidate in candidates:
                if (pxd := pxd_of(candidate)) and pxd not in found:
                    found.add(pxd)
                    waiting.append(pxd)
    return frozenset(found)


def target_of(source: Path) -> Path:
    return source.with_suffix(VARIABLES["EXT_SUFFIX"])


def stale(source: Path) -> bool:
    target = target_of(source)
    if not target.exists():
        return True
    built = target.stat().st_mtime
    return any(
        path.exists() and path.stat().st_mtime > built for path in (source, source.with_suffix(".pxd"), *cimports(source))
    )


def build(name: str, source: Path, fast: bool) -> str | None:
    """Compile one module; returns the compiler's words when it failed."""
    work = TOP / "build" / "inplace"
    work.mkdir(parents=True, exist_ok=True)
    c_file = work / f"{name}.c"
    target = target_of(source)
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    includes = [argument for root in ROOTS for argument in ("-I", str(root))]
    begun = max(p.stat().st_mtime for p in (source, *cimports(source)))
    commands = [
        [sys.executable, "-m", "cython", "-3", *includes, "--module-name", name, "-o", str(c_file), str(source)],
        [
            *shlex.split(VARIABLES["CC"]), *shlex.split(VARIABLES["CFLAGS"]), "-O0" if fast else "-O2", "-g0", "-fPIC",
            "-shared", "-I", sysconfig.get_path("include"), str(c_file), "-o", str(partial),
        ],
    ]  # fmt: skip
    for command in commands:
        result = subprocess.run(command, cwd=TOP, capture_output=True, text=True)
        if result.returncode:
            partial.unlink(missing_ok=True)
            return result.stdout + result.stderr
    os.replace(partial, target)
    if begun > target.stat().st_mtime:
        os.utime(target)
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", help="dotted names or paths; default: all")
    parser.add_argument("--fast", action="store_true", help="compile without optimisation")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    declared = extensions()
    wanted = {str(m).removesuffix(".pyx").replace("/", ".").removeprefix(".") for m in arguments.modules}
    for prefix in ("btl.", "pml.", "coll.", "plugins."):
        wanted = {name.removeprefix(prefix) for name in wanted}
    if unknown := wanted - declared.keys():
        parser.error(f"not in pyproject.toml's ext-modules: {', '.join(sorted(unknown))}")
    pxds = {declared[name].with_suffix(".pxd") for name in wanted}
    todo = {
        name: source
        for name, source in declared.items()
        if source.exists() and (not wanted or name in wanted or pxds & cimports(source))
    }
    lock = TOP / "build"
    lock.mkdir(exist_ok=True)
    failed = 0
    with ThreadPoolExecutor(arguments.jobs) as pool:

        def one(item: tuple[str, Path]) -> tuple[str, str | None, bool]:
            name, source = item
            with open(lock / f".{name}.lock", "w") as held:
                fcntl.flock(held, fcntl.LOCK_EX)
                if not stale(source):
                    return name, None, False
                return name, build(name, source, arguments.fast), True

        for name, problem, built in pool.map(one, todo.items()):
            if problem:
                failed += 1
                print(f"--- {name}: failed\n{problem}", file=sys.stderr)
            elif built:
                print(f"built {name}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
