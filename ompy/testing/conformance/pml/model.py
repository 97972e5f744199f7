"""The reference of matching (MPI-4.1, 3.5): two lists for each rank and communicator, searched from the front.

    a message comes      the first posted receive that wants it takes it; if there is none, it waits
    a receive is posted  of each sender, the first message that it wants could be taken; if there is none, it waits

Which sender's message a wildcard takes, MPI leaves open: the rank that received says which one it was, and the model follows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

ANY = -1


@dataclass(eq=False)
class Message:
    """A message, from the call that sends it on.

    Attributes:
        number: of all messages.
        channel: of the communicator.
        sender, receiver: ranks in the world.
        source: the sender as its receiver names it.
        synchronous: the sender waits for the match.
        exposed: the receiver has seen that it is there.
    """

    number: int
    channel: int
    sender: int
    receiver: int
    source: int
    tag: int
    nbytes: int
    synchronous: bool = False
    exposed: bool = False


@dataclass(eq=False)
class Receive:
    """A receive, from the call that posts it on.

    Attributes:
        source, tag: wishes.
        room: bytes; -1 where the memory is made at the match.
        message: what it has taken.
    """

    number: int
    channel: int
    receiver: int
    source: int
    tag: int
    room: int
    message: Message | None = None

    def wants(self, message: Message) -> bool:
        return fits(message, self.source, self.tag)


def fits(message: Message, source: int, tag: int) -> bool:
    return source in (ANY, message.source) and (tag == message.tag or (tag == ANY and message.tag >= 0))


@dataclass
class Queues:
    """What waits at one rank on one communicator, the oldest first."""

    posted: list[Receive] = field(default_factory=list)
    unexpected: list[Message] = field(default_factory=list)

    def come(self, message: Message) -> Receive | None:
        """A message is here: the receive that takes it."""
        for receive in self.posted:
            if receive.wants(message):
                self.posted.remove(receive)
                receive.message = message
                return receive
        self.unexpected.append(message)
        return None

    def candidates(self, source: int, tag: int) -> list[Message]:
        """Of each sender the message that a receive, or a probe, of these wishes may meet."""
        found: dict[int, Message] = {}
        for message in self.unexpected:
            if fits(message, source, tag):
                found.setdefault(message.sender, message)
        return list(found.values())

    def take(self, message: Message, receive: Receive | None = None) -> None:
        """A waiting message is taken by a receive, or taken out by a matched probe."""
        self.unexpected.remove(message)
        if receive is not None:
            receive.message = message
