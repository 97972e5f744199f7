"""`ompy new plm` writes a launcher of processes that installs and starts ranks on hosts."""

from __future__ import annotations

from pathlib import Path

import pytest
from workshop import Workshop
from written import assert_in_style, assert_typed


@pytest.fixture(scope="module")
def myplm(workshop: Workshop) -> Path:
    return workshop.new("plm", "myplm")


@pytest.mark.long
@pytest.mark.timeout(300)
def test_its_own_tests_pass(workshop: Workshop, myplm: Path) -> None:
    done = workshop.run("-m", "pytest", "-q", "-p", "no:cacheprovider", str(myplm), timeout=240)
    assert done.returncode == 0, done.stdout
    assert "5 passed" in done.stdout


def test_what_is_written_is_in_style_and_typed(myplm: Path) -> None:
    assert_in_style(myplm)
    assert_typed(myplm, "ompy_plm_myplm")
