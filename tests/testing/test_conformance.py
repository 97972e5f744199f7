"""The kit over the tree's own transports, and what it says of them."""

from __future__ import annotations

import pytest

from ompy.core.errors import MPIError
from ompy.mca.btl import Btl, Descriptor
from ompy.testing.conformance import clauses


@pytest.mark.parametrize(
    ("names", "ranks"), [("self", 1), ("sm,self", 2), ("sm,self", 3), ("zmq,self", 2), ("zmq,self", 3), ("portals,self", 2)]
)
def test_the_trees_transports_keep_the_contract(conformance, names: str, ranks: int) -> None:
    conformance("btl", names, ranks)


def test_single_copy_keeps_the_contract(conformance) -> None:
    conformance("btl", "sm,self", 2, mca={"btl_sm_single_copy": "cma"})


def test_clauses_are_numbered_from_one_on() -> None:
    found = list(clauses.read("btl").values())
    assert [clause.number for clause in found] == list(range(1, len(found) + 1))
    assert str(clauses.read("btl")["completion"]) == "clause 15 of ompy/mca/btl.pxd, completion"
    assert "exactly once" in clauses.read("btl")["completion"].text


def test_errors_of_the_contracts_classes_name_its_clauses() -> None:
    btl = Btl()
    with pytest.raises(MPIError, match=str(clauses.read("btl")["completion"])):
        Descriptor(btl, 8).complete()
    with pytest.raises(MPIError, match=str(clauses.read("btl")["tag"])):
        btl.deliver_view(20, None, b"")
