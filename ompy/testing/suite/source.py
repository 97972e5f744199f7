"""mpi4py's tests and its pure-Python parts, from the package registry; unpacked in a cache, never installed.

The cache is `.cache/suite` of the project's tree, or `ompy/suite` in the person's cache where ompy is installed.

python -m ompy.testing.suite.source        prints the folder of the source distribution and that of the installed form
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

VERSION = "4.1.2"
TREE = Path(__file__).resolve().parents[3]
PERSONS = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
CACHE = TREE / ".cache" / "suite" if (TREE / "pyproject.toml").exists() else PERSONS / "ompy" / "suite"
SECONDS = 300


class Unreachable(Exception):
    """The registry did not give what is needed, in words for a person."""


def download(form: str, into: Path) -> Path:
    """Fetch one file of mpi4py: `--no-binary` the sources, `--only-binary` a wheel for this interpreter."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "ompy.testing.suite.fetch", form, f"mpi4py=={VERSION}", str(into)],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Unreachable(f"pip did not fetch mpi4py {VERSION} within {SECONDS} s") from None
    if done.returncode:
        raise Unreachable(f"pip can't fetch mpi4py {VERSION} ({form}):\n{done.stderr.strip()}")
    (file,) = into.iterdir()
    return file


def unpacked(name: str, form: str) -> Path:
    """The folder `name` of the cache, filled at first use; it appears whole or not at all."""
    folder = CACHE / name
    if not folder.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
            fetched = Path(scratch, "fetched")
            fetched.mkdir()
            whole = Path(scratch, name)
            try:
                file = download(form, fetched)
            except Unreachable as error:
                raise Unreachable(f"{error}\nThe suite needs the package registry once: {folder} keeps what it gave.") from None
            if file.suffix == ".whl":
                with zipfile.ZipFile(file) as wheel:
                    wheel.extractall(whole)
            else:
                with tarfile.open(file) as archive:
                    # Pythons from before the filters' time (3.11.3 and earlier) trust what pip has verified.
                    archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, path: member)
                    archive.extractall(scratch)
                Path(scratch, f"mpi4py-{VERSION}").rename(whole)
            try:
                os.rename(whole, folder)
            except OSError:
                # Another run was first.
                shutil.rmtree(whole)
    return folder


def sources() -> Path:
    """The source distribution: `test`, `demo`."""
    return unpacked(f"mpi4py-{VERSION}", "--no-binary")


def installed() -> Path:
    """What installing mpi4py puts on the path: `util`, `futures` and `run`, which are pure Python, and headers."""
    return unpacked(f"mpi4py-{VERSION}-{sys.implementation.cache_tag}", "--only-binary")


if __name__ == "__main__":
    try:
        print(sources(), installed(), sep="\n")
    except Unreachable as error:
        sys.exit(str(error))
