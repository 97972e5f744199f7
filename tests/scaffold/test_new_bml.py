"""`ompy new bml` writes a management layer that installs and leads messages over the best transport."""

from __future__ import annotations

from pathlib import Path

import pytest
from workshop import Workshop
from written import assert_in_style, assert_typed


@pytest.fixture(scope="module")
def mybml(workshop: Workshop) -> Path:
    return workshop.new("bml", "mybml")


@pytest.mark.timeout(300)
def test_its_own_tests_pass(workshop: Workshop, mybml: Path) -> None:
    done = workshop.run("-m", "pytest", "-q", "-p", "no:cacheprovider", str(mybml), timeout=240)
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout


def test_what_is_written_is_in_style_and_typed(mybml: Path) -> None:
    assert_in_style(mybml)
    assert_typed(mybml, "ompy_bml_mybml")
