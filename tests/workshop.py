"""Where distributions are written and installed, for tests alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

# The fixture `run`.
Run = Callable[..., "subprocess.CompletedProcess[str]"]


class Workshop:
    """A folder in which distributions are written, and one in which they are installed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.site = folder / "site"

    def run(self, *arguments: str, timeout: float = 120, **environment: str) -> subprocess.CompletedProcess[str]:
        """Python, with what was installed here and nobody's own settings."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("OMPY_")}
        path = os.pathsep.join(part for part in (str(self.site), clean.get("PYTHONPATH", "")) if part)
        clean |= {"HOME": str(self.folder), "PYTHONPATH": path}
        return subprocess.run(
            [sys.executable, *arguments],
            env=clean | environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=self.folder,
        )

    def ompy(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.run("-m", "ompy", *arguments)

    def ranks(self, count: int, component: str, *program: str) -> subprocess.CompletedProcess[str]:
        """A job over one outside transport."""
        return self.run(
            "-m", "ompy.cli.ompyrun", "-n", str(count), "--oversubscribe", "--timeout", "60",
            "--mca", "btl", f"{component},self", *program,
        )  # fmt: skip

    def fetch(self, source: Path) -> Path:
        """A copy of a distribution's source, which an installation may leave its traces in."""
        return shutil.copytree(source, self.folder / source.name, ignore=shutil.ignore_patterns("__pycache__"))

    def install(self, distribution: Path, **environment: str) -> None:
        """What `pip install ./distribution` does, without the network and without touching this environment."""
        options = ["--quiet", "--disable-pip-version-check", "--no-build-isolation", "--no-deps", "--target", str(self.site)]
        done = self.run("-m", "pip", "install", *options, str(distribution), timeout=300, **{"CFLAGS": "-O0"} | environment)
        assert done.returncode == 0, done.stderr

    def new(self, framework: str, name: str, *options: str) -> Path:
        """`ompy new`, then the installation."""
        done = self.ompy("new", framework, name, *options)
        assert done.returncode == 0, done.stderr
        folder = self.folder / f"ompy-{framework}-{name}"
        self.install(folder)
        return folder
