"""Races: messages of several ranks to one that receives from any of them (MPI-4.1, 3.2.4, 3.5, 3.8).

Which sender's message comes next is open.  Each message must come once, and one sender's in their order; so a receive that
says from whom it is says which message it must be.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ompy.testing.fuzz.actions.message import communicator_of
from ompy.testing.fuzz.program import Action, Program

if TYPE_CHECKING:
    from ompy.testing.fuzz.generator import Composer, Plot

FORMS = ("recv", "probe", "mprobe", "iprobe", "improbe")
SENDS = ("Send", "Ssend", "Isend", "Issend")


@dataclass
class Race(Action):
    """Messages to one rank, in a communicator of their own.

    Attributes:
        communicator: parent of that communicator.
        dest: rank of the world.
        senders: ranks of the world.
        sizes: bytes of each message of each sender.
        form: how they are received; `irecv`: all receives are posted before anything is sent.
        send: the call.
        tags: how many tags the messages have in turn; with more than one they are received by any tag.
    """

    kind = "race"

    communicator: int
    dest: int
    senders: list[int]
    sizes: list[list[int]]
    form: str
    send: str
    tags: int

    @classmethod
    def plot(cls, composer: Composer, lane: int) -> Plot:
        rng = composer.rng
        communicator = composer.communicator(lane, 2)
        if communicator == -2:
            return
        members = composer.program.group(communicator)
        dest = rng.choice(members)
        others = [member for member in members if member != dest]
        senders = rng.sample(others, rng.randint(1, len(others)))
        sizes = [[composer.size(100_000) for _ in range(rng.randint(1, 5))] for _ in senders]
        form = rng.choice((*FORMS, "irecv"))
        made = cls(composer.number(), lane, communicator, dest, senders, sizes, form, rng.choice(SENDS), rng.randint(1, 3))
        composer.add(made)
        composer.step(made, "race")
        return
        yield

    def ranks(self, program: Program, phase: str) -> Sequence[int]:
        return program.group(self.communicator)

    def weight(self, program: Program, phase: str) -> int:
        return 2 * sum(map(len, self.sizes)) + 2 * len(program.group(self.communicator))

    def seed(self, sender: int, k: int) -> int:
        return self.number * 10_000 + sender * 100 + k

    def lines(self, program: Program, phase: str, rank: int) -> list[str]:
        group, c, n = program.group(self.communicator), self.name("c"), self.number
        lines = [f"{c} = {communicator_of(self.communicator)}.Dup()"]
        total = sum(map(len, self.sizes))
        most = max((size for sizes in self.sizes for size in sizes), default=0)
        if rank in self.senders:
            which = self.senders.index(rank)
            dest = group.index(self.dest)
            waits = self.send.startswith("I")
            lines.append(f"{self.name('q')} = []")
            for k, size in enumerate(self.sizes[which]):
                call = (
                    f"{c}.{self.send}([filled(data({self.seed(which, k)}, {size})), {size}, MPI.BYTE], {dest}, {k % self.tags})"
                )
                lines.append(f"{self.name('q')}.append({call})" if waits else call)
            lines.append(f"MPI.Request.Waitall({self.name('q')})")
        elif rank == self.dest:
            sizes = {group.index(sender): self.sizes[k] for k, sender in enumerate(self.senders)}
            order = {group.index(sender): k for k, sender in enumerate(self.senders)}
            tag = "MPI.ANY_TAG" if self.tags > 1 else "0"
            lines += [f"sizes, order = {sizes}, {order}", "seen = dict.fromkeys(sizes, 0)"]
            whom = f"MPI.ANY_SOURCE, {tag}"
            if self.form == "irecv":
                lines.append(f"buffers = [filled(bytes({most})) for _ in range({total})]")
                lines.append(f"requests = [{c}.Irecv([b, {most}, MPI.BYTE], {whom}) for b in buffers]")
                lines.append(f"stati = [MPI.Status() for _ in range({total})]; MPI.Request.Waitall(requests, stati)")
            lines.append(f"for k in range({total}):")
            if self.form == "irecv":
                body = ["b, st = buffers[k], stati[k]"]
            else:
                body = [f"b, st = filled(bytes({most})), MPI.Status()"]
            if self.form == "recv":
                body.append(f"{c}.Recv([b, {most}, MPI.BYTE], {whom}, st)")
            elif self.form in ("probe", "iprobe"):
                probe = f"{c}.Probe({whom}, st)"
                body.append(probe if self.form == "probe" else f"while not {probe.replace('.Probe', '.Iprobe')}: pass")
                body.append(f"{c}.Recv([b, {most}, MPI.BYTE], st.Get_source(), st.Get_tag(), st)")
            elif self.form == "mprobe":
                body += [f"m = {c}.Mprobe({whom}, st)", f"m.Recv([b, {most}, MPI.BYTE], st)"]
            elif self.form == "improbe":
                body += ["m = None", f"while m is None: m = {c}.Improbe({whom}, st)"]
                body.append(f"m.Irecv([b, {most}, MPI.BYTE]).Wait(st)")
            body += ["s = st.Get_source(); i = seen[s]; seen[s] += 1", "n = sizes[s][i]"]
            body.append(f"check_status(f'message {{i}} of {{s}}', st, s, i % {self.tags}, n)")
            body.append(f"check(f'message {{i}} of {{s}}', bytes(b)[:n], data({n * 10_000} + order[s] * 100 + i, n))")
            lines += ["    " + line for line in body]
        return [*lines, f"{c}.Free()"]

    def involved(self) -> set[int]:
        return {self.dest}

    def used(self) -> set[int]:
        return {self.communicator} - {-1}

    def renumbered(self, ranks: dict[int, int]) -> Action:
        kept = [(ranks[s], sizes) for s, sizes in zip(self.senders, self.sizes, strict=True) if s in ranks]
        return self.changed(dest=ranks[self.dest], senders=[s for s, _ in kept], sizes=[sizes for _, sizes in kept])

    def simpler(self) -> Iterator[Action]:
        for which in range(len(self.senders)):
            if len(self.senders) > 1:
                left = [k for k in range(len(self.senders)) if k != which]
                yield self.changed(senders=[self.senders[k] for k in left], sizes=[self.sizes[k] for k in left])
        if any(len(sizes) > 1 for sizes in self.sizes):
            yield self.changed(sizes=[sizes[: (len(sizes) + 1) // 2] for sizes in self.sizes])
            yield self.changed(sizes=[sizes[:-1] or sizes for sizes in self.sizes])
        if any(size > 4 for sizes in self.sizes for size in sizes):
            yield self.changed(sizes=[[min(size, 4) for size in sizes] for sizes in self.sizes])
            yield self.changed(sizes=[[size // 2 for size in sizes] for sizes in self.sizes])
        if self.form != "recv":
            yield self.changed(form="recv")
        if self.tags > 1:
            yield self.changed(tags=1)
