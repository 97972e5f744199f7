"""What all tests share."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from workshop import Run, Workshop

WORKER_CRASHED = pytest.StashKey[bool]()


def pytest_configure() -> None:
    """Tests send these signals, which a shell or nohup may have had this process, and so its children, ignore."""
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    if error:
        node.config.stash[WORKER_CRASHED] = True


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tests that a crashed worker has left are not among the failed ones, which may be run again: that is no status 1."""
    if session.config.stash.get(WORKER_CRASHED, False):
        session.exitstatus = pytest.ExitCode.INTERNAL_ERROR


@pytest.fixture(scope="session")
def seed(ompy_seed: int) -> int:
    return ompy_seed


@pytest.fixture
def rng(ompy_rng: random.Random) -> random.Random:
    return ompy_rng


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """Where distributions of others are written and installed, and only these tests see them."""
    return Workshop(tmp_path_factory.mktemp("workshop"))


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run Python, or one of the commands, with the distributions in the test's folder `site` and nobody's own settings."""

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("OMPY_")}
        path = os.pathsep.join(part for part in (str(tmp_path / "site"), clean.get("PYTHONPATH", "")) if part)
        clean |= {"HOME": str(tmp_path), "PYTHONPATH": path}
        return subprocess.run(
            [sys.executable, *arguments], env=clean | environment, capture_output=True, text=True, timeout=60, cwd=tmp_path
        )

    return run
