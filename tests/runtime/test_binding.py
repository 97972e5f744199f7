"""Which processors ranks get, on hosts as the kernel describes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ompy.runtime.binding import Binding
from ompy.runtime.mapping import Place, resolve
from ompy.runtime.topology import KINDS, Topology, numbers, spans

# Two packages of two NUMA nodes, of two cores with two hardware threads each, numbered as Linux mostly does it: the second
# threads of all cores behind the first ones.
CORES = [{core, core + 8} for core in range(8)]


def host(root: Path, *, caches: bool = True, nodes: bool = True, cores: bool = True) -> str:
    """A folder as /sys/devices/system on that machine."""
    for number in range(16):
        core = number % 8
        files = {}
        if cores:
            files["topology/core_cpus_list"] = spans({core, core + 8})
            files["topology/package_cpus_list"] = "0-3,8-11" if core < 4 else "4-7,12-15"
        if caches:
            levels = [("1", "Data"), ("1", "Instruction"), ("2", "Unified"), ("3", "Unified")]
            for index, (level, kind) in enumerate(levels):
                files |= {f"cache/index{index}/level": level, f"cache/index{index}/type": kind}
                shared = CORES[core] if level < "3" else CORES[core // 2 * 2] | CORES[core // 2 * 2 + 1]
                files[f"cache/index{index}/shared_cpu_list"] = "" if kind == "Instruction" else spans(shared)
        for name, text in files.items():
            path = root / f"cpu/cpu{number}" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n")
    if nodes:
        for node in range(4):
            path = root / f"node/node{node}/cpulist"
            path.parent.mkdir(parents=True)
            path.write_text(spans(CORES[2 * node] | CORES[2 * node + 1]) + "\n")
    return str(root)


def given(topology: Topology, ranks: int, **said: object) -> list[str]:
    places = [Place("here") for _ in range(ranks)]
    binding = Binding()
    vars(binding).update(said)
    binding.give(places, topology)
    return ["all" if place.processors is None else spans(place.processors) for place in places]


def test_objects_are_told_from_wide_to_narrow_and_survive_the_way_to_another_host(tmp_path: Path) -> None:
    found = Topology(range(16), host(tmp_path))
    assert [len(found.objects(kind)) for kind in KINDS] == [2, 4, 4, 8, 8, 8, 16]
    assert found.ordered == [0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15]
    again = Topology.from_data(found.as_data())
    assert again.processors == found.processors
    assert all(again.objects(kind) == found.objects(kind) for kind in KINDS)


def test_processors_of_others_are_left_out(tmp_path: Path) -> None:
    found = Topology({1, 4, 5, 12}, host(tmp_path))
    assert [spans(it) for it in found.objects("core")] == ["1", "4,12", "5"]
    assert [spans(it) for it in found.objects("numa")] == ["1", "4-5,12"]
    assert [spans(it) for it in found.objects("package")] == ["1", "4-5,12"]


@pytest.mark.parametrize("missing", ["caches", "nodes", "cores"])
def test_what_the_system_does_not_tell_is_taken_from_what_it_does(tmp_path: Path, missing: str) -> None:
    found = Topology(range(16), host(tmp_path, **{missing: False}))
    for kind in KINDS:
        parts = found.objects(kind)
        assert sorted(number for part in parts for number in part) == list(range(16))
    if missing == "nodes":
        assert found.objects("numa") == found.objects("package")
    if missing == "caches":
        assert found.objects("l3cache") == found.objects("numa")
        assert found.objects("l2cache") == found.objects("core")
    if missing == "cores":
        assert len(found.objects("package")) == 1
        assert len(found.objects("core")) == 16


@pytest.mark.parametrize(
    ("ranks", "said", "expected"),
    [
        (2, {}, "0-3,8-11 4-7,12-15"),
        (4, {}, "0-1,8-9 2-3,10-11 4-5,12-13 6-7,14-15"),
        (1, {}, "all"),
        (17, {}, " ".join(["all"] * 17)),
        (3, {"policy": "core"}, "0,8 1,9 2,10"),
        (9, {"policy": "core"}, " ".join(["all"] * 9)),
        (9, {"policy": "core", "overload": True}, "0,8 1,9 2,10 3,11 4,12 5,13 6,14 7,15 0,8"),
        (10, {"policy": "hwthread"}, "0 1 2 3 4 5 6 7 8 9"),
        (3, {"policy": "numa"}, "0-1,8-9 0-1,8-9 2-3,10-11"),
        (3, {"around": "numa"}, "0-1,8-9 2-3,10-11 4-5,12-13"),
        (3, {"around": "package", "policy": "core"}, "0,8 4,12 1,9"),
        (4, {"around": "package", "policy": "core", "order": "fill"}, "0,8 1,9 4,12 5,13"),
        (4, {"around": "core", "policy": "package"}, "0-3,8-11 0-3,8-11 0-3,8-11 0-3,8-11"),
        (6, {"around": "core", "order": "package"}, "0,8 4,12 1,9 5,13 2,10 3,11"),
        (3, {"around": "package", "policy": "none"}, "all all all"),
        (4, {"around": "package", "each": 3}, "0-1,8 4-5,12 2,9-10 6,13-14"),
        (3, {"each": 5}, "0-2,8-9 3-4,10-12 5-7,13-14"),
        (4, {"around": "package", "a_turn": 2, "policy": "core"}, "0,8 1,9 4,12 5,13"),
        (16, {"around": "core", "a_turn": 2}, " ".join(f"{core},{core + 8} {core},{core + 8}" for core in range(8))),
    ],
)
def test_ranks_get_what_was_asked_for(tmp_path: Path, ranks: int, said: dict[str, object], expected: str) -> None:
    assert given(Topology(range(16), host(tmp_path)), ranks, **said) == expected.split(" ")


@pytest.mark.parametrize(
    ("ranks", "said", "words"),
    [
        (4, {"each": 5}, "4 ranks with 5 processors each do not fit onto the 16"),
        (2, {"around": "numa", "each": 5}, "numa 0-1,8-9 on here has too few"),
        (5, {"around": "numa", "a_turn": 1}, "it has 4 numa, and each is to have 1"),
    ],
)
def test_what_is_not_there_is_refused_in_words(tmp_path: Path, ranks: int, said: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        given(Topology(range(16), host(tmp_path)), ranks, **said)


def test_a_rank_file_names_processors_or_cores_of_a_package(tmp_path: Path) -> None:
    topology = Topology(range(16), host(tmp_path))
    places = [Place("here", slots) for slots in ("0,2-3", "1:0-1", "1:*")]
    resolve(places, topology, "ranks")
    assert [place.words for place in places] == ["processors 0,2-3", "processors 4-5,12-13", "processors 4-7,12-15"]
    for slots in ("16", "2:0", "1:4", "3-1"):
        with pytest.raises(ValueError, match=f"ranks: slot={slots} on here is not all among"):
            resolve([Place("here", slots)], topology, "ranks")


def test_spans_and_numbers_are_each_others_reverse() -> None:
    for some in (set[int](), {3}, {0, 1, 2, 7}, {5, 6, 100, 101}):
        assert numbers(spans(some)) == some
