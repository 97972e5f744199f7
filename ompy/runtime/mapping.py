"""Which rank runs where, before anything is started: a host for each rank, and processors of it.

    4 processors, "share":           2 ranks -> {0,1} {2,3}     3 ranks -> {0} {1} {2}     5 ranks -> unbound
    4 processors, "core":            2 ranks -> {0} {1}         5 ranks -> unbound, since no rank can have its own
    4 processors, 2 for each rank:   2 ranks -> {0,1} {2,3}     3 ranks -> an error

Threads of one rank (a BLAS library's, say) keep all the processors that would idle otherwise, and ranks do not wander.

A rank file says it rank by rank:

    rank 0=localhost slot=0
    rank 1=localhost slot=1-3,5
"""

from __future__ import annotations

import os

from ompy.runtime.hostfile import is_local

POLICIES = ("share", "core", "none")
LINE = r"rank\s+(\d{1,9})\s*=\s*(\S+)\s+slots?\s*=\s*(\S+)"


class Place:
    """Where one rank runs.

    Attributes:
        host: name of the host.
        processors: those that it may run on; None for wherever the system likes.
    """

    __slots__ = ("host", "processors")

    def __init__(self, host: str, processors: set[int] | None) -> None:
        self.host = host
        self.processors = processors

    @property
    def words(self) -> str:
        """The processors, for people."""
        return "all processors" if self.processors is None else "processors " + spans(self.processors)


def spans(numbers: set[int]) -> str:
    """`0-3,5` for {0, 1, 2, 3, 5}."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


def places(ranks: int, processors: set[int], policy: str, each: int = 0) -> list[Place]:
    """A place on this host for each rank.

    Parameters:
        ranks: number of ranks on this host.
        processors: what this job may use.
        policy: one of `POLICIES`.
        each: processors for each rank; 0 for as many as the policy gives.

    Errors: ValueError when `each` asks for more than there are.
    """
    host = os.uname().nodename
    ordered = sorted(processors)
    if each * ranks > len(ordered):
        raise ValueError(f"{ranks} ranks with {each} processors each do not fit onto the {len(ordered)} that this job may use")
    if not each:
        if policy == "none" or ranks > len(ordered) or (ranks == 1 and policy == "share"):
            return [Place(host, None) for _ in range(ranks)]
        each = len(ordered) // ranks if policy == "share" else 1
    return [Place(host, set(ordered[rank * each : (rank + 1) * each])) for rank in range(ranks)]


def read_rank_file(path: str, ranks: int, processors: set[int]) -> list[Place]:
    """The places that a rank file names.

    Errors: ValueError that names the line, or the rank without one; OSError for a file that can't be read.
    """
    import re  # a start without a rank file does without

    found: dict[int, Place] = {}
    with open(path, encoding="utf-8") as stream:
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
            if not is_local(host):
                raise ValueError(f"{where}: host {host!r} is not this machine ({os.uname().nodename})")
            found[rank] = Place(os.uname().nodename, processor_list(slots, processors, where))
    missing = [rank for rank in range(ranks) if rank not in found]
    if missing:
        raise ValueError(f"{path}: no line for rank {missing[0]}; the job has ranks 0 to {ranks - 1}")
    return [found[rank] for rank in range(ranks)]


def processor_list(text: str, allowed: set[int], where: str) -> set[int]:
    """`1-3,5` as numbers."""
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ValueError(f"{where}: expected processors as 0,2-5, found {text!r} (sockets are not known here)")
        found |= {number for number in allowed if int(first) <= number <= int(last or first)}
        if not int(first) <= int(last or first) or int(first) not in allowed or int(last or first) not in allowed:
            raise ValueError(f"{where}: processors {part} are not all among those that this job may use: {spans(allowed)}")
    return found
