"""Machines whose pages have 16 or 64 KiB: what is mapped there begins and ends on such a page."""

from __future__ import annotations

import sys

import pytest

PROGRAM = """
import os, re, sys
page = int(sys.argv[1])
sysconf = os.sysconf
os.sysconf = lambda name: {"SC_PAGE_SIZE": page, "SC_PHYS_PAGES": (1 << 30) // page}.get(name) or sysconf(name)
from ompy import MPI

comm = MPI.COMM_WORLD
peer = 1 - comm.rank
for size in (0, 1, 5000, 70_000, 1_000_003):
    sent, got = MPI.Alloc_mem(size), bytearray(size)
    sent[:] = bytes([comm.rank + 1]) * size
    comm.Sendrecv(sent, peer, 0, got, peer, 0)
    assert got == bytes([peer + 1]) * size, size
    MPI.Free_mem(sent)

kept = [MPI.Alloc_mem(1 << 20) for _ in range(3)]
addresses = [memory.address for memory in kept]
assert len({address % page for address in addresses}) == 1, addresses
window = MPI.Win.Allocate_shared(100, comm=comm, info=MPI.Info.Create({"alloc_shared_noncontig": "true"}))
parts = [window.Shared_query(rank)[0].address for rank in range(2)]
assert parts[1] - parts[0] == page, parts
rings = [line.split() for line in open("/proc/self/maps") if "memfd:ompy-ring" in line]
assert rings
for range_, _, offset, *_ in rings:
    begin, end = (int(word, 16) for word in range_.split("-"))
    assert int(offset, 16) % page == 0 and (end - begin) % page == 0, (range_, offset)
print("carried", comm.rank)
"""


@pytest.mark.parametrize("page", [16384, 65536])
def test_a_job_keeps_to_the_pages_of_its_machine(run, page: int) -> None:
    result = run(
        "-m", "ompy.cli.ompyrun", "-n", "2", "--oversubscribe", "--timeout", "50", "--mca", "btl", "self,sm",
        sys.executable, "-c", PROGRAM, str(page),
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert sorted(result.stdout.splitlines()) == ["carried 0", "carried 1"]
