"""The pages of docs/: their links lead somewhere, and the files, parameters and commands that they speak of are there."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parent.parent.parent
PAGES = sorted((TOP / "docs").rglob("*.md"))
NAMES = [str(page.relative_to(TOP)) for page in PAGES]
FILE = re.compile(r"`((?:ompy|btl|pml|coll|plugins|tests|tools|docs)/[\w./-]*\w)`")
COMPONENT = re.compile(r"(?:btl|pml|coll)/(?!ompy_)\w+")
PARAMETER = re.compile(r"\b(?:--mca )?((?:btl|pml|coll|osc|bml|mpi|trace|hook)_[a-z0-9]+_[a-z_]+|trace_[a-z]+)\b")
# The standard's info keys, and values, which look like parameters.
HINTS = (
    "mpi_accumulate_granularity", "mpi_minimum_memory_alignment", "mpi_assert_memory_alloc_kinds",
    "mpi_hw_resource_type", "mpi_pset_name", "mpi_shared_memory",
    "mpi_errors_are_fatal", "mpi_errors_abort", "mpi_errors_return",
)  # fmt: skip
COMMAND = re.compile(r"^(?:ompy|ompyrun|ompy_info) .*$", re.MULTILINE)
needs_builder = pytest.mark.skipif(find_spec("mkdocs") is None, reason="mkdocs is not installed (extra `docs`)")


def build(folder: Path, site: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


def copy(folder: Path) -> Path:
    """The site's sources, to be changed."""
    for name in ("docs", "tools"):
        shutil.copytree(TOP / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(TOP / "mkdocs.yml", folder)
    return folder


@needs_builder
def test_it_builds_and_shows_the_clauses_of_the_contract(tmp_path: Path) -> None:
    done = build(TOP, tmp_path)
    assert done.returncode == 0, done.stderr
    clauses = (tmp_path / "developers" / "conformance.html").read_text()
    assert clauses.count("<tr>") > 20
    assert "back-pressure" in clauses


@needs_builder
@pytest.mark.parametrize("link", ["[x](nowhere.md)", "[x](terminology.md#no-such-heading)"])
def test_a_link_that_leads_nowhere_fails_the_build(tmp_path: Path, link: str) -> None:
    folder = copy(tmp_path / "copy")
    page = folder / "docs" / "developers" / "index.md"
    page.write_text(page.read_text() + f"\n{link}\n")
    done = build(folder, tmp_path / "site")
    assert done.returncode != 0
    assert "developers/index.md" in done.stderr


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links_within_the_pages_lead_to_files(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_files_that_are_named_exist(page: Path) -> None:
    missing = [
        name
        for name in FILE.findall(page.read_text())
        if not COMPONENT.fullmatch(name)
        and not any((TOP / root / name).exists() for root in ("", "btl", "pml", "coll", "plugins"))
    ]
    assert missing == []


def test_parameters_that_are_named_exist() -> None:
    program = "from ompy.cli.ompy_info import main; main()"
    listed = subprocess.run(
        [sys.executable, "-c", program, "--param", "all", "all", "--level", "9", "--parsable"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    known = set(re.findall(r":param:(\w+):", listed))
    assert "btl_sm_eager_limit" in known
    for page in PAGES:
        for name in PARAMETER.findall("\n".join(re.findall(r"`[^`\n]+`", page.read_text()))):
            assert name in known or name in HINTS or name.startswith(("ompy_", "btl_udp_")), f"{page.name}: {name}"


def test_commands_that_are_named_exist() -> None:
    from click import Context

    from ompy.cli.ompy import group

    known = {*group.list_commands(Context(group)), "-h", "--help"}
    for page in PAGES:
        for block in re.findall(r"^```sh\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
            for command in COMMAND.findall(block):
                words = command.split()
                if words[0] == "ompy":
                    assert words[1] in known, f"{page.name}: {command}"
