"""A transport in plain Python, of a distribution that the project knows nothing of, carries a whole program."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from outside import Outside

SOURCE = Path(__file__).parent / "outside_btl"
PROGRAM = """
import random, sys
from ompy import MPI

comm = MPI.COMM_WORLD
rng = random.Random(int(sys.argv[1]))
peer = 1 - comm.rank
for size in (0, 1, 100, 4096, 4097, 32768, 100_000, 3_000_001, *(rng.randrange(1 << rng.randrange(21)) for _ in range(30))):
    sent = bytearray(rng.randbytes(size))
    got = bytearray(size)
    comm.Sendrecv(sent, peer, size, got, peer, size)
    assert got == sent, size
first = [comm.isend(number, peer, tag=3) for number in range(200)]
assert [comm.recv(source=MPI.ANY_SOURCE, tag=3) for _ in range(200)] == list(range(200))
MPI.Request.waitall(first)
assert comm.allreduce(comm.rank + 1) == 3
print("carried", comm.rank)
"""


@pytest.fixture
def mailbox(outside: Outside) -> Outside:
    shutil.copytree(SOURCE, outside.folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    outside.install("ompy-btl-mailbox", {"ompy.btl": {"mailbox": "ompy_btl_mailbox.component"}}, {})
    return outside


def test_it_carries_a_program_of_two_ranks(mailbox: Outside, run, seed: int) -> None:
    result = run(
        "-m", "ompy.cli.ompyrun", "-n", "2", "--timeout", "40", "--mca", "btl", "mailbox,self",
        "--mca", "hook_comm_method_display", "1", sys.executable, "-c", PROGRAM, str(seed),
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert sorted(result.stdout.splitlines()) == ["carried 0", "carried 1"]
    assert [line.split()[1:3] for line in result.stderr.splitlines()[2:4]] == [["self", "mailbox"], ["mailbox", "self"]]


@pytest.mark.parametrize(("layout", "carries"), [("layout", True), ("layout ^ 1", False)])
def test_one_that_was_compiled_against_other_layouts_is_refused_before_it_is_called(
    mailbox: Outside, run, seed: int, layout: str, carries: bool
) -> None:
    package = mailbox.folder / "ompy_btl_mailbox"
    compiled = f"from ompy.mca.btl import interface\nfrom ompy.mca.layout import layout\nlayout = {layout}\n"
    (package / "compiled.py").write_text(compiled)
    component = (package / "component.py").read_text()
    assert component.count("interface=1") == 1
    (package / "component.py").write_text(component.replace("interface=1", 'interface="ompy_btl_mailbox.compiled"'))
    result = run(
        "-m",
        "ompy.cli.ompyrun",
        "-n",
        "2",
        "--timeout",
        "40",
        "--mca",
        "btl",
        "mailbox,self",
        sys.executable,
        "-c",
        PROGRAM,
        str(seed),
    )
    assert (result.returncode == 0) == carries, result.stderr
    assert ("btl component mailbox of ompy-btl-mailbox 1.0 was compiled against another ompy" in result.stderr) != carries


def test_it_is_shown_as_the_trees_own_are(mailbox: Outside, run, info) -> None:
    assert "ompy-btl-mailbox 1.0" in info().stdout
    assert "btl_mailbox_max_send_size" in info("--param", "btl", "mailbox", "--level", "9").stdout
    told = run("-c", "from ompy.cli.ompy import main; main()", "explain", "--peer", "1").stdout
    assert "exclusivity 1000 is below sm's" in told


def test_its_choice_is_told_as_those_of_the_trees_own(mailbox: Outside, run) -> None:
    result = run(
        "-m", "ompy.cli.ompyrun", "-n", "2", "--mca", "btl", "mailbox,self", "--mca", "btl_base_verbose", "1",
        sys.executable, "-c", "from ompy import MPI",
    )  # fmt: skip
    for rank in (0, 1):
        assert f"[ompy rank {rank}] btl: mailbox chosen, priority 0: asked for by name" in result.stderr
        assert f"[ompy rank {rank}] btl: sm not chosen: not in the list of parameter btl" in result.stderr


def test_it_is_not_imported_when_excluded(mailbox: Outside, run) -> None:
    program = "import sys; from ompy import MPI; print([name for name in sys.modules if 'mailbox' in name])"
    result = run("-m", "ompy.cli.ompyrun", "-n", "1", "--mca", "btl", "^mailbox", sys.executable, "-c", program)
    assert result.stdout == "[]\n"


def test_it_is_small() -> None:
    lines = [line for path in SOURCE.rglob("*.py") for line in path.read_text().splitlines() if line.strip()]
    assert len(lines) < 80
