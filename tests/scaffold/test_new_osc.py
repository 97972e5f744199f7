"""`ompy new osc` writes one-sided communication in Python that installs, serves every kind of window and keeps the contract."""

from __future__ import annotations

from pathlib import Path

import pytest
from workshop import Workshop
from written import assert_in_style, assert_typed


@pytest.fixture(scope="module")
def myosc(workshop: Workshop) -> Path:
    return workshop.new("osc", "myosc")


@pytest.mark.long
@pytest.mark.timeout(300)
def test_its_own_tests_pass(workshop: Workshop, myosc: Path) -> None:
    done = workshop.run("-m", "pytest", "-q", "-p", "no:cacheprovider", str(myosc), timeout=240)
    assert done.returncode == 0, done.stdout
    assert "4 passed" in done.stdout


def test_what_is_written_is_in_style_and_typed(myosc: Path) -> None:
    assert_in_style(myosc)
    assert_typed(myosc, "ompy_osc_myosc")
