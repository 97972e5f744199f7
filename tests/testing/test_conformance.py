"""The kit over the tree's own transports and collectives, and what it says of them."""

from __future__ import annotations

import os

import pytest

from ompy.core.errors import MPIError
from ompy.mca.btl import Btl, Descriptor
from ompy.testing.conformance import clauses
from ompy.testing.conformance.check import MODULES, checks, levels

# Some jobs; all of them when this is set.
EVERYTHING = bool(os.environ.get("OMPY_TEST_CONFORMANCE"))
TRANSPORTS = [("self", 1), ("sm,self", 2), ("zmq,self", 3), ("portals,self", 2)]
MORE_TRANSPORTS = [("sm,self", 3), ("sm,self", 5), ("zmq,self", 2), ("zmq,self", 5), ("portals,self", 3)]
COLLECTIVES = [("basic", 3), ("sm,basic", 3), ("tuned,basic", 3)]
MORE_COLLECTIVES = [("basic", 17), ("sm,basic", 17), ("tuned,basic", 2), ("tuned,basic", 5), ("tuned,basic", 17)]
FILES = [
    ("fs", "ufs", 2),
    ("fbtl", "posix", 2),
    ("fcoll", "individual", 3),
    ("fcoll", "two_phase", 2),
    ("fcoll", "two_phase", 5),
    ("sharedfp", "sm", 3),
    ("sharedfp", "lockedfile", 3),
]
FRAMEWORKS = ("btl", "coll", "fs", "fbtl", "fcoll", "sharedfp")


@pytest.mark.parametrize(("names", "ranks"), TRANSPORTS + MORE_TRANSPORTS * EVERYTHING)
def test_the_trees_transports_keep_the_contract(ompy_conformance, names: str, ranks: int) -> None:
    ompy_conformance("btl", names, ranks)


@pytest.mark.parametrize(("names", "ranks"), COLLECTIVES + MORE_COLLECTIVES * EVERYTHING)
@pytest.mark.timeout(900)
def test_the_trees_collectives_keep_the_contract(ompy_conformance, names: str, ranks: int) -> None:
    ompy_conformance("coll", names, ranks)


@pytest.mark.parametrize(("framework", "name", "ranks"), FILES)
def test_the_trees_components_for_files_keep_the_contract(ompy_conformance, framework: str, name: str, ranks: int) -> None:
    ompy_conformance(framework, name, ranks)


def test_trees_and_buckets_on_portals_keep_the_contract(ompy_conformance) -> None:
    ompy_conformance("coll", "portals,basic", 3)
    ompy_conformance("coll", "portals,basic", 5, mca={"coll_portals_short_limit": 64})


def test_portals_over_tcp_keep_the_contract(ompy_conformance) -> None:
    ompy_conformance("btl", "portals,self", 2, mca={"btl_portals_carrier": "zmq"})


def test_single_copy_keeps_the_contract(ompy_conformance) -> None:
    ompy_conformance("btl", "sm,self", 2, mca={"btl_sm_single_copy": "cma"})


def test_payloads_past_the_caches_keep_the_contract(ompy_conformance) -> None:
    ompy_conformance("btl", "sm,self", 2, mca={"btl_sm_ring_copy": "streaming", "btl_sm_shared_heap": "none"})


def test_clauses_are_numbered_from_one_on() -> None:
    for framework in FRAMEWORKS:
        found = list(clauses.read(framework).values())
        assert len(found) > 5
        assert [clause.number for clause in found] == list(range(1, len(found) + 1))
    assert str(clauses.read("btl")["completion"]) == "clause 15 of ompy/mca/btl.pxd, completion"
    assert "exactly once" in clauses.read("btl")["completion"].text


def test_errors_of_the_contracts_classes_name_its_clauses() -> None:
    btl = Btl()
    with pytest.raises(MPIError, match=str(clauses.read("btl")["completion"])):
        Descriptor(btl, 8).complete()
    with pytest.raises(MPIError, match=str(clauses.read("btl")["tag"])):
        btl.deliver_view(20, None, b"")


def test_every_clause_of_a_check_is_one_of_the_contract() -> None:
    for framework, level in MODULES:
        for check in checks(framework, level):
            assert set(check.clauses) <= clauses.read(framework).keys(), check.name
            assert callable(check.body)


@pytest.mark.parametrize("framework", [name for name in FRAMEWORKS if name != "coll"])
def test_every_clause_is_examined_by_some_check(framework: str) -> None:
    examined = {clause for level in levels(framework) for check in checks(framework, level) for clause in check.clauses}
    # What a component prints is looked at after every check.
    assert examined == clauses.read(framework).keys() - {"quiet"}
