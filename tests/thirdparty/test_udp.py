"""btl/udp, a distribution of its own, installed as anybody's: its own tests, and how it is chosen and shown."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from workshop import Workshop

TOP = Path(__file__).resolve().parent.parent.parent
SOURCE = Path(__file__).parent / "ompy-btl-udp"
PROGRAM = """
from ompy import MPI
comm = MPI.COMM_WORLD
assert comm.allreduce(comm.rank) == sum(range(comm.size))
data = comm.bcast(bytes(200_000) if comm.rank == 0 else None)
assert len(data) == 200_000
print("done", comm.rank)
"""
LAST_WORDS = """
from ompy import MPI
comm = MPI.COMM_WORLD
if comm.rank == 0:
    for number in range(40):
        comm.send(number, 1)
else:
    assert [comm.recv(source=0) for _ in range(40)] == list(range(40))
"""


@pytest.fixture(scope="module")
def udp(workshop: Workshop) -> Workshop:
    workshop.install(workshop.fetch(SOURCE))
    return workshop


def test_its_own_tests_pass(udp: Workshop) -> None:
    done = udp.run("-m", "pytest", "-q", "-p", "no:cacheprovider", SOURCE.name)
    assert done.returncode == 0, done.stdout
    assert re.search(r"\d\d passed", done.stdout)


def test_collectives_of_five_ranks_run_over_it_with_losses(udp: Workshop) -> None:
    done = udp.ranks(5, "udp", "--mca", "btl_udp_drop", "0.05", sys.executable, "-c", PROGRAM)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"done {rank}" for rank in range(5)]


def test_a_rank_that_waits_for_the_others_at_the_end_still_sends_again(udp: Workshop) -> None:
    done = udp.ranks(2, "udp", "--mca", "btl_udp_drop", "0.4", sys.executable, "-c", LAST_WORDS)
    assert done.returncode == 0, done.stderr


def test_it_is_shown_as_those_of_the_tree_are(udp: Workshop) -> None:
    explained = udp.ompy("explain", "--peer", "1", "--mca", "btl", "udp,self").stdout
    assert [line.split()[:2] for line in explained.splitlines() if "udp" in line] == [["udp", "chosen"]]
    told = udp.ranks(2, "udp", "--mca", "btl_base_verbose", "1", sys.executable, "-c", "from ompy import MPI").stderr
    assert "[ompy rank 0] btl: udp chosen, priority 0: asked for by name" in told


def test_a_limit_out_of_its_declared_range_ends_the_job_before_it_starts(udp: Workshop) -> None:
    done = udp.ranks(2, "udp", "--mca", "btl_udp_datagram_size", "20", sys.executable, "-c", PROGRAM)
    assert done.returncode != 0
    assert "'20' is not an integer of bytes from 53 to 65507" in done.stderr


def test_nothing_in_the_project_imports_it() -> None:
    for folder in ("ompy", "btl", "pml", "coll", "plugins", "tools"):
        for path in (path for suffix in ("*.py", "*.pyx", "*.pxd") for path in (TOP / folder).rglob(suffix)):
            assert "ompy_btl_udp" not in path.read_text(), path
