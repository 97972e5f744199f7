"""MPICH's launcher over three hosts, by ssh: the ranks find one another as they do under `ompyrun`."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from machines import Launched, Machines

pytestmark = pytest.mark.long

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


@pytest.fixture
def mpiexec(machines: Machines, tmp_path: Path) -> list[str]:
    folder = os.environ.get("OMPY_TEST_HYDRA", "")
    found = shutil.which("mpiexec.hydra", path=os.pathsep.join([folder, os.environ.get("PATH", "")]))
    if found is None:
        pytest.skip("no mpiexec.hydra on PATH or in the folder OMPY_TEST_HYDRA (pip install mpich)")
    agent = tmp_path / "agent"
    agent.write_text(f'#!/bin/sh\nexec {machines.agent} "$@"\n')
    agent.chmod(0o755)
    return [found, "-launcher", "ssh", "-launcher-exec", str(agent), "-hosts", "n1:2,n2:2,n3:1", "-n", "5"]


def test_ranks_of_three_hosts_make_one_world(machines: Machines, mpiexec: list[str], tmp_path: Path) -> None:
    # In one piece: Hydra mixes what ranks write.
    words = "f'{comm.rank} {MPI.Get_processor_name()} {comm.allreduce(comm.rank)}\\n'"
    source = f"import sys\nfrom ompy import MPI\ncomm = MPI.COMM_WORLD\nsys.stdout.write({words})"
    with Launched(machines["n1"], [*mpiexec, sys.executable, "-c", source], tmp_path) as job:
        assert job.finish() == 0, job.stderr
    assert sorted(job.stdout.splitlines()) == ["0 n1 10", "1 n1 10", "2 n2 10", "3 n2 10", "4 n3 10"]


def test_the_main_job_of_the_readme(machines: Machines, mpiexec: list[str], tmp_path: Path) -> None:
    from ompy.compat import folder

    path = os.pathsep.join(filter(None, [folder(), os.environ.get("PYTHONPATH")]))
    words = ["env", f"PYTHONPATH={path}", sys.executable, str(EXAMPLES / "jacobi.py"), "--size", "800", "--steps", "20"]
    with Launched(machines["n1"], [*mpiexec, *words], tmp_path) as job:
        assert job.finish(120) == 0, job.stderr
    assert "5 ranks" in job.stdout
