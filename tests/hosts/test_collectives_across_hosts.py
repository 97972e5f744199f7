"""coll/han between real hosts: right results on any layout of ranks, shared memory within each host, rules measured there."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest
from machines import Launched, Machines, Start

pytestmark = pytest.mark.long

FUNCTIONS = ("barrier", "bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "alltoall")
TWO_LEVEL = [word for it in FUNCTIONS for word in ("--mca", f"coll_han_{it}_algorithm", "two_level")]
TWO_LEVEL += ["--mca", "coll_han_first_calls", "0"]
PROGRAM = Path(__file__).parents[1] / "coll" / "test_han.py"
# What the tests on one host ask of it, once for each root.
RUN = f"""
import sys
sys.path.insert(0, {str(PROGRAM.parent)!r})
import ompy
from ompy import MPI
from test_han import collectives
comm = MPI.COMM_WORLD
for count in (1, 40_000):
    for root in range(comm.size):
        collectives(comm, count, root)
print([it.component for it in ompy.explain_collective("bcast", 8) if it.chosen])
"""
# The ranks of a host, as anybody may ask for them.
SHARED = """
import ompy
from ompy import MPI
from ompy.mca.verdicts import record
node = MPI.COMM_WORLD.Split_type(MPI.COMM_TYPE_SHARED)
assert node.allreduce(1) == node.size == 2
for it in record.of("coll"):
    print(it.component, it.chosen, it.reason)
"""


@pytest.mark.parametrize("order", ["slot", "node"])
def test_two_levels_serve_runs_of_ranks_and_ranks_in_turn(ompyrun: Start, order: str) -> None:
    hosts = ("--host", "n1:2,n2:2,n3:1", "--map-by", order)
    with ompyrun(*hosts, *TWO_LEVEL, sys.executable, "-c", RUN) as job:
        assert job.finish(120) == 0, job.stderr
    assert set(job.stdout.splitlines()) == {"['han', 'han: two_level']"}


def test_one_rank_on_each_host_has_no_levels(ompyrun: Start) -> None:
    with ompyrun("--host", "n1:1,n2:1,n3:1", *TWO_LEVEL, sys.executable, "-c", RUN) as job:
        assert job.finish(120) == 0, job.stderr
    assert set(job.stdout.splitlines()) == {"['han', 'han: flat']"}


def test_the_ranks_of_a_host_share_memory_in_a_job_on_several(ompyrun: Start) -> None:
    with ompyrun("--host", "n1:2,n2:2", sys.executable, "-c", SHARED) as job:
        assert job.finish() == 0, job.stderr
    lines = job.stdout.splitlines()
    assert [line.startswith("sm True") for line in lines if line.startswith("sm ")] == [True] * 4
    assert sum("han False" in line for line in lines) == 4


def test_a_lost_rank_is_an_error_on_every_rank_of_every_host(ompyrun: Start) -> None:
    source = """
import os, signal
from ompy import MPI
comm = MPI.COMM_WORLD
comm.Set_errhandler(MPI.ERRORS_RETURN)
comm.Barrier()
comm.gather(None, root=3)
if comm.rank == 3:
    os.kill(os.getpid(), signal.SIGKILL)
try:
    comm.Allreduce(bytearray(8), bytearray(8))
except MPI.Exception as error:
    print(comm.rank, error.Get_error_class() == MPI.ERR_PROC_FAILED)
"""
    words = ("--enable-recovery", *TWO_LEVEL)
    with ompyrun("--host", "n1:2,n2:2,n3:1", *words, sys.executable, "-c", source) as job:
        assert job.finish() != 0
    assert sorted(job.stdout.splitlines()) == [f"{rank} True" for rank in (0, 1, 2, 4)], job.stderr


def test_rules_are_measured_across_hosts_and_heeded(machines: Machines, ompyrun: Start, tmp_path: Path) -> None:
    tune = [sys.executable, "-c", "from ompy.cli.ompy import main; main()", "tune", "--component", "han", "-n", "4"]
    tune += ["--host", "n1:2,n2:2", "--mca", "plm_ssh_agent", machines.agent, "--only", "bcast", "--only", "barrier"]
    tune += ["--bytes", "8,16K", "--rounds", "1", "-o", "rules.toml"]
    with Launched(machines["n1"], tune, tmp_path) as job:
        assert job.finish(120) == 0, job.stderr
    assert set(tomllib.loads((tmp_path / "rules.toml").read_text())) == {"bcast", "barrier"}
    source = "from ompy import MPI; import ompy; print([it.reason for it in ompy.explain_collective('bcast', 8)])"
    rules = ("--mca", "coll_han_dynamic_rules_filename", str(tmp_path / "rules.toml"))
    with ompyrun("--host", "n1:2,n2:2", *rules, sys.executable, "-c", source) as job:
        assert job.finish() == 0, job.stderr
    assert "rules.toml" in job.stdout
