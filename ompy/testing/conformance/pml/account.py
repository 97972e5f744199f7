"""What was sent, received, taken out and cancelled so far, as the model has it, and what is wrong when something else happens.

What completes names the message that it took, by the number that the message's first bytes are; which clause that breaks
follows from who else wanted it, or waits for it still:

    the model says        the request says      so
    message 7             message 8             order, where 7 is of the same sender and older
    nothing yet           message 7             posted, where an older receive is due to take 7; else match, separate, ...
    message 7             nothing               cancel, where a cancelled receive would have taken 7; else delivery
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, cast

from ompy.testing.conformance.check import Breach
from ompy.testing.conformance.pml.model import ANY, Message, Queues, Receive
from ompy.testing.conformance.pml.rank import Channel, PmlRank

if TYPE_CHECKING:
    from ompy.core.request import Request

# The first bytes of each message are its number.
NUMBERED = 8
GUARD, UNTOUCHED, OVERWRITTEN, READ = 0xA5, 0x5A, 0xEE, 0x33
GUARDED = 32  # bytes behind a receive's room
TRUNCATED = 15  # the error class ERR_TRUNCATE


@dataclass(eq=False)
class Receiving:
    """A receive of this rank's, until what it received was looked at."""

    wish: Receive
    request: Request
    data: bytearray | None  # None: memory is made at the match
    made: list[int] = field(default_factory=list)  # with so many bytes


class Account:
    """Of one sequence, at one rank.

    Parameters:
        rank: this one.
        channels: communicators to use.
        longest: bytes of a message, at most.
    """

    def __init__(self, rank: PmlRank, channels: list[Channel], longest: int) -> None:
        self.rank = rank
        self.channels = channels
        self.longest = longest
        self.queues: dict[tuple[int, int], Queues] = {}
        self.messages: dict[int, Message] = {}
        self.received: set[int] = set()
        self.receiving: list[Receiving] = []
        self.taken: dict[tuple[int, int], list[Message]] = {}  # of every rank, in the order of taking
        self.cancelled: list[Receive] = []  # this rank's, until a message that one would have taken is seen to be there
        self.done: list[tuple[Receive, bytearray]] = []  # memory that nobody may touch any more

    def queue(self, channel: Channel, receiver: int) -> Queues:
        return self.queues.setdefault((channel.index, receiver), Queues())

    def everything(self) -> Iterator[tuple[Channel, int, Queues]]:
        for (index, receiver), queues in sorted(self.queues.items()):
            yield self.channels[index], receiver, queues

    def waiting(self) -> int:
        """Messages that no receive has wanted, at all ranks."""
        return sum(len(queues.unexpected) for _, _, queues in self.everything())

    # -- what happens, against the model

    def would_take(self, channel: Channel, source: int, tag: int) -> tuple[int, int, int] | None:
        """Source, tag and bytes of what a receive really takes."""
        data = self.memory(self.longest)
        assert channel.core is not None
        request = self.rank.irecv(data, self.longest, source, tag, channel.core)
        self.rank.until(lambda: request.complete)
        taken, of, _, _, nbytes = request.result
        return taken, of, nbytes

    def expose(self, channel: Channel, queues: Queues, message: Message) -> None:
        """A message that waits can be seen, if no older one of the same envelope hides it."""
        rank, handle = self.rank, channel.handle
        alike = [it for it in queues.unexpected if (it.sender, it.tag) == (message.sender, message.tag)]
        if alike[0] is not message:
            return
        rank.clause = "probe"
        message.exposed = rank.until(lambda: handle.Iprobe(message.source, message.tag))
        if message.exposed:
            self.acquit(message)
            return
        data = self.memory(self.longest)
        assert channel.core is not None
        request = rank.irecv(data, self.longest, message.source, message.tag, channel.core)
        came = rank.until(lambda: request.complete)
        if came:
            raise Breach("probe", f"{self.words(message)} has come, and no probe sees it")
        raise self.missing(message, f"{self.words(message)} does not come")

    def acquit(self, message: Message) -> None:
        """A message is where it belongs: no cancelled receive has taken it."""
        self.cancelled = [it for it in self.cancelled if it.channel != message.channel or not it.wants(message)]

    def missing(self, message: Message | None, words: str, rightful: Receive | None = None) -> Breach:
        """Why a message is nowhere: a cancelled receive from before the rightful one has taken it, or it was lost."""
        for wish in self.cancelled:
            if rightful is not None and rightful.number < wish.number:
                continue
            if message is not None and wish.channel == message.channel and wish.wants(message):
                return Breach("cancel", f"{words}; {told(wish)}, which was cancelled, would have taken it")
        return Breach("delivery", words)

    def wait_for(self, receiving: Receiving, clause: str, words: str, beside: Collection[Receiving] = ()) -> None:
        """A request that is to complete does, and none that waits but those beside it."""
        rank, request = self.rank, receiving.request
        rank.clause = clause
        others = [it for it in self.receiving if it.wish.message is None and it is not receiving and it not in beside]
        rank.until(lambda: request.complete or any(other.request.complete for other in others))
        if request.complete:
            return
        for other in others:
            if other.request.complete:
                self.explain(other)
        if clause == "delivery":
            raise self.missing(receiving.wish.message, f"{words} does not complete", receiving.wish)
        raise Breach(clause, f"{words} does not complete")

    def identify(self, receiving: Receiving, candidates: list[Message]) -> Message:
        """Which of several messages it was, by its source."""
        source, tag, *_ = receiving.request.result
        for message in candidates:
            if message.source == source:
                return message
        self.explain(receiving)
        raise Breach("status", f"{told(receiving.wish)} says that it took a message of source {source} and tag {tag}")

    def judge(self, receiving: Receiving) -> None:
        """A complete receive has the message that the model gave it, whole."""
        wish, message = receiving.wish, receiving.wish.message
        assert message is not None
        self.receiving.remove(receiving)
        self.received.add(message.number)
        self.acquit(message)
        source, tag, error, cancelled, nbytes = receiving.request.result
        words = f"{told(wish)}, which took {self.words(message)},"
        content = bytes(self.content(message))
        fitting = content if wish.room < 0 else content[: wish.room]
        data = receiving.data if receiving.data is not None else bytearray(self.made(receiving, message, words))
        if data[: len(fitting)] != fitting:
            self.differs(receiving, data, fitting, message, words)
        if cancelled:
            raise Breach("cancel", f"{words} says that it was cancelled")
        if (source, tag) != (message.source, message.tag):
            told_of = (wish.channel, self.rank.rank, source, tag, nbytes)
            for other in self.messages.values():
                alike = (other.channel, other.receiver, other.source, other.tag, other.nbytes) == told_of
                if alike and other.number not in self.received:
                    self.explain(receiving, other)
            raise Breach("status", f"{words} says that source and tag are {source} and {tag}")
        if 0 <= wish.room < message.nbytes:
            if error != TRUNCATED:
                raise Breach("truncation", f"{words} has the error {error} ({receiving.request.error}), not ERR_TRUNCATE")
        elif error:
            raise Breach("delivery", f"{words} failed: {receiving.request.error}")
        elif nbytes != message.nbytes:
            raise Breach("status", f"{words} says that it has {nbytes} bytes")
        if receiving.data is not None:
            clause = "truncation" if wish.room < message.nbytes else "delivery"
            behind = bytes(data[len(fitting) :])
            if behind != self.background(wish.room)[len(fitting) :]:
                raise Breach(clause, f"{words} wrote behind the message's {len(fitting)} bytes")
            self.keep(wish, data)
        receiving.request.release()

    def made(self, receiving: Receiving, message: Message, words: str) -> Any:
        """The memory that was asked for, once, for the whole message."""
        if receiving.made != [message.nbytes]:
            raise Breach("object", f"{words} asked for memory of {receiving.made} bytes")
        return receiving.request.buffer

    def differs(self, receiving: Receiving, data: bytearray, fitting: bytes, message: Message, words: str) -> None:
        """Another message, or this one damaged, or not all of it yet."""
        if data[: len(fitting)] == bytes([OVERWRITTEN]) * len(fitting):
            raise Breach("completion", f"{words} has what the sender's memory held after the send was complete")
        other = self.numbered(receiving, data)
        if other is not None and other is not message:
            self.explain(receiving, other)
        self.rank.linger()
        if receiving.data is not None and receiving.data[: len(fitting)] == fitting:
            raise Breach("completion", f"{words} was complete before all bytes were there")
        at = next(index for index in range(len(fitting)) if index >= len(data) or data[index] != fitting[index])
        raise Breach("delivery", f"{words} has other bytes from byte {at} on")

    def numbered(self, receiving: Receiving, data: bytearray | None = None) -> Message | None:
        """The message whose number the received bytes begin with."""
        if data is None:
            data = receiving.data if receiving.data is not None else cast("bytearray", receiving.request.buffer or bytearray())
        source, tag, *_ = receiving.request.result
        found = self.messages.get(int.from_bytes(data[:NUMBERED], "little")) if len(data) >= NUMBERED else None
        if found is not None and found.nbytes >= NUMBERED:
            return found
        # Too short for a number: the oldest one that the status speaks of.
        alike = [it for it in self.messages.values() if (it.receiver, it.source, it.tag) == (self.rank.rank, source, tag)]
        return next((it for it in alike if it.nbytes < NUMBERED and it.number not in self.received), None)

    def explain(self, receiving: Receiving, message: Message | None = None) -> None:
        """A receive has completed that the model knows of no message for, or of another one: what is wrong with it."""
        wish, expected = receiving.wish, receiving.wish.message
        source, tag, _, cancelled, _ = receiving.request.result
        words = f"{told(wish)}"
        message = message or self.numbered(receiving)
        if cancelled:
            raise Breach("cancel", f"{words} says that it was cancelled, which it was not")
        if message is None:
            raise Breach("match", f"{words} completed with source {source} and tag {tag}, where no message fits it")
        words += f" took {self.words(message)}"
        if message.channel != wish.channel:
            raise Breach("separate", words)
        if message.receiver != self.rank.rank or not wish.wants(message):
            raise Breach("match", words)
        if message.number in self.received:
            raise Breach("delivery", f"{words}, which had been received before")
        rightful = next((it for it in self.receiving if it.wish.message is message and it is not receiving), None)
        if rightful is not None and rightful.wish.number < wish.number:
            if expected is not None and expected.sender == message.sender and expected.number < message.number:
                raise Breach("order", f"{words}, and {self.words(expected)} was sent before it")
            raise Breach("posted", f"{words}, which {told(rightful.wish)} was posted for before")
        if any(message is it for messages in self.taken.values() for it in messages):
            raise Breach("mprobe", f"{words}, which a matched probe had taken out")
        if expected is not None and expected.sender == message.sender and expected.number < message.number:
            raise Breach("order", f"{words}, and {self.words(expected)} was sent before it")
        queues = self.queues[wish.channel, self.rank.rank]
        first = next((it for it in queues.unexpected if it.sender == message.sender and wish.wants(it)), None)
        if first is not None and first.number < message.number:
            raise Breach("order", f"{words}, and {self.words(first)} was sent before it")
        raise Breach("posted", words)

    # -- memory

    def content(self, message: Message) -> bytearray:
        """Its bytes, which no other message has; behind the number, for as many as there are."""
        rest = Random(f"{self.rank.wire.setting.seed} {message.number}").randbytes(max(0, message.nbytes - NUMBERED))
        return bytearray((message.number.to_bytes(NUMBERED, "little") + rest)[: message.nbytes])

    def background(self, room: int) -> bytes:
        return bytes([UNTOUCHED]) * room + bytes([GUARD]) * GUARDED

    def memory(self, room: int) -> bytearray:
        """Room for a message, and a guard behind it."""
        return bytearray(self.background(room))

    def keep(self, wish: Receive, data: bytearray) -> None:
        """The program has read it: from here on nobody writes there."""
        data[:] = bytes([READ]) * len(data)
        self.done.append((wish, data))

    def words(self, message: Message | None) -> str:
        if message is None:
            return "nothing"
        mode = "synchronous message" if message.synchronous else "message"
        where = f"from rank {message.sender} to {message.receiver} on communicator {message.channel}"
        return f"{mode} {message.number} ({message.nbytes} bytes, source {message.source}, tag {message.tag}, {where})"


def told(wish: Receive) -> str:
    """A receive in words."""
    who = "any source" if wish.source == ANY else f"source {wish.source}"
    what = "any tag" if wish.tag == ANY else f"tag {wish.tag}"
    return f"receive {wish.number} ({who}, {what}, room for {wish.room} bytes, communicator {wish.channel})"
