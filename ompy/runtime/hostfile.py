"""Where ranks may run: `--host a:2,b` and host files.

# a host file
localhost slots=4
node2 slots=8 max_slots=8
"""

from __future__ import annotations

import os
import sys


class Host:
    """A host and how many ranks it takes."""

    def __init__(self, name: str, slots: int) -> None:
        self.name = name
        self.slots = slots


def positive(text: str, where: str) -> int:
    if not text.isdigit() or int(text) == 0:
        raise ValueError(f"{where}: expected a number of slots of at least 1, found {text!r}")
    return int(text)


def parse_list(text: str) -> list[Host]:
    """`a:2,b` as hosts; a host without a number takes one rank.  Raises ValueError on anything else."""
    hosts = []
    for item in text.split(","):
        name, colon, slots = item.strip().partition(":")
        if not name:
            raise ValueError(f"--host {text}: a host's name is missing")
        hosts.append(Host(name, positive(slots, f"--host {item}") if colon and slots != "*" else 1))
    return hosts


def read(path: str) -> list[Host]:
    """The hosts of a file; ValueError names the line that can't be understood, OSError the file that can't be read."""
    hosts = []
    with open(path, encoding="utf-8") as stream:
        for number, line in enumerate(stream, 1):
            name, *fields = line.partition("#")[0].split() or [""]
            if not name:
                continue
            name, colon, count = name.partition(":")
            slots = positive(count, f"{path}:{number}") if colon else 1
            for field in fields:
                key, equals, value = field.partition("=")
                if not equals or key not in ("slots", "max_slots", "max-slots"):
                    raise ValueError(f"{path}:{number}: expected slots=N, found {field!r}")
                if key == "slots":
                    slots = positive(value, f"{path}:{number}")
            hosts.append(Host(name, slots))
    if not hosts:
        raise ValueError(f"{path}: no host in it")
    return hosts


def is_local(name: str) -> bool:
    """Whether the name is one of this machine's own."""
    own = os.uname().nodename
    return name in ("localhost", "127.0.0.1", "::1", own, own.partition(".")[0])


def slots_here(hosts: list[Host]) -> int:
    """How many ranks the hosts take; ValueError when one of them is not this machine."""
    for host in hosts:
        if not is_local(host.name):
            raise ValueError(
                f"host {host.name!r} is not this machine ({os.uname().nodename}), and ompyrun starts ranks on this machine "
                f"only. On several hosts start the same program with Hydra or Slurm: mpiexec -hosts ... -n N "
                f"{os.path.basename(sys.executable)} prog.py, or srun --mpi=pmi2 ..."
            )
    return sum(host.slots for host in hosts)
