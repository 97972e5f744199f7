"""A message from one rank to another, in every mode, received in every way (MPI-4.1, chapter 3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ompy.testing.fuzz import layouts
from ompy.testing.fuzz.layouts import Layout
from ompy.testing.fuzz.program import Action, Program

if TYPE_CHECKING:
    from ompy.testing.fuzz.generator import Composer, Plot

LOCAL = ("isend", "issend", "ibsend", "bsend", "send_init", "ssend_init", "bsend_init")
BLOCKING = ("send", "ssend", "rsend", "irsend")
# Receives that can be posted before the message is sent, and those that wait for it at once.
POSTED = ("irecv", "irecv", "recv_init")
IMMEDIATE = ("recv", "recv", "probe", "iprobe", "mprobe", "improbe")
TAGS = 4
MOST_BUFFERED = 200_000


def communicator_of(number: int) -> str:
    """The variable of a communicator."""
    return "comm" if number < 0 else f"c{number}"


@dataclass
class Message(Action):
    """One message.

    Attributes:
        communicator: an action that made one, or -1.
        source, dest: ranks of the world.
        tag, size: size in bytes.
        mode: how it is sent, a call of MPI in small letters.
        form: how it is received.
        wild: received with any tag.
        slack: bytes of the receive beyond the message's.
        sender, receiver: datatypes of both sides; None: contiguous bytes.
    """

    kind = "message"

    communicator: int
    source: int
    dest: int
    tag: int
    size: int
    mode: str
    form: str
    wild: bool = False
    slack: int = 0
    sender: Layout | None = None
    receiver: Layout | None = None

    def __post_init__(self) -> None:
        self.sender, self.receiver = Layout.of(self.sender), Layout.of(self.receiver)

    @classmethod
    def plot(cls, composer: Composer, lane: int) -> Plot:
        rng = composer.rng
        communicator = composer.communicator(lane)
        members = composer.program.group(communicator)
        source, dest = rng.choice(members), rng.choice(members)
        tag = rng.randrange(TAGS)
        channel = composer.channel(lane, communicator, source, dest)
        orders = ["send"] * channel.may_send_first(tag) + ["recv"] * channel.may_post_first(tag)
        if channel.may_send_first(tag) and channel.may_post_first(tag) and source != dest:
            orders.append("pair")
        if not orders:
            return
        order = rng.choice(orders)
        made = cls(composer.number(), lane, communicator, source, dest, tag, composer.size(), "", "")
        made.mode = rng.choice(LOCAL if order == "send" else LOCAL + BLOCKING * 2)
        made.form = rng.choice(POSTED if order == "recv" else POSTED + IMMEDIATE)
        if order == "pair":
            made.mode, made.form = rng.choice(BLOCKING[:2]), rng.choice(("recv", "recv", "probe", "mprobe"))
        made.size = composer.size(MOST_BUFFERED if made.buffered else 0)
        made.slack = rng.choice((0, 0, 0, 1, 8, 1000))
        if rng.random() < 0.3:
            made.choose_layouts(composer)
        composer.add(made)
        message = made.number

        if order != "recv":
            if order == "pair":
                made.wild = channel.may_be_wild(message) and rng.random() < 0.3
                composer.step(made, "pair")
            else:
                channel.sent.append((message, tag))
                composer.step(made, "send")
                yield lambda: channel.next_posted(message, tag)
                made.wild = channel.may_be_wild(message) and rng.random() < 0.3
                channel.receive(message)
                if made.form == "mprobe" and rng.random() < 0.6:
                    made.form = "matched"
                    composer.step(made, "match")
                    yield None
                composer.step(made, "recv")
        else:
            made.wild = channel.may_be_wild(message) and rng.random() < 0.3
            channel.posted.append((message, tag, made.wild))
            composer.step(made, "recv")
            yield lambda: channel.next_sent(message, tag)
            channel.send(message)
            composer.step(made, "ready" if made.mode in ("rsend", "irsend") and source != dest else "send")
        if made.mode not in ("send", "ssend", "rsend", "bsend"):
            composer.begun(made, "s", source, freeable=made.mode in ("isend", "issend", "ibsend"))
        if made.form in (*POSTED, "improbe"):
            composer.begun(made, "r", dest)

    def choose_layouts(self, composer: Composer) -> None:
        rng = composer.rng
        base = rng.choice(list(layouts.BASES))
        size, count = layouts.BASES[base], 1
        if rng.random() < 0.8:
            self.sender = layouts.at_random(rng, base)
            size = self.sender.size
        if rng.random() < 0.8:
            self.receiver = layouts.at_random(rng, base)
        limit = 400_000 if self.sender is None else 400_000 * size // (size + self.sender.extent)
        count = min(self.size, limit) // size
        self.size = count * size
        if self.receiver and self.receiver.extent * self.size // self.receiver.size > 2_000_000:
            self.receiver = None
        self.slack = 0

    @property
    def buffered(self) -> bool:
        return self.mode in ("bsend", "ibsend", "bsend_init")

    def buffer_needed(self, rank: int) -> int:
        return self.size + 2048 if self.buffered and rank == self.source else 0

    # -- what the ranks do

    def ranks(self, program: Program, phase: str) -> Sequence[int]:
        if phase in ("pair", "ready"):
            return [self.source, self.dest]
        return [self.source if phase == "send" else self.dest]

    def lines(self, program: Program, phase: str, rank: int) -> list[str]:
        if phase == "ready":
            # A ready send needs a receive that is certainly posted (3.4).
            if rank == self.dest:
                return [f"ctl.Send([bytearray(), 0, MPI.BYTE], {self.source}, {self.number})"]
            wait = f"ctl.Recv([bytearray(), 0, MPI.BYTE], {self.dest}, {self.number})"
            return [wait, *self.sending(program)]
        if rank == self.source and phase in ("send", "pair"):
            return self.sending(program)
        if phase == "match":
            return [f"{self.name('m')} = {self.comm}.Mprobe({self.from_whom(program)})"]
        return self.receiving(program)

    @property
    def comm(self) -> str:
        return communicator_of(self.communicator)

    def from_whom(self, program: Program) -> str:
        source = program.group(self.communicator).index(self.source)
        return f"{source}, {'MPI.ANY_TAG' if self.wild else self.tag}"

    def sending(self, program: Program) -> list[str]:
        buffer, request = self.name("a"), self.name("s")
        if self.sender is None:
            lines = [f"{buffer} = filled(data({self.number}, {self.size}))"]
            spec = f"[{buffer}, {self.size}, MPI.BYTE]"
        else:
            t, count = self.name("ta"), self.size // self.sender.size
            lines = [f"{t} = {self.sender.create}.Commit()"]
            payload = f"data({self.number}, {self.size})"
            lines.append(f"{buffer} = filled(spread({payload}, {self.sender.blocks}, {self.sender.extent}, {count}))")
            spec = f"[{buffer}, {count}, {t}]"
        dest = program.group(self.communicator).index(self.dest)
        call = f"{self.comm}.{self.mode.capitalize()}({spec}, {dest}, {self.tag})"
        if self.mode in ("send", "ssend", "rsend", "bsend"):
            lines += [call, f"wipe({buffer})"]
        else:
            lines.append(f"{request} = {call}" + (f"; {request}.Start()" if self.mode.endswith("init") else ""))
        # A type may be freed while it is in use (5.1.9).
        return lines + ([f"{self.name('ta')}.Free()"] if self.sender else [])

    def receiving(self, program: Program) -> list[str]:
        buffer, request, status = self.name("b"), self.name("r"), self.name("u")
        t, lines = "MPI.BYTE", []
        if self.receiver is None:
            count = self.size + self.slack
            lines.append(f"{buffer} = filled(bytes([238]) * {count})")
        else:
            t, count = self.name("tb"), -(-self.size // self.receiver.size)
            lines.append(f"{t} = {self.receiver.create}.Commit()")
            lines.append(f"{buffer} = filled(bytes([238]) * {self.receiver.memory(count)})")
        spec, whom = f"[{buffer}, {count}, {t}]", self.from_whom(program)
        if self.form in POSTED:
            call = f"{self.comm}.{self.form.capitalize()}({spec}, {whom})"
            lines.append(f"{request} = {call}" + (f"; {request}.Start()" if self.form == "recv_init" else ""))
        elif self.form == "improbe":
            message = self.name("m")
            lines += [f"{message} = None", f"while {message} is None: {message} = {self.comm}.Improbe({whom})"]
            lines.append(f"{request} = {message}.Irecv({spec})")
        else:
            lines.append(f"{status} = MPI.Status()")
            if self.form == "mprobe":
                lines.append(f"{self.name('m')} = {self.comm}.Mprobe({whom}, {status})")
            elif self.form in ("probe", "iprobe"):
                probe = f"{self.comm}.Probe({whom}, {status})"
                lines.append(probe if self.form == "probe" else f"while not {probe.replace('.Probe', '.Iprobe')}: pass")
            if self.form in ("mprobe", "probe", "iprobe"):
                lines.append(self.status_check(program, status))
            if self.form in ("mprobe", "matched"):
                lines.append(f"{self.name('m')}.Recv({spec}, {status})")
            else:
                lines.append(f"{self.comm}.Recv({spec}, {whom}, {status})")
            lines += [self.status_check(program, status), *self.checks()]
        return lines + ([f"{t}.Free()"] if self.receiver else [])

    def status_check(self, program: Program, status: str) -> str:
        source = program.group(self.communicator).index(self.source)
        return f"check_status('message {self.number}', {status}, {source}, {self.tag}, {self.size})"

    def checks(self) -> list[str]:
        payload = f"data({self.number}, {self.size})"
        if self.receiver is not None:
            count = -(-self.size // self.receiver.size)
            expected = f"spread({payload}, {self.receiver.blocks}, {self.receiver.extent}, {count})"
        else:
            expected = payload + (f" + bytes([238]) * {self.slack}" if self.slack else "")
        return [f"check('message {self.number}', {self.name('b')}, {expected})"]

    def completed(self, program: Program, token: str, status: str, rank: int) -> list[str]:
        request = self.name(token)
        if token == "s":
            # The memory is the program's again.
            lines = [f"wipe({self.name('a')})"]
            return lines + ([f"{request}.Free()"] if self.mode.endswith("init") else [])
        lines = ([self.status_check(program, status)] if status else []) + self.checks()
        return lines + ([f"{request}.Free()"] if self.form == "recv_init" else [])

    # -- shrinking

    def involved(self) -> set[int]:
        return {self.source, self.dest}

    def used(self) -> set[int]:
        return {self.communicator} - {-1}

    def renumbered(self, ranks: dict[int, int]) -> Action:
        return self.changed(source=ranks[self.source], dest=ranks[self.dest])

    def simpler(self) -> Iterator[Action]:
        if self.sender or self.receiver:
            yield self.changed(sender=None, receiver=None)
            yield self.changed(sender=None)
            yield self.changed(receiver=None)
        if self.slack:
            yield self.changed(slack=0)
        if self.wild:
            yield self.changed(wild=False)
        if not self.sender and not self.receiver:
            for size in (0, 4, 100, self.size // 10, self.size // 2, self.size * 9 // 10):
                if size < self.size:
                    yield self.changed(size=size)
        if self.mode in LOCAL and self.mode not in ("isend", "bsend"):
            yield self.changed(mode="isend")
        if self.mode == "ssend":
            yield self.changed(mode="send")
        if self.form == "recv_init":
            yield self.changed(form="irecv")
        if self.form in ("probe", "iprobe", "mprobe"):
            yield self.changed(form="recv")
