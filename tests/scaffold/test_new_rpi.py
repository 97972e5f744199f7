"""`ompy new rpi` writes a compiled request progression interface that installs and carries MPI under `pml/rpi`."""

from __future__ import annotations

from pathlib import Path

import pytest
from workshop import Workshop
from written import assert_in_style, assert_strangers_are_ignored, assert_typed


@pytest.fixture(scope="module")
def myrpi(workshop: Workshop) -> Path:
    return workshop.new("rpi", "myrpi")


@pytest.mark.long
@pytest.mark.timeout(600)
def test_its_own_tests_pass(workshop: Workshop, myrpi: Path) -> None:
    done = workshop.run("-m", "pytest", "-q", "-p", "no:cacheprovider", str(myrpi), timeout=500)
    assert done.returncode == 0, done.stdout
    assert "7 passed" in done.stdout


def test_datagrams_of_strangers_are_ignored(workshop: Workshop, myrpi: Path) -> None:
    assert_strangers_are_ignored(workshop, "--mca", "pml", "rpi", "--mca", "rpi", "myrpi")


def test_what_is_written_is_in_style_and_typed(myrpi: Path) -> None:
    assert_in_style(myrpi)
    assert_typed(myrpi, "ompy_rpi_myrpi")
