"""`ompy new pml` writes a point-to-point layer in Python that installs and carries MPI over the tree's transports."""

from __future__ import annotations

from pathlib import Path

import pytest
from workshop import Workshop
from written import assert_in_style, assert_typed


@pytest.fixture(scope="module")
def mypml(workshop: Workshop) -> Path:
    return workshop.new("pml", "mypml")


@pytest.mark.long
@pytest.mark.timeout(600)
def test_its_own_tests_pass(workshop: Workshop, mypml: Path) -> None:
    done = workshop.run("-m", "pytest", "-q", "-p", "no:cacheprovider", str(mypml), timeout=500)
    assert done.returncode == 0, done.stdout
    assert "10 passed" in done.stdout


def test_what_is_written_is_in_style_and_typed(mypml: Path) -> None:
    assert_in_style(mypml)
    assert_typed(mypml, "ompy_pml_mypml")
