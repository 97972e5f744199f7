"""What lies in ompy's packages is found by a finder of its own."""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from ompy.core.compiled import Finder


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A component's package, `ompy_found`, that is imported."""
    folder = tmp_path / "ompy_found"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "first.py").write_text("WHERE = __spec__.loader.path")
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "ompy_found"]:
        del sys.modules[name]


def test_a_plain_module_and_a_package_are_found(package: Path) -> None:
    (package / "inner").mkdir()
    (package / "inner" / "__init__.py").touch()
    (package / "inner" / "deep.py").write_text("import ompy_found.first\nFIRST = ompy_found.first.WHERE")
    deep = importlib.import_module("ompy_found.inner.deep")
    assert str(package / "first.py") == deep.FIRST
    assert list(sys.modules["ompy_found.inner"].__path__) == [str(package / "inner")]


def test_a_module_that_is_written_later_is_found(package: Path) -> None:
    importlib.import_module("ompy_found.first")
    (package / "second.py").write_text("VALUE = 2")
    importlib.invalidate_caches()
    assert Finder.find_spec("ompy_found.second", [str(package)]) is not None
    assert importlib.import_module("ompy_found.second").VALUE == 2


def test_a_folder_without_init_is_no_package_of_the_finder(package: Path) -> None:
    (package / "plain").mkdir()
    assert Finder.find_spec("ompy_found.plain", [str(package)]) is None
    assert Finder.find_spec("ompy_found.absent", [str(package), str(package / "nowhere")]) is None


@pytest.mark.parametrize("suffix", EXTENSION_SUFFIXES)
def test_a_plain_module_that_was_compiled_as_well_is_the_compiled_one(package: Path, suffix: str) -> None:
    compiled = package / f"first{suffix}"
    compiled.touch()
    assert Finder.find_spec("ompy_found.first", [str(package)]).origin == str(compiled)
