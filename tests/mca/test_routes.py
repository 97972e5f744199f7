"""When the component of routes serves."""

from __future__ import annotations

from ompy_bml_r2.component import COMPONENT, ompy_query

from ompy.mca.component import Context, Refusal


def test_there_are_no_routes_without_a_transport() -> None:
    answer = ompy_query(Context(COMPONENT, chosen_modules={"btl": []}))
    assert isinstance(answer, Refusal)
    assert "no BTL was chosen" in answer.reason
