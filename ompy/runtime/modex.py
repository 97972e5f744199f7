"""The modex: each process publishes one card, and reads a peer's at first contact.

A card says where the process is and what each of its components needs to be reached:

    {"host": b"node7", "boot": b"...", "pid": b"4711", "pml": b"ob1", "coll": b"basic=10 sm=40",
     "sm": b"...", "zmq": b"tcp://..."}
"""

from __future__ import annotations

import os
from _thread import RLock

from ompy.core.errors import ERR_INTERN, MPIError
from ompy.core.proc import Proc
from ompy.runtime.dpm import acquaintances

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ompy.mca.rte import Rte

KEY = "card"
NOBODY = {"host": b"unknown", "boot": b"", "pid": b"0"}
BOOT_ID = "/proc/sys/kernel/random/boot_id"


def pack(card: Mapping[str, bytes]) -> bytes:
    """Entries behind each other: length of the name, name, length of the value, value."""
    parts = []
    for name, value in card.items():
        label = name.encode()
        parts += [len(label).to_bytes(2, "big"), label, len(value).to_bytes(4, "big"), value]
    return b"".join(parts)


def unpack(data: bytes) -> dict[str, bytes]:
    """The reverse of `pack`; MPIError for what `pack` can't have made."""
    card = {}
    at = 0
    while at < len(data):
        end = at + 2 + int.from_bytes(data[at : at + 2], "big")
        name = data[at + 2 : end].decode("utf-8", "replace")
        at = end + 4 + int.from_bytes(data[end : end + 4], "big")
        card[name] = data[end + 4 : at]
    if at != len(data) or not card.keys() >= {"host", "boot", "pid"} or not card["pid"].isdigit():
        raise MPIError(ERR_INTERN, f"a card of {len(data)} bytes can't be read")
    return card


def own_card() -> dict[str, bytes]:
    """Where this process is.  Hosts are told apart by name and boot, so that two of one name are two."""
    try:
        with open(BOOT_ID, "rb") as file:
            boot = file.read().strip()
    except OSError:
        boot = b""
    return {"host": os.uname().nodename.encode(), "boot": boot, "pid": str(os.getpid()).encode()}


class Modex:
    """Publishes this process's card and makes the peers' Procs from theirs.

    Parameters:
        rte: this process's place in its job.
    """

    def __init__(self, rte: Rte) -> None:
        self.rte = rte
        self.card = own_card()
        self.lock = RLock()  # a signal's handler may meet a peer, too
        self.made: dict[int, Proc] = {}
        self.without_card: set[int] = set()

    def publish(self) -> None:
        """Put the card up and wait until every rank's is there."""
        self.rte.put(KEY, pack(self.card))
        self.rte.commit_and_fence()

    def proc(self, index: int) -> Proc:
        """The process with this index in the table, which is its rank in the world."""
        # Several threads may meet a peer at once: the job's wire carries one question at a time, and a process has one Proc.
        with self.lock:
            if index not in self.made:
                self.made[index] = self.make(index)
            return self.made[index]

    def ask_ahead(self) -> None:
        """Have every card of this job here: whom the engine meets while the launcher owes an answer can't be asked for then."""
        from contextlib import suppress

        for rank in range(self.rte.size):
            with suppress(MPIError):  # of one that has failed without a card
                self.proc(rank)

    def failed(self, index: int) -> Proc:
        """A process that has failed, perhaps before it had a card."""
        self.without_card.add(index)
        return self.proc(index)

    def forget(self, index: int) -> None:
        """The process is disconnected."""
        with self.lock:
            self.made.pop(index, None)

    def make(self, index: int) -> Proc:
        if index >= self.rte.size:
            who = acquaintances.of(index)
            job, rank, circle, number, card = who.job, who.rank, who.circle, who.number, unpack(who.card)
        else:
            job, rank, circle, number = self.rte.job, index, None, index
            card = self.own_job_card(index)
        return Proc(
            index,
            rank,
            job,
            card["host"].decode("utf-8", "replace"),
            int(card["pid"]),
            index == self.rte.rank,
            self.is_here(card),
            card,
            circle,
            number,
        )

    def is_here(self, card: Mapping[str, bytes]) -> bool:
        """Whether a process with this card is on this host."""
        return card["host"] == self.card["host"] and card["boot"] == self.card["boot"]

    def own_job_card(self, rank: int) -> dict[str, bytes]:
        """What a rank of this job has published; NOBODY's of one that failed before it did."""
        try:
            return self.card if rank == self.rte.rank else unpack(self.rte.get(rank, KEY))
        except MPIError:
            if rank not in self.without_card:
                raise
            return NOBODY
