"""What an installed ompy holds for authors, contracts to cimport, stubs for editors, templates, and that it suffices."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from workshop import Workshop
from written import assert_strangers_are_ignored

TOP = Path(__file__).resolve().parent.parent.parent
PROJECT = tomllib.loads((TOP / "pyproject.toml").read_text())
ROOTS = [TOP / name for name in PROJECT["tool"]["setuptools"]["packages"]["find"]["where"]]
SETUP = "import setuptools; setuptools.setup()"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that an installation lays down, with the tree's compiled modules among them."""
    folder = tmp_path_factory.mktemp("installed")
    command = [sys.executable, "-c", SETUP, "-q", "build_py", "--build-lib", str(folder)]
    subprocess.run(command, cwd=TOP, check=True, capture_output=True)
    for root in ROOTS:
        for path in root.glob("ompy*/**/*.so"):
            target = folder / path.relative_to(root)
            if target.parent.exists():
                shutil.copy(path, target)
    return folder


def test_contracts_stubs_and_templates_are_among_its_files(installed: Path) -> None:
    wanted = [
        path.relative_to(root)
        for root in ROOTS
        for pattern in ("*.pxd", "*.pyi", "py.typed", "*.template")
        for path in root.glob(f"ompy*/**/{pattern}")
    ]
    assert len(wanted) > 100
    assert [str(path) for path in wanted if not (installed / path).exists()] == []


def test_every_contract_can_be_cimported_and_has_a_stub(installed: Path) -> None:
    for contract in sorted(TOP.glob("ompy/mca/*.pxd")):
        assert (installed / "ompy" / "mca" / contract.name).exists()
        if contract.with_suffix(".pyx").exists():
            assert (installed / "ompy" / "mca" / contract.name).with_suffix(".pyi").exists()


@pytest.fixture(scope="module")
def seen(installed: Path, workshop: Workshop) -> dict[str, str]:
    """Where Python finds those files, before the tree's, and what the workshop installs."""
    path = {"PYTHONPATH": os.pathsep.join((str(installed), str(workshop.site)))}
    where = workshop.run("-c", "import ompy; print(ompy.__path__[0])", **path).stdout
    assert Path(where.strip()) == installed / "ompy"
    return path


@pytest.fixture(scope="module")
def cynet(seen: dict[str, str], workshop: Workshop) -> Path:
    """A compiled transport, built against them."""
    assert workshop.run("-m", "ompy", "new", "btl", "cynet", "--cython", **seen).returncode == 0
    folder = workshop.folder / "ompy-btl-cynet"
    workshop.install(folder, **seen)
    return folder


@pytest.mark.long
def test_an_outside_compiled_component_that_was_built_against_them_runs(
    seen: dict[str, str], workshop: Workshop, cynet: Path
) -> None:
    done = workshop.run("-m", "pytest", "-q", "-p", "no:cacheprovider", str(cynet), **seen)
    assert done.returncode == 0, done.stdout
    assert "5 passed" in done.stdout
    assert_strangers_are_ignored(workshop, "--mca", "btl", "cynet,self", **seen)


@pytest.mark.long
def test_a_component_of_another_interface_is_refused(workshop: Workshop, cynet: Path) -> None:
    module = workshop.site / "ompy_btl_cynet" / "component.py"
    before = module.read_text()
    module.write_text(before.replace('interface="ompy_btl_cynet.module",', "interface=99,"))
    try:
        done = workshop.ranks(1, "cynet", sys.executable, "-c", "from ompy import MPI")
    finally:
        module.write_text(before)
    assert done.returncode != 0
    assert "was built for interface 99 of the btl framework" in done.stderr
