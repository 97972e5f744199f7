"""Fixtures: a folder of outside distributions, and commands that see it."""

from __future__ import annotations

from pathlib import Path

import pytest
from outside import Outside
from workshop import Run


@pytest.fixture
def outside(tmp_path: Path) -> Outside:
    folder = tmp_path / "site"
    folder.mkdir()
    return Outside(folder)


@pytest.fixture
def info(run: Run) -> Run:
    """Run `ompy_info`."""
    return lambda *arguments, **environment: run("-c", "from ompy.cli.ompy_info import main; main()", *arguments, **environment)
