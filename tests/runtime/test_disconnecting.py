"""Processes of other jobs that are connected no more (MPI-4.1, 11.10.4): they end by themselves, and nothing of them stays."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from launching import Launch, launch

# The first process spawns others with the same program, one at a time; all that is below runs in both.
PROGRAM = """
import os, resource, sys
from ompy import MPI
world = MPI.COMM_WORLD
parent = MPI.Comm.Get_parent()
is_child = parent != MPI.COMM_NULL
def meet():
    other = parent if is_child else world.Spawn(sys.executable, [__file__], 1)
    return other, other.Merge(is_child)
def part(other, merged):
    merged.Disconnect()
    other.Disconnect()
"""
USES = {
    "collective": "merged.Barrier()",
    "window": "window = MPI.Win.Allocate(8, 1, comm=merged); window.Fence(); window.Fence(); window.Free()",
    "file": "MPI.File.Open(merged, __file__ + '.data', MPI.MODE_CREATE | MPI.MODE_RDWR).Close()",
    "file that is not there": "\ntry: MPI.File.Open(merged, '/none/none', MPI.MODE_RDONLY)\nexcept MPI.Exception: pass",
}


def run(folder: Path, text: str, *options: str) -> Launch:
    path = folder / "program.py"
    path.write_text(PROGRAM + text)
    limit = ("--timeout", "60", "--report-state-on-timeout")
    return launch(*limit, *options, "-n", "1", sys.executable, str(path))


@pytest.mark.parametrize("osc", ["", "pt2pt"])
@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_what_connected_them_and_was_given_up_keeps_no_process_from_its_end(tmp_path: Path, use: str, osc: str) -> None:
    text = f"other, merged = meet()\n{use}\n" + (
        "pids = merged.allgather(os.getpid())\n"
        "part(other, merged)\n"
        "def is_there():\n"
        "    try:\n"
        "        with open(f'/proc/{pids[1]}/stat') as stat: return stat.read().rpartition(')')[2].split()[0] != 'Z'\n"
        "    except OSError: return False\n"
        # The child has nobody to wait for but its parent, which makes no further call.
        "if not is_child:\n"
        "    while is_there(): pass\n"
        "    print('gone')\n"
    )
    job = run(tmp_path, text, *(("--mca", "osc", osc) if osc else ()))
    assert (job.process.returncode, job.stdout) == (0, "gone\n"), job.stderr


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_nothing_of_those_that_came_and_went_stays(tmp_path: Path, use: str) -> None:
    body = f"    other, merged = meet()\n    {use}\n    merged.Barrier()\n    part(other, merged)\n".replace(
        "\ntry", "\n    try"
    )
    text = (
        f"for turn in range(1 if is_child else 6):\n{body}".replace("\nexcept", "\n    except")
        + "    here = os.listdir('/proc/self/fd'), [line for line in open('/proc/self/maps') if 'memfd' in line]\n"
        "    if turn == 1: before = here\n"
        "if not is_child: print([len(now) - len(then) for now, then in zip(here, before)])\n"
    )
    job = run(tmp_path, text)
    assert (job.process.returncode, job.stdout) == (0, "[0, 0]\n"), job.stderr
