"""Where ranks may run: `--host a:2,b`, host files, and what an engine has allocated.

# a host file
localhost slots=4
node2 slots=8 max_slots=8
"""

from __future__ import annotations

import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Where tools that start MPI programs (the MPI operator of Kubernetes among them) say which file has the hosts.
FILE_VARIABLES = ("OMPI_MCA_orte_default_hostfile", "HYDRA_HOST_FILE", "I_MPI_HYDRA_HOST_FILE")
MOST_HOSTS = 1 << 16


class Host:
    """A host and how many ranks it takes.

    Attributes:
        name: as a person or an engine calls it.
        slots: ranks that it is meant for.
        limit: ranks that it takes at most, with `--oversubscribe` too.
    """

    def __init__(self, name: str, slots: int, limit: int | None = None) -> None:
        self.name = name
        self.slots = slots
        self.limit = limit


def positive(text: str, where: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise ValueError(f"{where}: expected a number of slots of at least 1, found {text!r}")
    return int(text)


def parse_list(text: str, among: Sequence[Host] = ()) -> list[Host]:
    """`a:2,b,+n0` as hosts; a host without a number takes one rank, or what `among` says of it.

    Parameters:
        among: hosts of a file or an allocation; all must be of those, and `+n0` is the first of them.

    Errors: ValueError.
    """
    hosts = []
    known = {host.name: host for host in among}
    for item in text.split(","):
        name, colon, slots = item.strip().partition(":")
        if not name:
            raise ValueError(f"--host {text}: a host's name is missing")
        if name.startswith("+"):
            number = name.removeprefix("+n")
            if not number.isdecimal() or int(number) >= len(among):
                raise ValueError(f"--host {name}: +n0 to +n{len(among) - 1} are the hosts of a host file or an allocation")
            name = among[int(number)].name
        if among and name not in known:
            raise ValueError(f"--host {name}: it is not among the hosts given: {', '.join(known)}")
        found = known.get(name)
        count = positive(slots, f"--host {item}") if colon and slots != "*" else found.slots if found else 1
        hosts.append(Host(name, count, found.limit if found else None))
    return merged(hosts)


def read(path: str) -> list[Host]:
    """The hosts of a file; ValueError names the line that can't be understood, OSError the file that can't be read."""
    hosts = []
    with open(path, encoding="utf-8", errors="surrogateescape") as stream:
        for number, line in enumerate(stream, 1):
            name, *fields = line.partition("#")[0].split() or [""]
            if not name:
                continue
            where = f"{path}:{number}"
            name, colon, count = name.partition(":")
            host = Host(name, positive(count, where) if colon else 1)
            for field in fields:
                key, equals, value = field.partition("=")
                if not equals or key not in ("slots", "max_slots", "max-slots"):
                    raise ValueError(f"{where}: expected slots=N or max-slots=N, found {field!r}")
                if key == "slots":
                    host.slots = positive(value, where)
                else:
                    host.limit = positive(value, where)
            if host.limit is not None and host.limit < host.slots:
                if any(field.startswith("slots=") for field in fields):
                    raise ValueError(f"{where}: {host.slots} slots, and at most {host.limit}")
                host.slots = host.limit
            hosts.append(host)
    if not hosts:
        raise ValueError(f"{path}: no host in it")
    return hosts


def merged(hosts: Sequence[Host]) -> list[Host]:
    """Each host once; who is named twice takes the ranks of both."""
    found: dict[str, Host] = {}
    for host in hosts:
        if host.name in found:
            found[host.name].slots += host.slots
            if host.limit is not None:
                found[host.name].limit = (found[host.name].limit or 0) + host.limit
        else:
            found[host.name] = Host(host.name, host.slots, host.limit)
    return list(found.values())


def allocated(environment: Mapping[str, str]) -> list[Host]:
    """The hosts that an engine has put into the environment; none where it has not.

    Errors: ValueError, OSError.
    """
    for variable in FILE_VARIABLES:
        if environment.get(variable):
            return merged(read(environment[variable]))
    if "SLURM_JOB_ID" in environment and environment.get("SLURM_JOB_NODELIST"):
        names = expanded(environment["SLURM_JOB_NODELIST"])
        counts = environment.get("SLURM_TASKS_PER_NODE") or environment.get("SLURM_JOB_CPUS_PER_NODE") or "1"
        slots = repeated(counts)
        return [Host(name, slots[min(index, len(slots) - 1)]) for index, name in enumerate(names)]
    return []


def repeated(text: str) -> list[int]:
    """Slurm's `2(x3),1` as 2, 2, 2, 1."""
    found: list[int] = []
    for item in text.split(","):
        parts = re.fullmatch(r"(\d{1,6})(?:\(x(\d{1,6})\))?", item)
        if parts is None:
            raise ValueError(f"{item!r} in the environment is no number of tasks a node")
        found += [max(1, int(parts[1]))] * int(parts[2] or 1)
    return found


def expanded(text: str) -> list[str]:
    """Slurm's `node[1-3,07],login` as names."""
    names: list[str] = []
    for item in re.findall(r"[^,\[]+(?:\[[^\]]*\][^,\[]*)*", text):
        found = [""]
        for piece in re.split(r"(\[[^\]]*\])", item):
            endings = ranges(piece[1:-1]) if piece.startswith("[") else [piece]
            if len(found) * len(endings) > MOST_HOSTS:
                raise ValueError(f"SLURM_JOB_NODELIST names more than {MOST_HOSTS} hosts")
            found = [name + ending for name in found for ending in endings]
        names += found
    return names


def ranges(text: str) -> list[str]:
    """`1-3,07` as 1, 2, 3, 07; numbers keep their zeroes."""
    found: list[str] = []
    for item in text.split(","):
        first, _, last = item.partition("-")
        if not first.isdecimal() or (last and not last.isdecimal()) or int(last or first) - int(first) > MOST_HOSTS:
            raise ValueError(f"SLURM_JOB_NODELIST: {item!r} is no range of numbers")
        found += [f"{number:0{len(first)}d}" for number in range(int(first), int(last or first) + 1)]
    return found


def is_local(name: str) -> bool:
    """Whether the name is one of this machine's own."""
    own = os.uname().nodename
    return name in ("localhost", "127.0.0.1", "::1", own, own.partition(".")[0])
