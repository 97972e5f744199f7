"""`tools/mechanisms` forces what there is, and says so when asked for what there is not."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "mechanisms"
MECHANISMS = runpy.run_path(str(TOOL / "__main__.py"))["MECHANISMS"]


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_program_runs_with_the_parameters_of_each_mechanism(name: str) -> None:
    variables = {f"OMPY_MCA_{parameter}": value for parameter, value in MECHANISMS[name].items()}
    program = "from ompy import MPI; print(MPI.COMM_WORLD.allreduce(1))"
    command = [str(Path(sys.executable).parent / "ompyrun"), "-n", "2", sys.executable, "-c", program]
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["2", "2"]
    assert "unknown" not in done.stderr


def test_a_name_that_is_none_is_answered_with_those_that_are() -> None:
    done = subprocess.run([sys.executable, str(TOOL), "telepathy"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    for name in ("telepathy", "streaming", "kernel-joint"):
        assert name in done.stderr
