"""btl/sm in files, with a /dev/shm that is too small for its rings, in a mount name space of the test's own."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

UNSHARE = ("unshare", "--map-root-user", "--mount")

PROGRAM = """
from ompy import MPI
comm = MPI.COMM_WORLD
blocks = comm.alltoall([bytes([comm.rank]) * 100_000] * comm.size)
assert blocks == [bytes([rank]) * 100_000 for rank in range(comm.size)]
if comm.rank == 0:
    print("all arrived")
"""


def allowed() -> bool:
    return shutil.which("unshare") is not None and not subprocess.run([*UNSHARE, "true"], capture_output=True).returncode


pytestmark = pytest.mark.skipif(not allowed(), reason="this user may not make mount name spaces")


def run(size: str, *arguments: str, before: str = "", after: str = "") -> subprocess.CompletedProcess[str]:
    """A job of 3 ranks with `size` bytes of /dev/shm, between two shell commands."""
    script = (
        f"mount -t tmpfs -o size={size} tmpfs /dev/shm; {before or ':'}; " + '"$@"; code=$?; ' + f"{after or ':'}; exit $code"
    )
    job = [sys.executable, "-m", "ompy.cli.ompyrun", "-n", "3", "--mca", "btl_sm_backing", "file", *arguments]
    return subprocess.run(
        [*UNSHARE, "sh", "-c", script, "sh", *job, sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60
    )


def test_ranks_talk_otherwise_and_one_line_says_so():
    job = run("600k")
    assert (job.returncode, job.stdout) == (0, "all arrived\n")
    (line,) = job.stderr.splitlines()
    assert line.startswith("ompy: btl/sm: /dev/shm has 614400 bytes and this job's rings need ")
    assert line.endswith("; other transports serve")


def test_a_rank_without_room_is_reached_otherwise():
    # Room for two of the three, or for fewer if all ask at the same moment: rings of 260 KiB, two a rank.
    show = ("--mca", "hook_comm_method_display", "1")
    job = run("2m", *show, before="fallocate -l 600k /dev/shm/other", after="ls /dev/shm")
    assert (job.returncode, job.stdout) == (0, "all arrived\nother\n"), job.stderr
    assert "has no room for this process's rings" in job.stderr
    assert " tcp" in job.stderr


def test_with_room_for_all_rings_files_serve_and_none_is_left():
    job = run("2m", "--mca", "btl", "self,sm", after="ls /dev/shm")
    assert (job.returncode, job.stdout, job.stderr) == (0, "all arrived\n", "")


def test_with_no_other_transport_the_reason_and_the_remedy_are_shown():
    job = run("64k", "--mca", "btl", "self,sm")
    assert job.returncode
    assert "/dev/shm has 65536 bytes" in job.stderr
    assert "btl_sm_ring_size" in job.stderr
