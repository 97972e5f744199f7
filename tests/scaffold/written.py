"""What holds for every distribution that `ompy new` writes: the house's style, and the contract's types."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parent.parent.parent


def run(command: list[str], folder: Path) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stdout


def assert_in_style(folder: Path) -> None:
    """Of the project's own configuration."""
    for command in (["ruff", "check"], ["ruff", "format", "--check"]):
        run([*command, "--config", str(TOP / "pyproject.toml"), str(folder)], folder)


def assert_typed(folder: Path, package: str) -> None:
    """By mypy, strictly, against the stubs of the installed ompy."""
    run(["mypy", "--strict", "--python-executable", sys.executable, package], folder / "src")
