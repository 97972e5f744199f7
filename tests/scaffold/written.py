"""What holds for every distribution that `ompy new` writes: the house's style, and the contract's types."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from workshop import Workshop

TOP = Path(__file__).resolve().parent.parent.parent


def run(command: list[str], folder: Path) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stdout


def assert_in_style(folder: Path) -> None:
    """Of the project's own configuration."""
    for command in (["ruff", "check"], ["ruff", "format", "--check"]):
        run([*command, "--config", str(TOP / "pyproject.toml"), str(folder)], folder)


def assert_typed(folder: Path, package: str) -> None:
    """By mypy, strictly, against the stubs of the installed ompy."""
    run(["mypy", "--strict", "--python-executable", sys.executable, package], folder / "src")


STRANGERS = """
import os, socket
from ompy import MPI
comm = MPI.COMM_WORLD
comm.Barrier()
names = []
for number in os.listdir("/proc/self/fd"):
    try:
        mine = socket.socket(fileno=os.dup(int(number)))
    except OSError:
        continue
    if mine.family == socket.AF_UNIX and mine.type == socket.SOCK_DGRAM and mine.getsockname():
        names.append(mine.getsockname())
assert names
nameless, bound = (socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(2))
bound.bind(b"\\0stranger %d" % os.getpid())
for stranger in nameless, bound:
    for length in 0, 1, 30, 200:
        for name in names:
            stranger.sendto(b"x" * length, name)
for _ in range(20):
    assert comm.allgather(comm.rank) == [0, 1]
print("here")
"""


def assert_strangers_are_ignored(workshop: Workshop, *options: str, **environment: str) -> None:
    """Whoever is on the host can send datagrams to a socket of a Unix name, from one without a name, too."""
    command = ("-m", "ompy.cli.ompyrun", "-n", "2", "--timeout", "60", *options)
    done = workshop.run(*command, sys.executable, "-c", STRANGERS, **environment)
    assert (done.returncode, done.stdout) == (0, "here\nhere\n"), done.stderr
