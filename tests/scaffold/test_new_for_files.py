"""`ompy new` writes components for files that install and serve."""

from __future__ import annotations

import pytest
from workshop import Workshop
from written import assert_in_style, assert_typed


@pytest.mark.long
@pytest.mark.parametrize("framework", ["io", "fs", "fbtl", "fcoll", "sharedfp"])
def test_what_is_written_works_and_is_in_style(workshop: Workshop, framework: str) -> None:
    folder = workshop.new(framework, "mine")
    done = workshop.run("-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder), timeout=300)
    assert done.returncode == 0, done.stdout
    assert "4 passed" in done.stdout
    assert_in_style(folder)
    assert_typed(folder, f"ompy_{framework}_mine")
