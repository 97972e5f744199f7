"""A Slurm of two nodes on this machine: `srun` starts ranks by PMI, and `ompyrun` inside an allocation starts proxies."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from slurm import Cluster, reason_against

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    if reason := reason_against():
        pytest.skip(reason)
    cluster = Cluster(tmp_path_factory.mktemp("slurm"))
    yield cluster
    cluster.end()


EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
HEAD = "import os, signal\nfrom ompy import MPI\ncomm = MPI.COMM_WORLD\n"
PROGRAM = "import os\nfrom ompy import MPI\ncomm = MPI.COMM_WORLD\nprint(comm.rank, comm.Get_size(), comm.allreduce(comm.rank))"


@pytest.fixture(params=["pmi2", "pmix"])
def srun(request: pytest.FixtureRequest, slurm: Cluster) -> list[str]:
    """Four tasks on two nodes."""
    if reason := slurm.reason_against(request.param):
        pytest.skip(reason)
    return ["srun", "-N2", "--ntasks-per-node=2", f"--mpi={request.param}"]


def test_srun_starts_one_job(slurm: Cluster, srun: list[str]) -> None:
    job = slurm.run(*srun, sys.executable, "-c", PROGRAM)
    assert job.returncode == 0, job.stderr
    assert sorted(job.stdout.splitlines()) == ["0 4 6", "1 4 6", "2 4 6", "3 4 6"]


def test_srun_starts_one_job_of_pmi_2(slurm: Cluster) -> None:
    told = ["env", "OMPY_MCA_rte_pmi_version=2"]
    job = slurm.run("srun", "-N2", "--ntasks-per-node=2", "--mpi=pmi2", *told, sys.executable, "-c", PROGRAM)
    assert job.returncode == 0, job.stderr
    assert sorted(job.stdout.splitlines()) == ["0 4 6", "1 4 6", "2 4 6", "3 4 6"]


def test_ranks_know_their_place(slurm: Cluster, srun: list[str]) -> None:
    program = (
        "from ompy import MPI\nfrom ompy.mca.selection import record\nrte = record.rte\n"
        "print(rte.rank, rte.local_rank, rte.local_size, MPI.COMM_WORLD.Get_attr(MPI.APPNUM))"
    )
    job = slurm.run(*srun, sys.executable, "-c", program)
    assert sorted(job.stdout.splitlines()) == ["0 0 2 0", "1 1 2 0", "2 0 2 0", "3 1 2 0"], job.stderr


def test_the_main_job_of_the_readme(slurm: Cluster, srun: list[str]) -> None:
    from ompy.compat import folder

    path = os.pathsep.join(filter(None, [folder(), os.environ.get("PYTHONPATH")]))
    words = ["env", f"PYTHONPATH={path}", sys.executable, str(EXAMPLES / "jacobi.py"), "--size", "400", "--steps", "20"]
    job = slurm.run(*srun, *words)
    assert job.returncode == 0, job.stderr
    assert "4 ranks" in job.stdout


def test_nobody_leaves_a_fence_before_the_ranks_of_the_other_node_are_in_it(slurm: Cluster, srun: list[str]) -> None:
    program = """
import os, sys
from ompy.mca import selection
rte = selection.select("rte")[0]
folder = sys.argv[1]
for turn in range(20):
    open(f"{folder}/{turn}.{rte.rank}", "w").close()
    rte.commit_and_fence()
    late = [rank for rank in range(rte.size) if not os.path.exists(f"{folder}/{turn}.{rank}")]
    assert not late, f"fence {turn}: without {late}"
rte.finalize()
"""
    folder = slurm.folder / srun[-1].removeprefix("--mpi=")
    folder.mkdir()
    job = slurm.run(*srun, sys.executable, "-c", program, str(folder))
    assert job.returncode == 0, job.stderr


@pytest.mark.parametrize("waiting", ["comm.recv(source=3)", "comm.Barrier()"])
def test_a_killed_rank_ends_the_step(slurm: Cluster, srun: list[str], waiting: str) -> None:
    body = f"{HEAD}comm.Barrier()\nif comm.rank == 3: os.kill(os.getpid(), signal.SIGKILL)\n{waiting}"
    assert slurm.run(*srun, sys.executable, "-c", body).returncode != 0


CHILD = """
import os, sys
from ompy import MPI
parent, world = MPI.Comm.Get_parent(), MPI.COMM_WORLD
sys.stdout.write(f"{world.rank} of {world.size}: {sys.argv[1:]} {parent.allreduce(1)} {os.path.basename(os.getcwd())}\\n")
parent.Disconnect()
"""
FULL = ["srun", "-N2", "--ntasks-per-node=4"]  # every processor of both nodes


@pytest.fixture(params=["PMI-1", "PMI-2", "PMIx"])
def full(request: pytest.FixtureRequest, slurm: Cluster) -> list[str]:
    """Words before a program on all processors.  Slurm's PMIx server starts nothing more: a launcher of the rank's own does."""
    kind = "pmix" if request.param == "PMIx" else "pmi2"
    if reason := slurm.reason_against(kind):
        pytest.skip(reason)
    return [*FULL, f"--mpi={kind}", *(["env", f"OMPY_MCA_rte_pmi_version={request.param[-1]}"] if kind == "pmi2" else [])]


@pytest.fixture
def child(slurm: Cluster) -> str:
    (slurm.folder / "child.py").write_text(CHILD)
    return str(slurm.folder / "child.py")


@pytest.mark.parametrize("count", [2, 12])
def test_ranks_of_a_full_allocation_spawn_others(slurm: Cluster, child: str, full: list[str], count: int) -> None:
    body = (
        f"workers = comm.Spawn({sys.executable!r}, [{child!r}, 'a b', \"c'd\"], {count}, MPI.Info.Create({{'wdir': '/usr'}}))\n"
        f"assert workers.allreduce(0) == {count}\nworkers.Disconnect()"
    )
    job = slurm.run(*full, sys.executable, "-c", HEAD + body)
    assert job.returncode == 0, job.stderr
    lines = [f"{rank} of {count}: {['a b', chr(99) + chr(39) + 'd']} 0 usr" for rank in range(count)]
    assert sorted(job.stdout.splitlines()) == sorted(lines), job.stderr


def test_several_programs_are_spawned_as_one_job(slurm: Cluster, child: str, full: list[str]) -> None:
    words = f"[{child!r}, 'first'], [{child!r}, 'a b', '$HOME'], [{child!r}]"
    body = (
        f"workers = comm.Spawn_multiple([{sys.executable!r}] * 3, [{words}], [1, 2, 1])\n"
        "assert workers.allreduce(0) == 4\nworkers.Disconnect()"
    )
    job = slurm.run(*full, sys.executable, "-c", HEAD + body)
    assert job.returncode == 0, job.stderr
    found = [line.rpartition(" ")[0] for line in sorted(job.stdout.splitlines())]
    both = ["a b", "$HOME"]
    assert found == [f"{rank} of 4: {words} 0" for rank, words in enumerate([["first"], both, both, []])]


@pytest.mark.parametrize("version", ["1", "2"])
def test_a_spawn_that_slurm_does_not_answer_is_an_error_that_says_what_to_do(slurm: Cluster, version: str) -> None:
    told = ["env", "OMPY_MCA_rte_pmi_slurm_spawn=--exact --immediate=1", "OMPY_MCA_rte_pmi_slurm_spawn_timeout=15"]
    body = (
        f"try:\n    comm.Spawn({sys.executable!r}, ['-c', 'pass'], 2)\nexcept MPI.Exception as error:\n"
        "    assert error.Get_error_class() == MPI.ERR_SPAWN\n    assert '--overlap --overcommit' in str(error)\n"
        "print(comm.allreduce(1))"
    )
    job = slurm.run(*FULL, "--mpi=pmi2", *told, f"OMPY_MCA_rte_pmi_version={version}", sys.executable, "-c", HEAD + body)
    assert job.returncode == 0, job.stderr
    assert job.stdout == "8\n" * 8


def test_srun_without_pmi_says_what_to_do(slurm: Cluster) -> None:
    job = slurm.run("srun", "-N2", "-n2", "--mpi=none", sys.executable, "-c", PROGRAM)
    assert job.stdout == "0 1 0\n0 1 0\n"
    assert "srun --mpi=pmi2" in job.stderr


def test_srun_with_a_pmix_that_cannot_be_joined_says_what_to_do(slurm: Cluster, srun: list[str]) -> None:
    told = ["env", "OMPY_MCA_rte_pmix_library=/nowhere/libpmix.so.2"]
    job = slurm.run(*srun, *told, sys.executable, "-c", PROGRAM)
    if srun[-1] == "--mpi=pmix":
        assert job.stdout == "0 1 0\n" * 4
        assert "OMPY_MCA_rte_pmix_library" in job.stderr


def test_ompyrun_in_an_allocation_runs_a_rank_a_task(slurm: Cluster) -> None:
    words = [sys.executable, "-m", "ompy.cli.ompyrun", "-l"]
    body = PROGRAM + "\nprint(os.environ['SLURMD_NODENAME'])"
    job = slurm.run("salloc", "-N2", "--ntasks-per-node=2", "--quiet", *words, sys.executable, "-c", body)
    assert job.returncode == 0, job.stderr
    nodes = {f"[{rank}] node{1 + rank // 2}" for rank in range(4)}
    assert set(job.stdout.splitlines()) == {f"[{rank}] {rank} 4 6" for rank in range(4)} | nodes


def test_the_proxy_of_a_node_starts_that_of_the_next_one(slurm: Cluster) -> None:
    words = [sys.executable, "-m", "ompy.cli.ompyrun", "--mca", "ompyrun_fan_out", "1", "-l"]
    job = slurm.run("salloc", "-N2", "--ntasks-per-node=2", "--quiet", *words, sys.executable, "-c", PROGRAM)
    assert job.returncode == 0, job.stderr
    assert set(job.stdout.splitlines()) == {f"[{rank}] {rank} 4 6" for rank in range(4)}, job.stderr
