"""`ompy new rte` writes a run-time environment with a launcher of its own, which installs and starts jobs."""

from __future__ import annotations

from pathlib import Path

import pytest
from workshop import Workshop
from written import assert_in_style, assert_typed


@pytest.fixture(scope="module")
def myrte(workshop: Workshop) -> Path:
    return workshop.new("rte", "myrte")


@pytest.mark.timeout(300)
def test_its_own_tests_pass(workshop: Workshop, myrte: Path) -> None:
    done = workshop.run("-m", "pytest", "-q", "-p", "no:cacheprovider", str(myrte), timeout=240)
    assert done.returncode == 0, done.stdout
    assert "4 passed" in done.stdout


def test_what_is_written_is_in_style_and_typed(myrte: Path) -> None:
    assert_in_style(myrte)
    assert_typed(myrte, "ompy_rte_myrte")
