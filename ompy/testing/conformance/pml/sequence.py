"""Random sequences of sends, receives, probes and cancels, which every rank draws alike and holds against the model.

Of each step one rank is the actor.  After it all ranks go on until what the model foresees has happened, and see that nothing
else has; so it is known at each moment which messages have come, and a later step depends on nothing but the model:

    rank 0               rank 1               the model of rank 1
    post (any, 5)                             posted:  (any, 5)
                         send tag 5 to 0      taken:   by (any, 5), whose request is to complete now
                         send tag 7 to 0      waits:   a probe is to see it now
    probe (1, any)                            tag 7, and nothing else
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from ompy.testing.conformance.check import Breach
from ompy.testing.conformance.pml.account import OVERWRITTEN, READ, Account, Receiving, told
from ompy.testing.conformance.pml.model import ANY, Message, Queues, Receive
from ompy.testing.conformance.pml.rank import READY, STANDARD, SYNCHRONOUS, Channel, PmlRank

if TYPE_CHECKING:
    from ompy.core.request import Request

TAGS = (0, 1, 2, 1 << 20)
INTERNAL = -20  # a tag of the library's
LENGTHS = (0, 1, 8, 64, 65, 500, 1500, 4000)


@dataclass(eq=False)
class Sending:
    """A send of this rank's that is not known to be complete."""

    message: Message
    request: Request | None  # None: a blocking send was over at once
    data: bytearray

    @property
    def complete(self) -> bool:
        return self.request is None or self.request.complete


@dataclass(eq=False)
class Taken:
    """A message that a matched probe took out at this rank."""

    message: Message
    handle: Any


class Sequence(Account):
    """One sequence.

    Parameters:
        rank: this one.
        channels: communicators to use.
        shared: in the same state on every rank.
        lengths: of messages, in bytes.
        bursts: how many of them are sent in a step.
    """

    def __init__(
        self,
        rank: PmlRank,
        channels: list[Channel],
        shared: Random,
        lengths: tuple[int, ...] = LENGTHS,
        bursts: tuple[int, ...] = (1, 1, 2, 5),
    ) -> None:
        super().__init__(rank, channels, max(lengths))
        self.shared = shared
        self.lengths = lengths
        self.bursts = bursts
        self.numbers = 0
        self.sending: list[Sending] = []
        self.held: dict[int, Taken] = {}  # this rank's, by the message's number

    # -- drawing

    def draw_actor(self) -> tuple[Channel, int, list[int]]:
        """A communicator, one of its ranks, and whom it exchanges messages with there."""
        channel = self.shared.choice(self.channels)
        actor = self.shared.choice(sorted({*channel.sides[0], *channel.sides[1]}))
        return channel, actor, channel.peers(actor)

    def draw_wish(self, channel: Channel, receiver: int) -> tuple[int, int]:
        """Source and tag, wildcards among them; often what is there."""
        peers = channel.peers(receiver)
        here = self.queue(channel, receiver).unexpected
        source, tag = self.shared.randrange(len(peers)), self.shared.choice(TAGS)
        if here and self.shared.random() < 0.6:
            likely = self.shared.choice(here)
            source, tag = likely.source, likely.tag
        elif self.shared.random() < 0.05:
            tag = INTERNAL
        wild = self.shared.random()
        return (ANY if wild < 0.35 else source), (ANY if tag >= 0 and 0.2 < wild < 0.55 else tag)

    # -- steps

    def run(self, steps: int) -> None:
        """So many steps, then receive what is left."""
        kinds = [self.send] * 7 + [self.receive] * 6 + [self.probe] * 3 + [self.take_out] * 2 + [self.receive_taken] * 2
        kinds += [self.cancel]
        for _ in range(steps):
            self.shared.choice(kinds)()
            self.settle()
            self.rank.alive()
        self.drain()

    def send(self) -> None:
        """A burst from one rank to another one, or itself."""
        rank, shared = self.rank, self.shared
        channel, sender, peers = self.draw_actor()
        receiver = shared.choice(peers)
        queues = self.queue(channel, receiver)
        source = channel.peers(receiver).index(sender)
        for _ in range(shared.choice(self.bursts)):
            self.numbers += 1
            tag = INTERNAL if shared.random() < 0.08 else shared.choice(TAGS)
            mode = shared.choice((STANDARD, STANDARD, STANDARD, SYNCHRONOUS, READY))
            nbytes, form = shared.choice(self.lengths), shared.choice(("now", "now", "persistent", "blocking"))
            message = Message(self.numbers, channel.index, sender, receiver, source, tag, nbytes, mode == SYNCHRONOUS)
            self.messages[message.number] = message
            wanted = queues.come(message) is not None
            if mode == READY and not wanted:
                mode = STANDARD
            if rank.rank == sender:
                self.start_send(channel, message, peers.index(receiver), mode, form)

    def start_send(self, channel: Channel, message: Message, dest: int, mode: int, form: str) -> None:
        rank, data = self.rank, self.content(message)
        assert channel.core is not None
        request: Request | None
        if form == "persistent":
            request = rank.isend_init(data, dest, message.tag, mode, channel.core)
            request.start()
        elif form == "blocking":
            request = rank.send(data, dest, message.tag, mode, channel.core)
        else:
            request = rank.isend(data, dest, message.tag, mode, channel.core)
        self.sending.append(Sending(message, request, data))
        if self.sending[-1].complete and not message.synchronous:
            self.finish_send(self.sending[-1])

    def receive(self) -> None:
        """A few receives are posted by one rank."""
        shared = self.shared
        channel, receiver, _ = self.draw_actor()
        queues = self.queue(channel, receiver)
        wishes = []
        for _ in range(shared.choice((1, 1, 3))):
            source, tag = self.draw_wish(channel, receiver)
            self.numbers += 1
            room = shared.choice((self.longest,) * 5 + (100, 8, 0, -1, -1))
            form = "object" if room < 0 else shared.choice(("now", "now", "persistent"))
            wishes.append((Receive(self.numbers, channel.index, receiver, source, tag, room), form))
        posted: list[Receiving] = []
        if self.rank.rank == receiver:
            posted = [self.post(channel, wish, form) for wish, form in wishes]
            self.receiving += posted
        # Who of several senders was taken by a wildcard is for the receiver to say.
        ambiguous = self.follow(queues, [wish for wish, _ in wishes], posted)
        said = self.rank.meet(ambiguous)[receiver] if self.is_ambiguous(queues, [wish for wish, _ in wishes]) else []
        for wish, _ in wishes:
            candidates = queues.candidates(wish.source, wish.tag)
            chosen = candidates[0] if len(candidates) == 1 else None
            if len(candidates) > 1:
                number = said.pop(0)
                chosen = next(message for message in candidates if message.number == number)
            if chosen is None:
                queues.posted.append(wish)
            else:
                queues.take(chosen, wish)

    def is_ambiguous(self, queues: Queues, wishes: list[Receive]) -> bool:
        """Whether messages of several senders could be taken by one of the wishes; the same on every rank."""
        return any(len(queues.candidates(wish.source, wish.tag)) > 1 for wish in wishes)

    def follow(self, queues: Queues, wishes: list[Receive], posted: list[Receiving]) -> list[int]:
        """The numbers of the messages that were taken where several could have been; on the receiver alone."""
        if not posted or not self.is_ambiguous(queues, wishes):
            return []
        left = Queues(list(queues.posted), list(queues.unexpected))
        found = []
        for wish, receiving in zip(wishes, posted, strict=True):
            candidates = left.candidates(wish.source, wish.tag)
            if len(candidates) == 1:
                left.take(candidates[0])
            elif candidates:
                self.wait_for(receiving, "delivery", f"{told(wish)}, which messages of {len(candidates)} senders fit,", posted)
                chosen = self.identify(receiving, candidates)
                left.take(chosen)
                found.append(chosen.number)
        return found

    def post(self, channel: Channel, wish: Receive, form: str) -> Receiving:
        rank = self.rank
        assert channel.core is not None
        if form == "object":
            made: list[int] = []

            def allocate(nbytes: int) -> bytearray:
                made.append(nbytes)
                return bytearray(nbytes)

            request = rank.pml.irecv_object(allocate, wish.source, wish.tag, channel.core)
            return Receiving(wish, request, None, made)
        data = self.memory(wish.room)
        if form == "persistent":
            request = rank.irecv_init(data, wish.room, wish.source, wish.tag, channel.core)
            request.start()
        else:
            request = rank.irecv(data, wish.room, wish.source, wish.tag, channel.core)
        return Receiving(wish, request, data)

    def probe(self) -> None:
        """One rank asks a few times what there is."""
        channel, receiver, _ = self.draw_actor()
        for _ in range(3):
            source, tag = self.draw_wish(channel, receiver)
            if receiver == self.rank.rank and tag != INTERNAL:
                self.look(channel, source, tag)

    def look(self, channel: Channel, source: int, tag: int) -> None:
        """A probe without waiting, held against the model."""
        self.rank.clause = "probe"
        candidates = self.queue(channel, self.rank.rank).candidates(source, tag)
        status = self.rank.MPI.Status()
        found = channel.handle.Iprobe(source, tag, status)
        words = f"a probe for source {source} and tag {tag} on communicator {channel.index}"
        if not found and candidates:
            raise Breach("probe", f"{words} sees nothing, and {len(candidates)} messages that fit have come")
        if not found:
            return
        seen = (status.source, status.tag, status.Get_count(self.rank.MPI.BYTE))
        possible = [(message.source, message.tag, message.nbytes) for message in candidates]
        if seen in possible:
            return
        words += f" tells (source, tag, bytes) {seen}"
        if seen[1] < 0 and tag == ANY:
            raise Breach("match", f"{words}: tags below zero are the library's, and no wildcard takes them")
        for other, receiver, queues in self.everything():
            there = [(it.source, it.tag, it.nbytes) for it in queues.unexpected]
            if receiver == self.rank.rank and other is not channel and seen in there:
                raise Breach("separate", f"{words}, which is a message on communicator {other.index}")
        if not candidates:
            known = [it for it in self.messages.values() if it.channel == channel.index and it.number in self.received]
            if seen in [(it.source, it.tag, it.nbytes) for it in known] and self.would_take(channel, source, tag) == seen:
                raise Breach("delivery", f"{words}, which has been received, and can be received again")
            raise Breach("probe", f"{words}, and there is no such message")
        # Does the probe lie, or has a receive the wrong message too?
        clause = "probe" if self.would_take(channel, source, tag) != seen else "order"
        if clause == "order" and (
            (source, tag) not in ((ANY, ANY), (seen[0], ANY), (ANY, seen[1]), seen[:2]) or seen[1] < 0 > tag
        ):
            clause = "match"
        raise Breach(clause, f"{words}; {possible} is what a receive is to take")

    def take_in_time(self, channel: Channel, source: int, tag: int) -> Any:
        """A matched probe for a message of a tag of the library's, of which no probe has told that it is here."""
        found: list[Any] = []
        core = channel.core
        assert core is not None

        def is_here() -> bool:
            handle = self.rank.pml.improbe(source, tag, core)
            if handle is not None:
                found.append(handle)
            return bool(found)

        self.rank.until(is_here)
        return found[0] if found else None

    def take_out(self) -> None:
        """A matched probe."""
        channel, receiver, _ = self.draw_actor()
        source, tag = self.draw_wish(channel, receiver)
        queues = self.queue(channel, receiver)
        candidates = queues.candidates(source, tag)
        number = 0
        if receiver == self.rank.rank:
            self.rank.clause = "mprobe"
            assert channel.core is not None
            handle = self.rank.pml.improbe(source, tag, channel.core)
            if handle is None and candidates and not candidates[0].exposed:
                handle = self.take_in_time(channel, source, tag)
            words = f"a matched probe for source {source} and tag {tag} on communicator {channel.index}"
            if handle is None and candidates:
                raise Breach("mprobe", f"{words} finds nothing, and a message that fits has come")
            if handle is not None and not candidates:
                receiving = self.receive_handle(handle, channel)
                again = self.rank.until(lambda: receiving.request.complete) and self.numbered(receiving)
                if again and again.number in self.received:
                    raise Breach("delivery", f"{words} takes {self.words(again)} out, which had been received before")
                if again and again.channel != channel.index:
                    raise Breach("separate", f"{words} takes {self.words(again)} out, sent on communicator {again.channel}")
                if again and again.tag < 0 and tag == ANY:
                    raise Breach("match", f"{words} takes {self.words(again)} out, whose tag is the library's own")
                raise Breach("mprobe", f"{words} takes a message out, and there is none")
            if handle is not None:
                # Which one it is, is known when it is received; where several senders' could be, that is now.  So is a
                # synchronous one: whether its send is complete with the probe or with the receive, MPI leaves open.
                message = candidates[0]
                if self.at_once(candidates):
                    receiving = self.receive_handle(handle, channel)
                    self.wait_for(receiving, "mprobe", words)
                    message = self.identify(receiving, candidates)
                    receiving.wish.message = message
                    self.receiving.append(receiving)
                else:
                    self.held[message.number] = Taken(message, handle)
                number = message.number
        if not candidates:
            return
        message = self.messages[self.rank.meet(number)[receiver]]
        queues.take(message)
        alike = [it for it in queues.unexpected if (it.sender, it.tag) == (message.sender, message.tag)]
        if receiver == self.rank.rank and message.tag >= 0 and not alike:
            status = self.rank.MPI.Status()
            if channel.handle.Iprobe(message.source, message.tag, status):
                clause = "mprobe" if (status.source, status.tag) == (message.source, message.tag) else "probe"
                raise Breach(clause, f"{self.words(message)} was taken out, and a probe for it still sees one")
        if self.at_once(candidates):
            self.received.add(message.number)
        else:
            self.taken.setdefault((channel.index, receiver), []).append(message)

    @staticmethod
    def at_once(candidates: list[Message]) -> bool:
        """Whether a message that is taken out is received in the same step."""
        return len(candidates) > 1 or candidates[0].synchronous

    def receive_handle(self, handle: Any, channel: Channel) -> Receiving:
        """Receive what was taken out."""
        room = self.longest
        wish = Receive(0, channel.index, self.rank.rank, ANY, ANY, room)
        data = self.memory(room)
        return Receiving(wish, self.rank.imrecv(data, room, handle), data)

    def receive_taken(self) -> None:
        """One of the messages that were taken out is received; not the oldest one either."""
        places = sorted(place for place, messages in self.taken.items() if messages)
        if not places:
            return
        index, receiver = place = self.shared.choice(places)
        message = self.shared.choice(self.taken[place])
        self.taken[place].remove(message)
        self.received.add(message.number)
        if receiver == self.rank.rank:
            receiving = self.receive_handle(self.held.pop(message.number).handle, self.channels[index])
            receiving.wish.message = message
            self.receiving.append(receiving)

    def cancel(self) -> None:
        """A posted receive is taken back."""
        places = [(channel, receiver, queues) for channel, receiver, queues in self.everything() if queues.posted]
        if not places:
            return
        _, receiver, queues = self.shared.choice(places)
        wish = self.shared.choice(queues.posted)
        queues.posted.remove(wish)
        if receiver != self.rank.rank:
            return
        self.rank.clause = "cancel"
        receiving = next(it for it in self.receiving if it.wish is wish)
        receiving.request.cancel()
        if not self.rank.until(lambda: receiving.request.complete):
            raise Breach("cancel", f"{told(wish)} was cancelled, and does not complete")
        if not receiving.request.result[3]:
            raise Breach("cancel", f"{told(wish)} was cancelled before any message fitted it, and is said not to be")
        self.cancelled.append(wish)
        self.receiving.remove(receiving)
        receiving.request.release()
        if receiving.data is not None:
            self.keep(wish, receiving.data)

    # -- what the model foresees comes true

    def settle(self) -> None:
        """Receives that have their message complete with it, and what waits is seen; then the sends that were received."""
        rank = self.rank
        for receiving in [it for it in self.receiving if it.wish.message is not None]:
            self.wait_for(receiving, "delivery", f"{told(receiving.wish)}, which {self.words(receiving.wish.message)} fits,")
            self.judge(receiving)
        for receiving in self.receiving:
            if receiving.request.complete:
                self.explain(receiving)
        for channel, receiver, queues in self.everything():
            for message in queues.unexpected:
                if receiver == rank.rank and not message.exposed and message.tag >= 0:
                    self.expose(channel, queues, message)
        outstanding = {message.number for _, _, queues in self.everything() for message in queues.unexpected}
        outstanding |= {message.number for messages in self.taken.values() for message in messages}
        # Before anybody goes on to the next step, which may be to receive one of them.
        for send in self.sending:
            if send.message.number in outstanding and send.message.synchronous and send.complete:
                raise Breach("synchronous", f"{self.words(send.message)} is complete, and no receive was matched with it")
        rank.meet()
        for send in list(self.sending):
            if send.message.number in outstanding:
                if not send.complete:
                    continue
            elif not rank.until(lambda send=send: send.complete):  # type: ignore[misc]
                clause = "synchronous" if send.message.synchronous else "completion"
                raise Breach(clause, f"{self.words(send.message)} was received, and its send does not complete")
            self.finish_send(send)

    def finish_send(self, send: Sending) -> None:
        """From here on the program may do with the memory what it likes."""
        self.sending.remove(send)
        send.data[:] = bytes([OVERWRITTEN]) * len(send.data)
        if send.request is not None:
            if send.request.error is not None:
                raise Breach("delivery", f"{self.words(send.message)} failed: {send.request.error}")
            send.request.release()

    def drain(self) -> None:
        """Receive what waits, cancel what waits, and see that nobody has touched what was received."""
        while any(messages for messages in self.taken.values()):
            self.receive_taken()
        self.settle()
        for channel, receiver, queues in list(self.everything()):
            for message in list(queues.unexpected):
                self.numbers += 1
                wish = Receive(self.numbers, channel.index, receiver, message.source, message.tag, self.longest)
                if receiver == self.rank.rank:
                    self.receiving.append(self.post(channel, wish, "now"))
                queues.take(message, wish)
        self.settle()
        while any(queues.posted for _, _, queues in self.everything()):
            self.cancel()
        self.settle()
        self.rank.linger()
        for wish, data in self.done:
            if data != bytes([READ]) * len(data):
                raise Breach("completion", f"{told(wish)} was complete, and something was written into its memory later")
        self.rank.alive()

    # -- memory
