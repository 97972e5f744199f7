"""The kit over the tree's own transports and collectives, and what it says of them."""

from __future__ import annotations

import inspect
import os
from pathlib import Path

import pytest
import srun

from ompy.core.errors import MPIError
from ompy.mca.btl import Btl, Descriptor
from ompy.testing.conformance import clauses, kit
from ompy.testing.conformance.check import MODULES, checks, levels

# Some jobs; all of them when this is set.
EVERYTHING = bool(os.environ.get("OMPY_TEST_CONFORMANCE"))
TRANSPORTS = [
    ("self", 1),
    ("sm,self", 2),
    pytest.param("zmq,self", 3, marks=pytest.mark.long),
    pytest.param("portals,self", 2, marks=pytest.mark.long),
]
MORE_TRANSPORTS = [("sm,self", 3), ("sm,self", 5), ("zmq,self", 2), ("zmq,self", 5), ("portals,self", 3)]
COLLECTIVES = [("basic", 3), ("sm", 3), ("tuned,basic", 3), ("han,tuned,basic", 5)]
MORE_COLLECTIVES = [
    ("basic", 17),
    ("sm,basic", 17),
    ("tuned,basic", 2),
    ("tuned,basic", 5),
    ("tuned,basic", 17),
    ("han,basic", 17),
]
WINDOWS = [("pt2pt", 2), ("sm,pt2pt", 3), ("rdma,pt2pt", 2), ("portals,pt2pt", 2)]
MORE_WINDOWS = [("portals,pt2pt", 3), ("rdma,pt2pt", 3), ("pt2pt", 3), ("pt2pt", 5), ("sm,pt2pt", 2), ("sm,pt2pt", 5)]
# Framework, names, ranks, further parameters.
MATCHING = [("pml", "ob1", 2, {}), ("pml", "dr", 3, {}), ("mtl", "portals", 2, {}), ("rpi", "raw_v3", 2, {})]
MORE_MATCHING = [
    ("pml", "ob1", 3, {}),
    ("pml", "ob1", 3, {"btl": "zmq,self"}),
    ("pml", "ob1", 2, {"pml_ob1_use_get": 0}),
    ("pml", "ob1", 2, {"pml_ob1_checksum": 1}),
    ("pml", "cm", 3, {}),
    ("pml", "dr", 2, {}),
    ("pml", "rpi", 2, {}),
    ("mtl", "portals", 3, {}),
    # Its blocking sends read nothing: two that meet come out by the chip's watchdog alone.
    ("rpi", "raw_v1", 2, {"machine_raw_watchdog": 1000}),
    ("rpi", "raw_v2", 2, {}),
]
BY_MESSAGES = {"fcoll_two_phase_exchange": "messages"}
MAPPED = {"fbtl_posix_map_from": 1, "fbtl_posix_map_after": 0}
FILES = [
    ("io", "ompio", 3, {}),
    ("fs", "ufs", 2, {}),
    ("fbtl", "posix", 2, {}),
    ("fbtl", "posix", 3, MAPPED),
    ("fcoll", "individual", 3, {}),
    ("fcoll", "two_phase", 2, {}),
    ("fcoll", "two_phase", 5, {}),
    ("fcoll", "two_phase", 3, MAPPED),
    ("fcoll", "two_phase", 3, BY_MESSAGES),
    ("fcoll", "two_phase", 5, BY_MESSAGES),
    ("sharedfp", "sm", 3, {}),
    ("sharedfp", "lockedfile", 3, {}),
]
FRAMEWORKS = ("btl", "bml", "pml", "mtl", "rpi", "coll", "osc", "io", "fs", "fbtl", "fcoll", "sharedfp", "rte", "plm", "hook")


@pytest.mark.parametrize(("names", "ranks"), TRANSPORTS + MORE_TRANSPORTS * EVERYTHING)
def test_the_trees_transports_keep_the_contract(ompy_conformance, names: str, ranks: int) -> None:
    ompy_conformance("btl", names, ranks)


@pytest.mark.long
@pytest.mark.parametrize(("names", "ranks"), COLLECTIVES + MORE_COLLECTIVES * EVERYTHING)
@pytest.mark.timeout(900)
def test_the_trees_collectives_keep_the_contract(ompy_conformance, names: str, ranks: int) -> None:
    ompy_conformance("coll", names, ranks)


@pytest.mark.long
@pytest.mark.parametrize(("names", "ranks"), WINDOWS + MORE_WINDOWS * EVERYTHING)
@pytest.mark.timeout(900)
def test_the_trees_one_sided_components_keep_the_contract(ompy_conformance, names: str, ranks: int) -> None:
    ompy_conformance("osc", names, ranks)


@pytest.mark.long
@pytest.mark.parametrize(("framework", "names", "ranks", "mca"), MATCHING + MORE_MATCHING * EVERYTHING)
@pytest.mark.timeout(600)
def test_what_matches_messages_in_the_tree_keeps_the_contract(
    ompy_conformance, framework: str, names: str, ranks: int, mca: dict[str, object]
) -> None:
    ompy_conformance(framework, names, ranks, mca=mca)


@pytest.mark.long
@pytest.mark.parametrize(("framework", "name", "ranks", "mca"), FILES)
def test_the_trees_components_for_files_keep_the_contract(
    ompy_conformance, framework: str, name: str, ranks: int, mca: dict[str, object]
) -> None:
    ompy_conformance(framework, name, ranks, mca=mca)


@pytest.mark.long
def test_the_trees_routes_keep_the_contract(ompy_conformance) -> None:
    ompy_conformance("bml", "r2", 2)


@pytest.mark.long
@pytest.mark.parametrize(("name", "ranks"), [("pmi", 3), ("singleton", 2)])
def test_the_trees_environments_keep_the_contract(ompy_conformance, name: str, ranks: int) -> None:
    ompy_conformance("rte", name, ranks)


@pytest.mark.long
@pytest.mark.parametrize(("name", "hosts"), [("local", 3), ("ssh", 2)])
def test_the_trees_launchers_of_processes_keep_the_contract(ompy_conformance, name: str, hosts: int) -> None:
    ompy_conformance("plm", name, hosts)


@pytest.mark.long
def test_one_agent_for_all_hosts_keeps_the_contract(ompy_conformance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in srun.install(tmp_path, "node[1-3]").items():
        monkeypatch.setenv(name, value)
    ompy_conformance("plm", "slurm", 3)


@pytest.mark.long
def test_the_trees_watcher_keeps_the_contract(ompy_conformance) -> None:
    ompy_conformance("hook", "comm_method", 3, mca={"hook_comm_method_display": 1})


@pytest.mark.long
def test_trees_and_buckets_on_portals_keep_the_contract(ompy_conformance) -> None:
    ompy_conformance("coll", "portals,basic", 3)
    ompy_conformance("coll", "portals,basic", 5, mca={"coll_portals_short_limit": 64})


@pytest.mark.long
def test_portals_over_tcp_keep_the_contract(ompy_conformance) -> None:
    ompy_conformance("btl", "portals,self", 2, mca={"btl_portals_carrier": "zmq"})


@pytest.mark.long
def test_single_copy_keeps_the_contract(ompy_conformance) -> None:
    ompy_conformance("btl", "sm,self", 2, mca={"btl_sm_single_copy": "cma"})


@pytest.mark.long
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


def test_every_clause_of_a_check_is_one_of_a_contract() -> None:
    """Of that of the framework, or where checks are shared, of one of those that share them."""
    for framework, level in MODULES:
        known = clauses.read("pml") if framework in ("mtl", "rpi") else clauses.read(framework)
        for check in checks(framework, level):
            assert set(check.clauses) <= known.keys(), check.name
            assert callable(check.body)


def test_checks_that_fork_say_so() -> None:
    """Else their children meet the lock of glibc's guard bytes."""
    for framework, level in MODULES:
        for check in checks(framework, level):
            assert check.forks == ("os.fork(" in inspect.getsource(check.body)), check.name


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_clause_is_examined_by_some_check(framework: str) -> None:
    made = [check for level in levels(framework) for check in kit.selected(framework, level)]
    examined = {clause for check in made for clause in check.clauses} & clauses.read(framework).keys()
    # What a component prints is looked at after every check.
    assert examined >= clauses.read(framework).keys() - {"quiet"}
