"""Which components are installed is found without importing them, and never out of date."""

from __future__ import annotations

import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from outside import Outside

from ompy.mca import discovery
from ompy.mca.errors import ComponentError
from ompy.mca.frameworks import FRAMEWORKS


def scan(*paths: Path, known: str = "") -> dict[str, dict[str, discovery.Found]]:
    return discovery.merge(discovery.folders([str(path) for path in paths], discovery.decode(known)))


def test_what_is_found_is_what_importlib_metadata_finds() -> None:
    groups = [*(framework.group for framework in FRAMEWORKS.values()), "ompy.command"]
    groups += [f"{group}.by_name" for group in groups]
    expected = {(group, point.name, point.value) for group in groups for point in metadata.entry_points(group=group)}
    components = [it for names in discovery.installed().values() for it in names.values()]
    found = {(f"ompy.{it.framework}{'.by_name' * it.by_name}", it.name, it.module) for it in components}
    assert expected
    assert found == expected


def test_an_outside_distribution_is_found_with_its_name_and_version(outside: Outside) -> None:
    outside.component("pigeon")
    found = scan(outside.folder)["btl"]["pigeon"]
    assert (found.module, found.distribution, found.version) == ("outside_pigeon.component", "outside-pigeon", "1.0")


def test_a_component_of_two_distributions_is_an_error_that_names_both(outside: Outside) -> None:
    outside.install("left-bird", {"ompy.btl": {"pigeon": "left"}}, {})
    outside.install("right-bird", {"ompy.btl": {"pigeon": "right"}}, {})
    with pytest.raises(ComponentError, match=r"two distributions.*pigeon.*left-bird 1\.0.*right-bird 1\.0"):
        scan(outside.folder)


def test_the_first_copy_of_a_distribution_on_the_path_hides_the_second(tmp_path: Path) -> None:
    for name, module in (("first", "here"), ("second", "there")):
        (tmp_path / name).mkdir()
        Outside(tmp_path / name).install("Bird.Post", {"ompy.btl": {"pigeon": module}}, {}, version=f"1.{name == 'first':d}")
    assert scan(tmp_path / "first", tmp_path / "second")["btl"]["pigeon"].module == "here"
    assert scan(tmp_path / "second", tmp_path / "first")["btl"]["pigeon"].module == "there"


def test_a_copy_without_components_hides_one_with(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    Outside(tmp_path / "first").install("bird-post", {}, {}, version="2.0")
    Outside(tmp_path / "second").install("bird-post", {"ompy.btl": {"pigeon": "there"}}, {})
    assert scan(tmp_path / "first", tmp_path / "second") == {}


def test_a_zip_file_on_the_path_is_looked_into(outside: Outside, tmp_path: Path) -> None:
    outside.component("pigeon")
    archive = tmp_path / "bird.zip"
    with zipfile.ZipFile(archive, "w") as target:
        for path in outside.folder.rglob("*"):
            target.write(path, path.relative_to(outside.folder))
    assert scan(archive)["btl"]["pigeon"].distribution == "outside-pigeon"


def test_what_the_launcher_hands_down_is_what_a_rank_would_find(outside: Outside) -> None:
    outside.component("pigeon")
    outside.component("owl")
    paths = [str(outside.folder)]
    handed = discovery.encode(discovery.folders(paths, {}))
    folder = discovery.decode(handed)[paths[0]]
    (direct,) = discovery.folders(paths, {})
    assert (folder.stamp, folder.items) == (direct.stamp, direct.items)
    assert [repr(it) for it in folder.components] == [repr(it) for it in direct.components]


def test_a_folder_that_was_handed_down_unchanged_is_not_listed_again(outside: Outside, monkeypatch: pytest.MonkeyPatch) -> None:
    outside.component("pigeon")
    handed = discovery.encode(discovery.folders([str(outside.folder)], {}))
    monkeypatch.setattr(discovery, "scan_folder", lambda path: pytest.fail(f"listed {path}"))
    assert "pigeon" in scan(outside.folder, known=handed)["btl"]


def test_a_distribution_installed_after_the_launcher_looked_is_found(outside: Outside) -> None:
    outside.component("pigeon")
    handed = discovery.encode(discovery.folders([str(outside.folder)], {}))
    outside.component("owl")
    assert set(scan(outside.folder, known=handed)["btl"]) == {"pigeon", "owl"}


def test_entry_points_rewritten_in_place_are_found(outside: Outside) -> None:
    outside.component("pigeon")
    handed = discovery.encode(discovery.folders([str(outside.folder)], {}))
    (entry_points,) = outside.folder.glob("*/entry_points.txt")
    entry_points.write_text("[ompy.btl]\nowl = outside_pigeon.component\n")
    assert set(scan(outside.folder, known=handed)["btl"]) == {"owl"}


def test_a_relative_entry_of_the_path_is_the_folder_that_it_names_here(
    outside: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside.component("pigeon")
    monkeypatch.chdir(outside.folder)
    for entry in ("", "."):
        assert "pigeon" in scan(Path(entry))["btl"]


def test_folders_that_do_not_exist_hold_nothing(tmp_path: Path) -> None:
    assert scan(tmp_path / "nowhere") == {}


def test_the_launcher_reports_a_clash_of_names_before_any_rank_starts(outside: Outside, run) -> None:
    outside.install("left-bird", {"ompy.btl": {"pigeon": "left"}}, {})
    outside.install("right-bird", {"ompy.btl": {"pigeon": "right"}}, {})
    result = run("-m", "ompy.cli.ompyrun", "-n", "2", "echo", "started")
    assert (result.returncode, result.stdout) == (2, "")
    assert "two distributions have a btl component called pigeon" in result.stderr


BROKEN = {
    "bytes that are no UTF-8": b"[ompy.btl]\nraven = raven.component\n\xff\xfe = \x80\n",
    "a tab for a name": b"[ompy.btl]\nra\tven = raven.component\n",
    "no name": b"[ompy.btl]\n = raven.component\n",
    "no module": b"[ompy.btl]\nraven =\n",
    "a module that is none": b"[ompy.btl]\nraven = ra ven..component\n",
    "zeros": b"[ompy.btl]\n\0\0 = \0\n",
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_broken_metadata_costs_its_own_distribution_alone_and_is_told_once(
    outside: Outside, run, capfd: pytest.CaptureFixture[str], text: bytes
) -> None:
    outside.component("pigeon")
    outside.install("raven-post", {"ompy.btl": {"raven": "raven.component"}}, {})
    (outside.folder / "raven_post-1.0.dist-info" / "entry_points.txt").write_bytes(text)
    found = discovery.folders([str(outside.folder)], {})
    assert [component.name for component in found[0].components] == ["pigeon"]
    assert len(found[0].problems) == 1
    assert "raven-post 1.0" in found[0].problems[0]
    # What is handed down is as it was read, and says nothing twice.
    handed = discovery.decode(discovery.encode(found))
    assert [component.name for component in handed[found[0].path].components] == ["pigeon"]
    assert handed[found[0].path].problems == ()
    job = run("-m", "ompy.cli.ompyrun", "-n", "2", sys.executable, "-c", "import ompy.MPI")
    assert job.returncode == 0, job.stderr
    assert job.stderr.count("raven-post 1.0") == 1


def test_what_a_distribution_says_of_itself_does_not_break_what_is_handed_down(outside: Outside) -> None:
    outside.component("pigeon")
    metadata = next(outside.folder.glob("*.dist-info")) / "METADATA"
    metadata.write_bytes(b"Name: pi\tgeon\x1e\x85\xff\nVersion: 1\x0b0\t\n")
    found = discovery.folders([str(outside.folder)], {})
    handed = discovery.decode(discovery.encode(found))[found[0].path].components
    assert [(it.name, it.distribution, it.version) for it in handed] == [
        (it.name, it.distribution, it.version) for it in found[0].components
    ]


@pytest.mark.parametrize(
    "text", ["x", "\t", "a\tb\tc", "a\t1\t\n\tbtl", "\ta\tb\tc\td\te", "\n\n", "a\t99999999999999999999999\t"]
)
def test_what_nobody_handed_down_is_not_believed(text: str) -> None:
    assert not [component for folder in discovery.decode(text).values() for component in folder.components]
