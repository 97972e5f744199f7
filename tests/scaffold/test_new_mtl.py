"""`ompy new mtl` writes a matching transport layer that installs and carries MPI under `pml/cm`."""

from __future__ import annotations

from pathlib import Path

import pytest
from workshop import Workshop
from written import assert_in_style, assert_strangers_are_ignored, assert_typed


@pytest.fixture(scope="module")
def mymtl(workshop: Workshop) -> Path:
    return workshop.new("mtl", "mymtl")


@pytest.mark.long
@pytest.mark.timeout(600)
def test_its_own_tests_pass(workshop: Workshop, mymtl: Path) -> None:
    done = workshop.run("-m", "pytest", "-q", "-p", "no:cacheprovider", str(mymtl), timeout=500)
    assert done.returncode == 0, done.stdout
    assert "8 passed" in done.stdout


def test_datagrams_of_strangers_are_ignored(workshop: Workshop, mymtl: Path) -> None:
    assert_strangers_are_ignored(workshop, "--mca", "pml", "cm", "--mca", "mtl", "mymtl")


def test_what_is_written_is_in_style_and_typed(mymtl: Path) -> None:
    assert_in_style(mymtl)
    assert_typed(mymtl, "ompy_mtl_mymtl")
