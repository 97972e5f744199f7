"""Fixtures: a folder of outside distributions, and commands that see it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from outside import Outside

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def outside(tmp_path: Path) -> Outside:
    folder = tmp_path / "site"
    folder.mkdir()
    return Outside(folder)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run Python, or one of the commands, with the outside distributions and nobody's own settings."""

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("OMPY_")}
        path = os.pathsep.join(part for part in (str(tmp_path / "site"), clean.get("PYTHONPATH", "")) if part)
        clean |= {"HOME": str(tmp_path), "PYTHONPATH": path}
        return subprocess.run(
            [sys.executable, *arguments], env=clean | environment, capture_output=True, text=True, timeout=60, cwd=tmp_path
        )

    return run


@pytest.fixture
def info(run: Run) -> Run:
    """Run `ompy_info`."""
    return lambda *arguments, **environment: run("-c", "from ompy.cli.ompy_info import main; main()", *arguments, **environment)
