"""`ompy new coll` writes a collective component that installs and serves."""

from __future__ import annotations

from pathlib import Path

import pytest
from workshop import Workshop
from written import assert_in_style, assert_typed


@pytest.fixture(scope="module")
def mycoll(workshop: Workshop) -> Path:
    return workshop.new("coll", "mycoll")


def test_its_own_tests_pass(workshop: Workshop, mycoll: Path) -> None:
    done = workshop.run("-m", "pytest", "-q", "-p", "no:cacheprovider", str(mycoll))
    assert done.returncode == 0, done.stdout
    assert "6 passed" in done.stdout


def test_it_is_explained_as_those_of_the_tree_are(workshop: Workshop, mycoll: Path) -> None:
    explained = workshop.ompy("explain", "bcast", "-n", "2", "--mca", "coll_mycoll_priority", "1000").stdout
    assert ["mycoll", "chosen", "1000"] in [line.split()[:3] for line in explained.splitlines()]
    refused = workshop.ompy("explain", "bcast", "-n", "2", "--mca", "coll_mycoll_smallest", "3").stdout
    assert "processes, coll_mycoll_smallest is 3" in refused


def test_what_is_written_is_in_style_and_typed(mycoll: Path) -> None:
    assert_in_style(mycoll)
    assert_typed(mycoll, "ompy_coll_mycoll")
