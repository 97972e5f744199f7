"""Who serves windows is asked once for each kind, where the answers hold for the kind."""

from __future__ import annotations

import pytest
from outside import Outside

ASKED = """
    from ompy.mca.component import Component, Offer, Refusal, hookimpl

    COMPONENT = Component(framework="osc", name="asked", version="1.0", interface=1, summary="tells when it is asked")

    @hookimpl
    def ompy_component():
        return COMPONENT

    @hookimpl
    def ompy_query(context):
        from ompy_osc_pt2pt.module import Pt2pt

        def again(window):
            print("served", end=", ")
            return {answer_again}

        print("asked", end=", ")
        return {answer}
"""
PROGRAM = """
from ompy import MPI
from ompy.mca.params import registry
from ompy.mca.selection import verdicts
comm = MPI.COMM_SELF
def life(win):
    win.Lock(0), win.Put(b"x", 0), win.Unlock(0)
    print(next(it.component for it in verdicts("osc") if it.chosen), flush=True)
    win.Free()
for _ in range(2): life(MPI.Win.Allocate(8, comm=comm))
life(MPI.Win.Create(bytearray(8), comm=comm))
registry.set("osc_pt2pt_priority", "11")
life(MPI.Win.Allocate(8, comm=comm))
"""
OFFER = "Offer([Pt2pt(context.window)], priority=90, again={again})"


def told(outside: Outside, run, answer: str, answer_again: str = "Pt2pt(window)") -> list[str]:
    """A line for each window: what the component was asked for it, and who serves it."""
    source = ASKED.format(answer=answer, answer_again=answer_again)
    outside.install("osc-asked", {"ompy.osc": {"asked": "osc_asked"}}, {"osc_asked": source})
    result = run("-c", PROGRAM)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


def test_one_answer_serves_all_windows_of_a_kind_until_a_parameter_is_set(outside: Outside, run) -> None:
    lines = told(outside, run, OFFER.format(again="again"))
    assert lines == ["asked, asked", "served, asked", "asked, asked", "asked, asked"]


def test_a_component_that_promises_nothing_is_asked_each_time(outside: Outside, run) -> None:
    assert told(outside, run, OFFER.format(again=None)) == ["asked, asked"] * 4


def test_a_window_that_the_kinds_component_can_not_serve_goes_to_all_again(outside: Outside, run) -> None:
    lines = told(outside, run, OFFER.format(again="again"), 'Refusal("not this one")')
    assert lines == ["asked, asked", "served, asked, asked", "asked, asked", "asked, asked"]


@pytest.mark.parametrize(("lasting", "again"), [(True, "sm"), (False, "asked, sm")])
def test_a_refusal_is_kept_where_it_says_that_it_holds(outside: Outside, run, lasting: bool, again: str) -> None:
    lines = told(outside, run, f'Refusal("not today", lasting={lasting})')
    assert lines == ["asked, sm", again, "asked, sm", "asked, sm"]
