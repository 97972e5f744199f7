"""`ompy new hook` writes a watcher that installs and sees every query."""

from __future__ import annotations

from pathlib import Path

import pytest
from workshop import Workshop
from written import assert_in_style, assert_typed


@pytest.fixture(scope="module")
def myhook(workshop: Workshop) -> Path:
    return workshop.new("hook", "myhook")


@pytest.mark.timeout(300)
def test_its_own_tests_pass(workshop: Workshop, myhook: Path) -> None:
    done = workshop.run("-m", "pytest", "-q", "-p", "no:cacheprovider", str(myhook), timeout=240)
    assert done.returncode == 0, done.stdout
    assert "5 passed" in done.stdout


def test_what_is_written_is_in_style_and_typed(myhook: Path) -> None:
    assert_in_style(myhook)
    assert_typed(myhook, "ompy_hook_myhook")
