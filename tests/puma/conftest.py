"""What the tests of portals share."""

from __future__ import annotations

from mmap import mmap

import pytest
from ompy_puma.application import Application
from puma_machine import Machine


@pytest.fixture
def machine() -> Machine:
    """Two nodes; processes 0 and 1 of group 1."""
    return Machine()


@pytest.fixture
def sender(machine: Machine) -> Application:
    return machine.processes[0]


@pytest.fixture
def receiver(machine: Machine) -> Application:
    return machine.processes[1]


@pytest.fixture
def heap() -> mmap:
    """Memory for a dynamic block."""
    return mmap(-1, 1 << 16)
