"""Some of mpi4py's own tests over three hosts: the rest of the suite differs in nothing that hosts have to do with."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from machines import Launched, Machines

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

TOP = Path(__file__).parents[2]


@pytest.mark.parametrize("ranks", ["2", "5"])
def test_modules_of_the_suite_pass_across_hosts(machines: Machines, tmp_path: Path, ranks: str) -> None:
    if not (TOP / ".cache" / "suite").exists():
        pytest.skip("mpi4py's tests are not here; tools/suite fetches them")
    (tmp_path / "hosts").write_text("n1 slots=1\nn2 slots=2\nn3 slots=2\n")
    words = ["env", f"OMPI_MCA_orte_default_hostfile={tmp_path}/hosts", f"OMPY_MCA_plm_ssh_agent={machines.agent}"]
    words += [sys.executable, str(TOP / "tools" / "suite"), "p2p_buf", "cco_obj", "-n", ranks]
    with Launched(machines["n1"], words, TOP) as job:
        assert job.finish(500) == 0, job.stdout[-4000:] + job.stderr[-4000:]
