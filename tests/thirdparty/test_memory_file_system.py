"""fs/memory and fbtl/memory, a distribution of its own, installed as anybody's: its own tests, how it is chosen and shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from workshop import Workshop

SOURCE = Path(__file__).parent / "ompy-fs-memory"
MAKES = """
from ompy import MPI
MPI.File.Open(MPI.COMM_SELF, "memory:shown", MPI.MODE_WRONLY | MPI.MODE_CREATE).Close()
"""


@pytest.fixture(scope="module")
def memory(workshop: Workshop) -> Workshop:
    workshop.install(workshop.fetch(SOURCE))
    return workshop


def test_its_own_tests_pass(memory: Workshop) -> None:
    done = memory.run("-m", "pytest", "-q", "-p", "no:cacheprovider", SOURCE.name)
    assert done.returncode == 0, done.stdout
    assert re.search(r"5 passed", done.stdout)


def test_it_is_shown_as_those_of_the_tree_are(memory: Workshop) -> None:
    assert memory.run("-c", MAKES).returncode == 0
    explained = memory.ompy("explain", "--file", "memory:shown", "-n", "2").stdout
    memory.run("-c", "from ompy import MPI; MPI.File.Delete('memory:shown')")
    chosen = [words[0] for line in explained.splitlines() if (words := line.split())[1:2] == ["chosen"]]
    assert chosen == ["io/ompio", "fs/memory", "fbtl/memory", "fcoll/two_phase", "sharedfp/sm"]
