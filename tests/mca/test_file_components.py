"""Components for files, before there is one."""

from __future__ import annotations

from importlib import import_module

import pytest

from ompy.mca.component import Context, Refusal


@pytest.mark.parametrize(
    "name",
    ["io_ompio", "fbtl_posix", "fcoll_individual", "fcoll_two_phase", "sharedfp_sm", "sharedfp_lockedfile"],
)
def test_who_is_asked_without_a_file_refuses_in_words(name: str) -> None:
    module = import_module(f"ompy_{name}.component")
    answer = module.ompy_query(Context(module.COMPONENT))
    assert isinstance(answer, Refusal)
    assert "none was named" in answer.reason
