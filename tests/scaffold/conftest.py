"""Distributions written by `ompy new`, installed where only these tests see them."""

from __future__ import annotations

import pytest
from workshop import Workshop


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("workshop"))
