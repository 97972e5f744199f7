"""Four hosts for all tests of this folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from machines import Launched, Machines, Start, reason_against


@pytest.fixture(scope="session")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    if reason := reason_against():
        pytest.skip(reason)
    found = Machines(tmp_path_factory.mktemp("hosts"), 4)
    yield found
    found.end()


@pytest.fixture
def ompyrun(machines: Machines, tmp_path: Path) -> Start:
    """Start `ompyrun` on n1, with hosts that are reached by ssh."""

    def start(*words: str, stdin: str | None = None, on: str = "n1") -> Launched:
        command = ["env", *(f"-u{name}" for name in os.environ if name.startswith("OMPY_"))]
        command += [sys.executable, "-m", "ompy.cli.ompyrun", "--mca", "plm_ssh_agent", machines.agent]
        return Launched(machines[on], [*command, *words], tmp_path, stdin)

    return start


@pytest.fixture(autouse=True)
def nothing_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "machines" in request.fixturenames:
        assert request.getfixturevalue("machines").left() == {}
