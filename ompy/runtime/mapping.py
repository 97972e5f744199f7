"""Which rank runs where, before anything is started.

The order of the hosts and their slots says it (`spread`), or a rank file, rank by rank, with processors or cores of a package:

    rank 0=localhost slot=0
    rank 1=localhost slot=1-3,5
    rank 2=localhost slot=1:0-1
    rank 3=localhost slot=1:*
"""

from __future__ import annotations

import os

from ompy.runtime.hostfile import is_local
from ompy.runtime.topology import numbers, spans

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ompy.runtime.hostfile import Host
    from ompy.runtime.topology import Topology

MOST_PROCESSORS = 1 << 16
SPANS = r"\d{1,9}(?:-\d{1,9})?(?:,\d{1,9}(?:-\d{1,9})?)*"
SLOTS = rf"{SPANS}|\d{{1,9}}:(?:\*|{SPANS})"
LINE = r"rank\s+(\d{1,9})\s*=\s*(\S+)\s+slots?\s*=\s*(\S+)"


class Place:
    """Where one rank runs.

    Attributes:
        host: name of the host.
        slots: what a rank file says of its processors; "" where none does.
        processors: those that it may run on; None for wherever the system likes.
    """

    __slots__ = ("host", "processors", "slots")

    def __init__(self, host: str, slots: str = "") -> None:
        self.host = host
        self.slots = slots
        self.processors: set[int] | None = None

    @property
    def words(self) -> str:
        """The processors, for people."""
        return "all processors" if self.processors is None else "processors " + spans(self.processors)


def spread(hosts: Sequence[Host], ranks: int, order: str, a_host: int = 0, oversubscribe: bool = False) -> list[str]:
    """The host of each rank.

        a has 3 slots, b has 2:      slot  a a a b b       node  a b a b a       a_host 2  a a b b

    Parameters:
        hosts: each once.
        order: `slot` fills one host after the other, `node` goes round.
        a_host: most ranks on a host, whatever its slots; 0 for as many as there are slots.
        oversubscribe: what does not fit goes round the hosts, as far as their limits let it.

    Errors: ValueError when the ranks do not fit.
    """
    room = {host.name: a_host or host.slots for host in hosts}
    counts = dict.fromkeys(room, 0)
    left = ranks
    limits = {host.name: host.limit for host in hosts}
    going_round = order == "node"
    while left:
        free = [name for name in room if counts[name] < room[name]]
        if not free:
            if a_host:
                raise ValueError(f"{ranks} ranks do not fit: there are {len(hosts)} hosts, each to have at most {a_host}")
            if not oversubscribe:
                total = sum(host.slots for host in hosts)
                raise ValueError(f"{ranks} ranks do not fit into the {total} slots of the hosts; --oversubscribe lets them")
            going_round = True
            room = {name: ranks if limits[name] is None else int(limits[name] or 0) for name in room}
            if all(counts[name] >= room[name] for name in room):
                most = sum(limit or 0 for limit in limits.values())
                raise ValueError(f"{ranks} ranks do not fit: max-slots of the hosts given are {most} together")
            continue
        for name in free:
            taken = min(left, 1 if going_round else room[name] - counts[name])
            counts[name] += taken
            left -= taken
    return numbered(counts, order)


def numbered(counts: dict[str, int], order: str) -> list[str]:
    """The hosts of ranks 0, 1, ...: all of one host before the next, or (`node`) one of each in turn."""
    if order != "node":
        return [name for name, count in counts.items() for _ in range(count)]
    return [name for turn in range(max(counts.values())) for name, count in counts.items() if turn < count]


def read_rank_file(path: str, ranks: int, hosts: Sequence[str]) -> list[Place]:
    """The places that a rank file names.

    Parameters:
        hosts: those of the job, `+n0` the first; none where only this one is meant.

    Errors: ValueError that names the line, or the rank without one; OSError for a file that can't be read.
    """
    import re  # a start without a rank file does without

    found: dict[int, Place] = {}
    with open(path, encoding="utf-8", errors="surrogateescape") as stream:
        for number, line in enumerate(stream, 1):
            text = line.partition("#")[0].strip()
            if not text:
                continue
            where = f"{path}:{number}"
            parts = re.fullmatch(LINE, text)
            if parts is None:
                raise ValueError(f"{where}: expected rank N=HOST slot=PROCESSORS, found {text!r}")
            rank, host, slots = int(parts[1]), parts[2], parts[3]
            if rank >= ranks or rank in found:
                problem = "is placed twice" if rank in found else f"is none of the job's, which are 0 to {ranks - 1}"
                raise ValueError(f"{where}: rank {rank} {problem}")
            if re.fullmatch(r"\+n\d{1,6}", host) and int(host[2:]) < len(hosts):
                host = hosts[int(host[2:])]
            if not is_local(host) and host not in hosts:
                known = f"none of the job's hosts: {', '.join(hosts)}" if hosts else f"not this machine ({os.uname().nodename})"
                raise ValueError(f"{where}: host {host!r} is {known}")
            if not re.fullmatch(SLOTS, slots):
                raise ValueError(f"{where}: expected processors as 0,2-5, or cores of a package as 1:0-3, 1:*, found {slots!r}")
            found[rank] = Place(os.uname().nodename if is_local(host) else host, slots)
    missing = [rank for rank in range(ranks) if rank not in found]
    if missing:
        raise ValueError(f"{path}: no line for rank {missing[0]}; the job has ranks 0 to {ranks - 1}")
    return [found[rank] for rank in range(ranks)]


def resolve(places: Sequence[Place], topology: Topology, path: str) -> None:
    """Give the ranks of one host what a rank file says; ValueError when that is not there."""
    for place in places:
        package, colon, cores = place.slots.rpartition(":")
        packages = topology.objects("package")
        wanted: set[int] | None = None
        if not colon:
            wanted = numbers(cores) if most(cores) < MOST_PROCESSORS else None
        elif int(package) < len(packages):
            inside = [core for core in topology.objects("core") if core <= packages[int(package)]]
            if cores == "*" or most(cores) < len(inside):
                wanted = set().union(*(inside[it] for it in (range(len(inside)) if cores == "*" else numbers(cores))))
        if not wanted or not wanted <= topology.processors:
            raise ValueError(
                f"{path}: slot={place.slots} on {place.host} is not all among what this job may use: processors "
                f"{spans(topology.processors)}, packages {' and '.join(spans(it) for it in packages)}"
            )
        place.processors = wanted


def most(text: str) -> int:
    """The highest number in `1-3,5`."""
    return max(int(number) for part in text.split(",") for number in part.split("-"))
