"""Components with one semantic fault each: `ompy fuzz` finds every one within two minutes."""

from __future__ import annotations

import ast
import os
import random
from pathlib import Path

import pytest

from ompy.testing.fuzz import campaign
from ompy.testing.fuzz.runner import Place

# Some of the table, the same in each run; all of it when this is set.
EVERYTHING = bool(os.environ.get("OMPY_TEST_FUZZ"))
SAMPLE = 3
SECONDS, SILENCE, SHRINKING = 120.0, 15.0, 0.0
FOLDER = Path(__file__).parent / "planted" / "ompy_fuzz_faults"
BASES = {"Pml", "Coll", "Osc"}


def faults() -> list[tuple[str, str]]:
    """(framework, class) of each planted fault."""
    found = []
    for framework in ("pml", "coll", "osc"):
        for node in ast.parse((FOLDER / f"{framework}_faults.py").read_text()).body:
            if isinstance(node, ast.ClassDef) and any(isinstance(base, ast.Name) and base.id in BASES for base in node.bases):
                found.append((framework, node.name))
    return found


def chosen() -> list[tuple[str, str]]:
    every = [fault for fault in faults() if fault[1] not in BASES]
    return every if EVERYTHING else random.Random(len(every)).sample(every, SAMPLE)


def place(framework: str, fault: str) -> Place:
    """Everything stands on the PML in Python, so that a fault is all that is wrong."""
    named = {"pml": (), "coll": (("coll", "faulty,basic"),), "osc": (("osc", "faulty"),)}[framework]
    return Place(3, (("pml", "faulty"), *named, (f"{framework}_faulty_fault", fault)), silence=SILENCE)


def wish(fault: str, seed: int, seconds: float = SECONDS) -> campaign.Wish:
    # A PML in Python is no place for threads and handlers of signals, but where that is the fault.
    without = ("fork", "signals", "floods", *(["threads"] * (fault != "OnePackingBuffer")))
    return campaign.Wish(seed, seconds, shrinking=SHRINKING, without=without)


@pytest.mark.long
@pytest.mark.timeout(200)
@pytest.mark.parametrize("framework", ["pml", "coll", "osc"])
def test_nothing_is_found_where_no_fault_is(faulty, ompy_seed: int, framework: str) -> None:
    outcome = campaign.run(place(framework, ""), wish("", ompy_seed, 10.0))
    assert outcome.found is None, outcome.found
    assert outcome.operations > 100


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("framework", "fault"), chosen())
def test_a_fault_is_found(faulty, ompy_seed: int, framework: str, fault: str) -> None:
    outcome = campaign.run(place(framework, fault), wish(fault, ompy_seed))
    assert outcome.found is not None, (
        f"nothing is found wrong with {fault} in {outcome.operations} operations; seed {ompy_seed}"
    )


def test_there_are_twenty_five_faults() -> None:
    assert len(chosen() if EVERYTHING else faults()) >= 25
