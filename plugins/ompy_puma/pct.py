"""The process control thread: policy without mechanism (Puma, 5.3 and 7).

One a node, in context 0.  It says which processes a node runs, keeps names, and makes capabilities; it never touches a
message between processes.  PCTs form group 0 and talk through portals of their own:

    client's PCT                                    PCT of each other node
    connect(client, "files") ---- FIND "files" ---> not mine:  UNKNOWN
                             <--- answer ---------- mine: asks the server's `accept`: PORTAL (context, portal) or REFUSED
    makes a PortalCapability, grants it

A process holds a group capability for its own group from its launch, others only by asking: `join` for a group, `connect`
for one portal of a server, which decides by what it is told of the asker.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from mmap import mmap
from typing import TYPE_CHECKING, Any, NamedTuple

from ompy.core.errors import ERR_NAME, ERR_OTHER, MPIError
from ompy_puma.application import Application
from ompy_puma.capability import GroupCapability, PortalCapability
from ompy_puma.heap import LETTER_WHOLE
from ompy_puma.kinds import kernel_managed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ompy_puma.application import Happening
    from ompy_puma.kernel import QKernel

PCT_GROUP = 0
PCT_CONTEXT = 0
PCT_PORTAL = 0
HEAP_SIZE = 1 << 20
OWN_GROUP = 0

HEAD = struct.Struct("<BIH")
PLACE = struct.Struct("<IIHH")
MEMBER = struct.Struct("<IH")


class Word(IntEnum):
    """What PCTs say to each other."""

    FIND_SERVER = 1
    FIND_GROUP = 2
    PORTAL = 3
    GROUP = 4
    UNKNOWN = 5
    REFUSED = 6


class Asker(NamedTuple):
    """What a server is told of a process that wants to connect."""

    group: int
    rank: int
    credentials: bytes


class Server(NamedTuple):
    """A process that others may connect to under a name."""

    process: Application
    accept: Callable[[Asker], int | None]


class Errand:
    """What a process has asked its PCT for.

    Attributes:
        process, name: who asked, for what.
        capability: index of the capability once it is granted, else None.
        refusal: why there is none, else None.
    """

    def __init__(self, process: Application, name: str, waiting: int) -> None:
        self.process = process
        self.name = name
        self.waiting = waiting
        self.capability: int | None = None
        self.refusal: str | None = None

    @property
    def done(self) -> bool:
        return self.capability is not None or self.refusal is not None

    def result(self) -> int:
        """Index of the capability.  Errors: ERR_NAME when nobody has the name, ERR_OTHER when the server refused."""
        if self.capability is None:
            raise MPIError(ERR_NAME, self.refusal or f"no answer about {self.name!r} yet: let the network run")
        return self.capability


class ProcessControlThread(Application):
    """The PCT of one node.

    Parameters:
        kernel: of the node.
        nodes: numbers of all nodes, the same everywhere and in the same order.
    """

    def __init__(self, kernel: QKernel, nodes: Sequence[int]) -> None:
        super().__init__(PCT_GROUP, list(nodes).index(kernel.node), portals=1, entries=1, descriptors=1)
        self.q_kernel = kernel
        self.others = [rank for rank in range(len(nodes)) if rank != self.rank]
        self.groups: dict[str, GroupCapability] = {}
        self.servers: dict[str, Server] = {}
        self.errands: dict[int, Errand] = {}
        self.heap = kernel_managed(self, PCT_PORTAL, mmap(-1, HEAP_SIZE))
        self.events = None
        self.watcher = self.attend
        kernel.create_context(self, PCT_CONTEXT)
        self.grant(GroupCapability(PCT_GROUP, [(node, PCT_CONTEXT) for node in nodes]))

    # -- processes and names

    def load(self, process: Application, capability: GroupCapability) -> None:
        """Start a process on this node: it may send to its own group, by capability `OWN_GROUP`."""
        node, context = capability.pairs[process.rank]
        if node != self.q_kernel.node:
            raise MPIError(ERR_OTHER, f"rank {process.rank} of group {process.group} belongs on node {node}, "
                                      f"not {self.q_kernel.node}")  # fmt: skip
        self.q_kernel.create_context(process, context)
        process.grant(capability)

    def name_group(self, name: str, capability: GroupCapability) -> None:
        """Let others find a group by name."""
        self.groups[name] = capability

    def name_server(self, name: str, process: Application, accept: Callable[[Asker], int | None]) -> None:
        """Let others connect to a process of this node; `accept` returns the portal that the asker may send to, or None."""
        self.servers[name] = Server(process, accept)

    # -- what processes ask for

    def connect(self, process: Application, name: str, credentials: bytes = b"") -> Errand:
        """A portal capability for a server, wherever it runs."""
        errand = Errand(process, name, len(self.others))
        if name in self.servers:
            self.answered(errand, *self.ask_server(name, Asker(process.group, process.rank, credentials)))
        else:
            who = struct.pack("<II", process.group, process.rank)
            self.ask_everybody(errand, Word.FIND_SERVER, who + credentials)
        return errand

    def join(self, process: Application, name: str) -> Errand:
        """A group capability for the process alone; its group gains nothing, nor does the other group."""
        errand = Errand(process, name, len(self.others))
        if name in self.groups:
            errand.capability = process.grant(self.groups[name])
        else:
            self.ask_everybody(errand, Word.FIND_GROUP, b"")
        return errand

    def ask_everybody(self, errand: Errand, word: Word, rest: bytes) -> None:
        number = len(self.errands)
        self.errands[number] = errand
        name = errand.name.encode()
        for rank in self.others:
            self.send(OWN_GROUP, rank, PCT_PORTAL, HEAD.pack(word, number, len(name)) + name + rest)
        if not self.others:
            self.answered(errand, Word.UNKNOWN, b"")

    def ask_server(self, name: str, asker: Asker) -> tuple[Word, bytes]:
        server = self.servers[name]
        portal = server.accept(asker)
        if portal is None:
            return Word.REFUSED, b""
        return Word.PORTAL, PLACE.pack(server.process.group, self.q_kernel.node, server.process.index, portal)

    # -- what PCTs tell each other

    def attend(self, _: Happening | None = None) -> None:
        """Take what has arrived, oldest first."""
        for letter in self.letters(self.heap):
            if letter.state != LETTER_WHOLE:
                break
            body, sender = letter.body, letter.message.source_rank
            letter.release()
            word, number, length = HEAD.unpack_from(body)
            name = body[HEAD.size : HEAD.size + length].decode()
            self.take(Word(word), number, name, body[HEAD.size + length :], sender)

    def take(self, word: Word, number: int, name: str, rest: bytes, sender: int) -> None:
        if word is Word.FIND_SERVER and name in self.servers:
            group, rank = struct.unpack_from("<II", rest)
            answer = self.ask_server(name, Asker(group, rank, rest[8:]))
        elif word is Word.FIND_GROUP and name in self.groups:
            found = self.groups[name]
            answer = Word.GROUP, struct.pack("<I", found.group) + b"".join(MEMBER.pack(*pair) for pair in found.pairs)
        elif word in (Word.FIND_SERVER, Word.FIND_GROUP):
            answer = Word.UNKNOWN, b""
        else:
            self.answered(self.errands[number], word, rest)
            return
        self.send(OWN_GROUP, sender, PCT_PORTAL, HEAD.pack(answer[0], number, 0) + answer[1])

    def answered(self, errand: Errand, word: Word, rest: bytes) -> None:
        """A PCT has answered: the first that has the name decides."""
        errand.waiting -= 1
        if errand.done:
            return
        if word is Word.PORTAL:
            errand.capability = errand.process.grant(PortalCapability(*PLACE.unpack(rest)))
        elif word is Word.GROUP:
            (group,) = struct.unpack_from("<I", rest)
            errand.capability = errand.process.grant(GroupCapability(group, MEMBER.iter_unpack(rest[4:])))
        elif word is Word.REFUSED:
            errand.refusal = f"the server {errand.name!r} refused rank {errand.process.rank} of group {errand.process.group}"
        elif errand.waiting <= 0:
            errand.refusal = f"no node has anything named {errand.name!r}"


def launch(
    pcts: Sequence[ProcessControlThread],
    group: int,
    nodes: Sequence[int],
    name: str | None = None,
    context: int = 1,
    **arrays: Any,
) -> list[Application]:
    """What the host node does (Puma, 2): starts one process on each of the given nodes, as one group.

    Parameters:
        pcts: of the nodes; nodes are named by their place in it.
        group: number of the group, which no other has.
        nodes: where rank 0, 1, ... run; at most one of a group on a node.
        name: under which others may ask to join.
        context: place in every node's context table.
        arrays: as for `Process`.
    """
    capability = GroupCapability(group, [(pcts[node].q_kernel.node, context) for node in nodes])
    processes = [Application(group, rank, **arrays) for rank in range(len(nodes))]
    for process, node in zip(processes, nodes, strict=True):
        pcts[node].load(process, capability)
    if name is not None:
        pcts[nodes[0]].name_group(name, capability)
    return processes
