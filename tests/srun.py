"""What plm/slurm calls, `srun --nodelist N,.. OPTIONS COMMAND..`, with this machine for every node.

Each task gets the standard input, and its node's name in SLURMD_NODENAME; the highest status is srun's own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SETTINGS = ("--nodes", "--ntasks", "--nodelist")  # options whose value is a word of its own


def install(folder: Path, nodes: str) -> dict[str, str]:
    """Put an `srun` into a folder; the environment of an allocation of these nodes, in which it is found."""
    tool = folder / "srun"
    tool.write_text(f'#!/bin/sh\nexec {sys.executable} {__file__} "$@"\n')
    tool.chmod(0o755)
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": nodes}


def main() -> int:
    """Entry point; returns the exit status."""
    words = sys.argv[1:]
    nodes: list[str] = []
    while words[0].startswith("--"):
        option = words.pop(0)
        if option in SETTINGS:
            value = words.pop(0)
            nodes = value.split(",") if option == "--nodelist" else nodes
    told = sys.stdin.buffer.read()
    tasks = []
    for node in nodes:
        try:
            task = subprocess.Popen(words, stdin=subprocess.PIPE, env=os.environ | {"SLURMD_NODENAME": node})
        except OSError as error:
            print(f"srun: error: {node}: {error}", file=sys.stderr)
            return 2
        tasks.append(task)
    for task in tasks:
        assert task.stdin is not None
        task.stdin.write(told)
        task.stdin.close()
    return max(abs(task.wait()) for task in tasks)


if __name__ == "__main__":
    sys.exit(main())
