"""A rank over one BTL alone: no PML above it, and nothing of it needed to coordinate."""

from __future__ import annotations

import os
import queue
import random
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from traceback import format_exc
from typing import Any
from zlib import crc32

from ompy.core import progress
from ompy.core.group import set_this_process
from ompy.core.proc import Proc, process_table
from ompy.core.progress_source import register_source, unregister_source
from ompy.mca import discovery, loading, selection
from ompy.mca.btl import BACK_PRESSURE, FREE_TAGS, TAKEN, Btl, Descriptor, Endpoint, Receiver
from ompy.mca.component import Component
from ompy.mca.verdicts import record
from ompy.runtime import waiting
from ompy.runtime.modex import Modex
from ompy.testing.conformance.check import Breach, Check
from ompy.testing.conformance.content import content
from ompy.testing.conformance.wire import PROGRESS, SIGN, TRANSFER, Wire, WireRte

SIGN_INTERVAL = 0.5  # seconds between signs of life while events come
# Looks that find nothing until the core is given up for a moment each, and until it is for longer ones.
IDLE_POLLS, SILENT_POLLS = 20, 1000
NAP, LONG_NAP = 50e-6, 1e-3
SPOILT = 0xEE  # what memory is overwritten with as soon as it is the caller's again
AFTERTHOUGHTS = 30  # looks for what should not come

# Exceptions by which a transport may try to say that it is full.
REFUSALS = (OSError, BufferError, MemoryError, queue.Full)

# (target, tag, data) of each message that a rank sends.
Plan = Sequence[tuple[int, int, bytes]]


class Sending:
    """What became of one descriptor; called as its completion."""

    def __init__(self, owner: BtlRank, spoil: Callable[[], object] | None) -> None:
        self.owner = owner
        self.spoil = spoil
        self.calls = 0
        self.status = 0

    def __call__(self, descriptor: Descriptor, status: int) -> None:
        self.calls += 1
        self.status = status
        self.owner.flying.pop(descriptor, None)
        if self.calls > 1:
            self.owner.breaches.append(Breach("completion", f"the callback of one descriptor ran {self.calls} times"))
        if status != 0 and not self.owner.may_fail:
            words = f"its callback was given status {status} for a transfer that nothing kept from succeeding"
            self.owner.breaches.append(Breach("completion", words))
        # The memory is the caller's again: a transport that still reads it sends this instead.
        if descriptor.length:
            descriptor.view[:] = bytes([SPOILT]) * descriptor.length
        if descriptor.local_handle is not None:
            self.owner.btl.release_mem(descriptor.local_handle)
        if self.spoil is not None:
            self.spoil()


class Arrival:
    """A message as its receiver was handed it."""

    __slots__ = ("data", "source", "tag")

    def __init__(self, source: int | None, tag: int, data: bytes) -> None:
        self.source = source
        self.tag = tag
        self.data = data


class Mailbox(Receiver):
    """Keeps the messages of one tag."""

    def __init__(self, owner: BtlRank, tag: int) -> None:
        self.owner = owner
        self.tag = tag

    def receive(self, btl: Btl, endpoint: Endpoint | None, data: memoryview) -> int:
        self.owner.take(Arrival(None if endpoint is None else endpoint.proc.rank, self.tag, bytes(data)), endpoint, data)
        return 0


class BtlRank:
    """One process of a job, its transport, and what it has sent and received.

    Attributes:
        begun: when this process was made, in seconds as of `time.time`.
        btl: the module under test.
        address: what the transport gave to be published.
        peers: endpoints of the ranks that it reaches, by rank; none before `reach_all`.
        sources: the ranks that reach this one.
        arrived: messages since `begin`.
        react: called in the receiver with each arrival and the view that it was made from.
        may_fail: a peer has taken its memory back, or `bereaved`, so that transfers may fail.
        bereaved: a peer is dead, or about to be.
        reported: (rank, error) of what `register_error`'s function was told.
    """

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.rank, self.size = wire.rank, wire.setting.size
        self.options = wire.setting.options
        self.patience = wire.setting.patience
        self.random = random.Random(wire.setting.seed + wire.rank)
        self.begun = time.time() - 1  # a file's times are a little behind
        self.examined = "open"
        self.sole = ""
        self.last_sign = 0.0
        self.arrived: list[Arrival] = []
        self.flying: dict[Descriptor, Sending] = {}
        self.breaches: list[Breach] = []
        self.refused: set[int] = set()  # checksums of messages
        self.may_fail = self.bereaved = False
        self.open()

    # -- clauses

    @property
    def clause(self) -> str:
        """The clause that is being examined: the kit is told, so that even silence breaks a clause with a name."""
        return self.examined

    @clause.setter
    def clause(self, name: str) -> None:
        name = self.sole or name
        if name != self.examined:
            self.examined = name
            self.wire.say(SIGN, name)

    def alive(self) -> None:
        """A sign of life, for what takes long without an event."""
        self.wire.say(SIGN, self.examined)

    def begin(self, check: Check) -> None:
        """Before a check: nothing of an earlier one may be left over."""
        self.sole = check.clauses[0] if check.sole else ""
        self.clause = check.clauses[0]
        self.react: Callable[[Arrival, Endpoint | None, memoryview], object] | None = None
        self.complain()
        if self.arrived:
            stray = self.arrived[0]
            raise Breach("delivery", f"{shown(stray.data)} arrived after its check: it was delivered twice, or very late")
        if not check.unmet and not self.peers:
            self.reach_all()
        self.meet()  # whoever is quicker must not send before all have looked

    def complain(self) -> None:
        """Raise what was found in a receiver or a callback, where raising would have gone through the transport."""
        if self.breaches:
            raise self.breaches[0]

    # -- beginning and end

    def open(self) -> None:
        """Bring the transport up as a rank of an MPI program does."""
        name = self.wire.setting.component
        self.rte = WireRte(self.wire)
        record.rte = self.rte
        selection.chosen_modules["rte"] = [self.rte]
        loading.check_parameters()
        selection.load_watchers()
        waiting.configure(self.rte)
        self.modex = Modex(self.rte)
        set_this_process(self.rank)
        process_table().clear()
        process_table().extend(self.size)
        process_table().set_resolver(self.modex.proc)
        self.modules: list[Btl] = selection.select("btl")
        self.btl = self.modules[0]
        self.component: Component = loading.load(discovery.installed()["btl"][name]).component
        self.address = self.btl.address()
        for module in self.modules:
            self.modex.card |= module.cards()
        self.modex.publish()
        self.procs: list[Proc] = [process_table().get(rank) for rank in range(self.size)]
        self.reported: list[tuple[int, BaseException]] = []
        for tag in FREE_TAGS:
            self.btl.register(tag, Mailbox(self, tag))
        self.btl.register_error(lambda btl, proc, error: self.reported.append((proc.rank, error)))
        for module in self.modules:
            register_source(module)
        self.peers: dict[int, Endpoint] = {}
        self.sources: list[int] = []

    def bereave(self) -> None:
        """A peer is about to die: transfers may fail from now on."""
        self.bereaved = self.may_fail = True

    def close(self) -> None:
        """Leave as a rank of an MPI program does: after all have met."""
        self.meet()
        self.leave()

    def leave(self) -> None:
        """Leave, without a trace."""
        for module in self.modules:
            unregister_source(module)
        self.btl.del_procs(list(self.peers.values()))
        for module in self.modules:
            module.finalize()
        progress.shutdown()
        selection.forget()
        self.peers = {}
        del self.btl, self.modules, self.procs

    def reach_all(self) -> None:
        """Meet every peer; all ranks do it at once."""
        clause, self.clause = self.clause, "reach"
        answers = self.btl.add_procs(self.procs)
        self.peers = {rank: answer for rank, answer in enumerate(answers) if isinstance(answer, Endpoint)}
        if not self.peers:
            raise Breach("reach", f"add_procs reaches no process at all: {answers}")
        reached = self.exchange(list(self.peers))
        self.sources = [rank for rank, targets in enumerate(reached) if self.rank in targets]
        self.clause = clause

    # -- going on

    def progress(self) -> int:
        """One call of the transport's `progress`; returns its number of events."""
        with self.wire.calling(PROGRESS):
            events = self.btl.progress()
        if not isinstance(events, int) or events < 0:
            raise Breach("progress", f"progress returned {events!r}, not a number of events")
        self.complain()
        return events

    def poll(self) -> int:
        """The transport's `progress`, and a round of the engine, where what serves the transport may be registered."""
        events = self.progress()
        with self.wire.calling(PROGRESS):
            events += progress.progress_once()
        self.complain()
        if events:
            self.idle = 0
            now = time.monotonic()
            self.last_event = now
            if now - self.last_sign > SIGN_INTERVAL:
                self.last_sign = now
                self.alive()
        return events

    idle = 0
    last_event = 0.0

    def step(self) -> None:
        """Poll, and give the core up for a moment when there has been nothing for a while."""
        if not self.poll():
            self.idle += 1
            if self.idle > IDLE_POLLS:
                for module in self.modules:
                    module.may_sleep()  # where transports look whether their peers are alive
                time.sleep(NAP if self.idle < SILENT_POLLS else LONG_NAP)
            else:
                os.sched_yield()

    def until(self, condition: Callable[[], object], words: Callable[[], str] | str, own: bool = False) -> None:
        """Progress until the condition holds; a breach of `clause` when nothing happens for too long.

        Parameters:
            own: that it does not hold can only be this rank's transport's doing, and no peer's.
        """
        self.last_event = time.monotonic()
        while not condition():
            self.step()
            if time.monotonic() - self.last_event > self.patience:
                told = words if isinstance(words, str) else words()
                raise Breach(self.examined, f"{told}; nothing happened for {self.patience:g} s", symptom=not own)

    def receive(self, count: int) -> None:
        """Until so many messages have arrived since the check began."""
        self.until(lambda: len(self.arrived) >= count, lambda: f"{len(self.arrived)} of {count} messages arrived")

    def exchange(self, value: object) -> list[Any]:
        """Every rank's value, out of band; the transport goes on meanwhile."""
        return self.wire.exchange(value, self.step)

    def meet(self) -> None:
        self.exchange(None)

    # -- messages

    def content(self, source: int, target: int, number: int, size: int) -> bytes:
        """The bytes of one message: the same for whoever asks, and different from every other's."""
        return content(self.wire.setting.seed, source, target, number, size)

    def common_random(self, purpose: str) -> random.Random:
        """A generator in the same state on every rank."""
        return random.Random(f"{self.wire.setting.seed} {purpose}")

    def post(self, peer: int, data: bytes | bytearray, tag: int = FREE_TAGS[0], header_size: int = -1) -> None:
        """`sendi`, again and again while the transport has no room; all is header, or what follows so many bytes is payload."""

        def taken() -> bool:
            with self.wire.calling(TRANSFER):
                return self.btl.post(self.peers[peer], data, tag, header_size) != BACK_PRESSURE

        self.insisting(taken)

    def take(self, arrival: Arrival, endpoint: Endpoint | None, view: memoryview) -> None:
        self.arrived.append(arrival)
        if self.wire.call == TRANSFER:
            self.breaches.append(Breach("nesting", "a receiver was called from within `send`, `put` or `get`"))
        if self.react is not None:
            try:
                self.react(arrival, endpoint, view)
            except Breach as breach:
                self.breaches.append(breach)

    def allocate(self, peer: int, size: int) -> Descriptor | None:
        """`alloc`, and a look at what it gives."""
        with self.wire.calling(TRANSFER):
            descriptor = self.btl.alloc(self.peers[peer], size)
        if descriptor is None:
            return None
        if not isinstance(descriptor, Descriptor) or descriptor.length != size or len(descriptor.view) != size:
            raise Breach("size", f"alloc of {size} bytes gave {descriptor!r} with room for {getattr(descriptor, 'length', 0)}")
        if descriptor in self.flying:
            raise Breach("ownership", "alloc gave a descriptor that is still on its way")
        return descriptor

    def start(self, peer: int, data: bytes, tag: int = FREE_TAGS[0]) -> Sending | None:
        """One `send` of bytes in a descriptor; None when there was no room for it."""
        descriptor = self.allocate(peer, len(data))
        if descriptor is None:
            return None
        descriptor.view[:] = data
        return self.launch(peer, descriptor, tag)

    def launch(self, peer: int, descriptor: Descriptor, tag: int, spoil: Callable[[], object] | None = None) -> Sending | None:
        """One `send`; None when it was refused, and the descriptor then goes back."""
        return self.issue(descriptor, lambda: self.btl.send(self.peers[peer], descriptor, tag), spoil)

    def issue(
        self, descriptor: Descriptor, call: Callable[[], int], spoil: Callable[[], object] | None = None
    ) -> Sending | None:
        """A `send`, `put` or `get`, with its callback watched."""
        sending = Sending(self, spoil)
        descriptor.context = sending
        descriptor.in_flight = True
        self.flying[descriptor] = sending
        try:
            with self.wire.calling(TRANSFER):
                answer = call()
        except REFUSALS:
            clause = "broken peer" if self.bereaved else "back-pressure"
            raise Breach(clause, f"an exception that is no MPIError\n{format_exc()}") from None
        if answer == BACK_PRESSURE and (sending.calls or not descriptor.in_flight):
            raise Breach("back-pressure", "the call was refused, and the callback ran all the same")
        self.complain()
        if answer == TAKEN:
            return sending
        if answer != BACK_PRESSURE:
            raise Breach("back-pressure", f"the answer was {answer!r}, neither TAKEN nor BACK_PRESSURE")
        del self.flying[descriptor]
        descriptor.in_flight = False
        if descriptor.local_handle is not None:
            self.btl.release_mem(descriptor.local_handle)
        self.refused.add(crc32(descriptor.payload_view, crc32(descriptor.view)))
        self.btl.free(descriptor)
        return None

    def send(self, peer: int, data: bytes, tag: int = FREE_TAGS[0]) -> Sending:
        """Send, again and again while the transport has no room."""
        return self.insist(lambda: self.start(peer, data, tag))

    def insist(self, attempt: Callable[[], Sending | None]) -> Sending:
        """Attempt until it is taken; the last attempt's Sending."""
        taken: list[Sending] = []

        def tried() -> bool:
            if sending := attempt():
                taken.append(sending)
            return bool(taken)

        self.insisting(tried)
        return taken[0]

    def insisting(self, tried: Callable[[], bool]) -> None:
        """Try until it is done."""
        if not tried():
            clause, self.clause = self.clause, "back-pressure"
            self.until(tried, "the transport had no room, while every peer made progress", own=True)
            self.clause = clause

    def land(self, what: str = "messages") -> None:
        """Until every callback has run."""
        clause, self.clause = self.clause, "completion"
        self.until(lambda: not self.flying, lambda: f"{what}: {len(self.flying)} callbacks did not run", own=True)
        self.clause = clause

    def afterthoughts(self) -> None:
        """Time for what should not come, after all have met; what comes from the next `meet` on is something else."""
        self.meet()
        for _ in range(AFTERTHOUGHTS):
            self.poll()

    def transfer(
        self,
        plan: Callable[[int], Plan],
        send: Callable[[int, bytes, int], object] | None = None,
        ordered: bool = False,
    ) -> None:
        """Every rank sends what `plan` says of it; then each compares what it got with what the plan says of its peers.

        What is wrong breaks the clause that is being examined.
        """
        clause = self.clause
        self.meet()
        for target, tag, data in plan(self.rank):
            if target in self.peers:
                (send or self.send)(target, data, tag)
        expected = [
            Arrival(source, tag, data) for source in self.sources for target, tag, data in plan(source) if target == self.rank
        ]
        self.clause = clause
        self.until(lambda: len(self.arrived) >= len(expected), lambda: self.judge(expected) or "messages are missing")
        refused = set().union(*self.exchange(self.refused))
        self.refused.clear()
        self.land()
        self.afterthoughts()
        self.clause = clause
        if problem := self.judge(expected, ordered, refused):
            raise Breach(clause, problem)
        self.arrived.clear()

    def judge(self, expected: Sequence[Arrival], ordered: bool = False, refused: Collection[int] = ()) -> str:
        """What is wrong with what has arrived, in words; a Breach where that is the matter of another clause.

        Parameters:
            expected: what the peers have sent.
            ordered: what one peer sent must come in its order.
            refused: checksums of messages that were refused before they were taken.
        """
        missing = Counter((it.tag, it.data) for it in expected)
        surplus = Counter((it.tag, it.data) for it in self.arrived)
        missing, surplus = missing - surplus, surplus - missing
        # One that was never refused can only have been delivered twice.
        if surplus and all(crc32(data) in refused for _, data in surplus):
            raise Breach("back-pressure", "a message arrived twice: it was refused, and yet it was taken")
        if missing or surplus:
            return difference(
                [data for _, data in missing.elements()], [data for _, data in surplus.elements()], missing, surplus
            )
        for source in self.sources:
            sent = Counter((it.tag, it.data) for it in expected if it.source == source)
            seen = Counter((it.tag, it.data) for it in self.arrived if it.source == source)
            if sent != seen:
                whom = {it.source for it in self.arrived if sent[it.tag, it.data]} - {source}
                raise Breach("sender", f"messages of rank {source} came with the endpoint of {sorted(map(str, whom))}")
            if ordered:
                for number, (one, other) in enumerate(
                    zip(
                        [it for it in expected if it.source == source],
                        [it for it in self.arrived if it.source == source],
                        strict=True,
                    )
                ):
                    if (one.tag, one.data) != (other.tag, other.data):
                        return f"message {number} from rank {source} was overtaken"
        return ""


def shown(data: bytes) -> str:
    return f"a message of {len(data)} bytes ({data[:8].hex()}{'...' if len(data) > 8 else ''})"


def altered(sent: bytes, got: bytes) -> str:
    """How a message has become another one; empty when that does not look like it.

    Raises Breach when it was read too late, from memory that was the caller's again.
    """
    if got[-16:] == bytes([SPOILT]) * 16:
        raise Breach("ownership", f"what arrived as {len(got)} bytes was read after the callback, from memory of the caller's")
    if len(got) < len(sent) and sent.startswith(got):
        return f"a message of {len(sent)} bytes arrived without its last {len(sent) - len(got)}"
    if len(got) > len(sent) and got.startswith(sent):
        return f"a message of {len(sent)} bytes arrived with {len(got) - len(sent)} more behind it"
    places = [index for index, (one, other) in enumerate(zip(sent, got, strict=False)) if one != other]
    if len(got) == len(sent) and places and 2 * len(places) < len(sent):
        return f"a message of {len(sent)} bytes arrived changed, from byte {places[0]} on"
    return ""


def difference(lost: Sequence[bytes], extra: Sequence[bytes], missing: Counter[Any], surplus: Counter[Any]) -> str:
    """How what arrived differs from what was sent, of the first message that does."""
    tags = {data: tag for tag, data in missing}
    for tag, data in surplus:
        if data in tags:
            raise Breach("tag", f"{shown(data)} sent with tag {tags[data]} went to the receiver of tag {tag}")
    for data in extra:
        for sent in lost:
            if problem := altered(sent, data):
                return problem
    if lost and extra:
        return f"{shown(extra[0])} arrived, which nobody sent, and {shown(lost[0])} did not"
    if lost:
        return f"{len(lost)} messages did not arrive; one: {shown(lost[0])}"
    return f"{shown(extra[0])} arrived more often than it was sent"
