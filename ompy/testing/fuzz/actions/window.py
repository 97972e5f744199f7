"""One-sided communication: windows of every flavor, epochs of every kind, all accesses (MPI-4.1, chapter 12).

Each rank's window is cut into slots.  In one epoch a slot has one role, so that its value afterwards is known:

    put     one origin overwrites it                        afterwards: that origin's numbers
    get     any origins read it                             they read what it held before the epoch
    sum     any origins add to it, some fetch               afterwards: all of it; fetched: what it held and some of the others'
    swap    any origins, each under an exclusive lock,      read: one of the values that it had, whole, each origin another one
            read it and overwrite it                        afterwards: one origin's numbers, whole
    store   its owner writes it, outside of others' epochs

After an epoch its readers check what they read, owners what their slots hold, and what was a target of reads is overwritten at
once: who still reads then is told apart.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from ompy.testing.fuzz.actions.message import communicator_of
from ompy.testing.fuzz.program import Action, Program

if TYPE_CHECKING:
    from ompy.testing.fuzz.generator import Composer, Plot

FLAVORS = ("create", "create", "allocate", "shared", "dynamic")
SYNCHRONISATIONS = ("fence", "fence", "pscw", "lock", "lock_all", "flush")
MOST_ELEMENTS = 40_000
WIDTH = 8
# So many random numbers are not another place's.
DISTINCT = 5


class Access(NamedTuple):
    """What one origin does to a slot in an epoch.

    Attributes:
        origin, target: indices in the communicator.
        slot: number.
        role: `put`, `get`, `sum`, `swap`.
        call: which of MPI's calls.
    """

    origin: int
    target: int
    slot: int
    role: str
    call: str


CALLS = {
    "put": ("Put", "Put", "Rput", "Accumulate"),
    "get": ("Get", "Get", "Rget", "Get_accumulate"),
    "sum": ("Accumulate", "Raccumulate", "Get_accumulate", "Rget_accumulate", "Fetch_and_op"),
    "swap": ("Get",),
}
PASSIVE = ("lock", "lock_all", "flush")
# Before the first epoch and after each: what a slot, (target, slot), may hold, as expressions of the script.
States = list[dict[tuple[int, int], list[str]]]


@dataclass
class Window(Action):
    """A window's whole life.

    Attributes:
        communicator: an action that made one, or -1.
        flavor: how its memory is made.
        slots: elements of 8 bytes of each slot, the same on every rank.
        epochs: (synchronisation, accesses) each.
        vector: origins' memory has gaps, and so has the datatype.
        pauses: milliseconds that a rank lets pass before it enters an epoch, by (epoch + rank) modulo their number.
    """

    kind = "window"
    needs = frozenset({"rma"})

    communicator: int
    flavor: str
    slots: list[int]
    epochs: list[tuple[str, list[Access]]] = field(default_factory=list)
    vector: bool = False
    pauses: list[int] = field(default_factory=lambda: [0])

    def __post_init__(self) -> None:
        self.epochs = [(how, [Access(*access) for access in accesses]) for how, accesses in self.epochs]

    @classmethod
    def plot(cls, composer: Composer, lane: int) -> Plot:
        rng = composer.rng
        communicator = composer.communicator(lane)
        size = len(composer.program.group(communicator))
        slots = [rng.choice((1, 1, 2, 5, 20, max(1, composer.size() // WIDTH))) for _ in range(rng.randint(1, 4))]
        if rng.random() < 0.15:
            slots[0] = rng.randint(9_000, MOST_ELEMENTS)
        slots = [min(slot, MOST_ELEMENTS) for slot in slots]
        flavor = rng.choice(FLAVORS)
        made = cls(composer.number(), lane, communicator, flavor, slots, vector=rng.random() < 0.15)
        made.pauses = rng.choice(([0], [0], [0, 0, 1], [0, 2], [1, 0, 0, 3]))
        same = rng.choice(SYNCHRONISATIONS) if rng.random() < 0.6 else ""
        for _ in range(rng.randint(1, 4)):
            how = same or rng.choice(SYNCHRONISATIONS)
            made.epochs.append((how, made.accesses(rng, size, how)))
        composer.add(made)
        composer.step(made, "window")
        return
        yield

    def accesses(self, rng: random.Random, size: int, how: str) -> list[Access]:
        found = []
        for target in range(size):
            for slot, elements in enumerate(self.slots):
                roles = ["put", "put", "get", "get", "sum", "none"] + ["swap"] * 2 * (how == "lock")
                role = rng.choice(roles)
                if role == "none":
                    continue
                origins = [rng.randrange(size)] if role == "put" else rng.sample(range(size), rng.randint(1, size))
                for origin in origins:
                    calls = [call for call in CALLS[role] if call[0] != "R" or how in PASSIVE]
                    calls = [call for call in calls if call != "Fetch_and_op" or elements == 1]
                    found.append(Access(origin, target, slot, role, rng.choice(calls)))
        rng.shuffle(found)
        return found

    def ranks(self, program: Program, phase: str) -> Sequence[int]:
        return program.group(self.communicator)

    def weight(self, program: Program, phase: str) -> int:
        members = len(program.group(self.communicator))
        return sum(len(accesses) + 2 * members for _, accesses in self.epochs) + 2 * members

    # -- the model: what every slot holds

    def stamp(self, epoch: int, access: Access) -> str:
        """What an origin writes."""
        elements = self.slots[access.slot]
        seed = f"{self.number}{epoch:02}{access.origin:02}{access.target:02}{access.slot:02}"
        return f"numbers({seed}, {elements})"

    def initial(self, target: int, slot: int) -> str:
        return f"numbers({self.number}9{target:02}{slot:02}, {self.slots[slot]})"

    def overwritten(self, epoch: int, target: int, slot: int) -> str:
        """What an owner stores after an epoch."""
        return f"numbers({self.number}8{epoch:02}{target:02}{slot:02}, {self.slots[slot]})"

    def stores(self, epoch: int, target: int, slot: int) -> bool:
        """Whether the owner overwrites a slot after an epoch: it was read in this one and nobody accesses it in the next."""
        _, accesses = self.epochs[epoch]
        read = any((a.target, a.slot) == (target, slot) and a.role == "get" for a in accesses)
        later = self.epochs[epoch + 1][1] if epoch + 1 < len(self.epochs) else []
        return read and not any((a.target, a.slot) == (target, slot) for a in later)

    def states(self, size: int) -> States:
        """What each slot may hold before the first epoch, and after each, owners' stores among it."""
        now = {(target, slot): [self.initial(target, slot)] for target in range(size) for slot in range(len(self.slots))}
        found = [dict(now)]
        for epoch, (_, accesses) in enumerate(self.epochs):
            after = dict(now)
            for place in now:
                here = [access for access in accesses if (access.target, access.slot) == place]
                role = here[0].role if here else ""
                if role == "put":
                    after[place] = [self.stamp(epoch, here[0])]
                elif role == "swap":
                    after[place] = [self.stamp(epoch, access) for access in here]
                elif role == "sum":
                    added = ", ".join(self.stamp(epoch, access) for access in here)
                    after[place] = [f"reduced('SUM', [{value}, {added}])" for value in now[place]]
                if self.stores(epoch, *place):
                    after[place] = [self.overwritten(epoch, *place)]
            found.append(after)
            now = after
        return found

    # -- what the ranks do

    def lines(self, program: Program, phase: str, rank: int) -> list[str]:
        group, comm = program.group(self.communicator), communicator_of(self.communicator)
        me, size, total = group.index(rank), len(group), sum(self.slots)
        w, x = self.name("w"), self.name("x")
        lines = []
        if self.flavor == "create":
            lines += [f"{x} = filled(bytes({total * WIDTH}))", f"{w} = MPI.Win.Create({x}, {WIDTH}, comm={comm})"]
        elif self.flavor == "dynamic":
            lines += [f"{x} = filled(bytes({total * WIDTH}))", f"{w} = MPI.Win.Create_dynamic(comm={comm})", f"{w}.Attach({x})"]
            lines.append(f"where = {comm}.allgather(MPI.Get_address({x}))")
        else:
            way = "Allocate" if self.flavor == "allocate" else "Allocate_shared"
            lines += [f"{w} = MPI.Win.{way}({total * WIDTH}, {WIDTH}, comm={comm})", f"{x} = {w}.tomemory()"]
        lines.append(f"{x} = memoryview({x}).cast('B').cast('q')")
        lines += [f"{self.own(slot)} = {self.initial(me, slot)}" for slot in range(len(self.slots))]
        states = self.states(size)
        # Fences surround what may be concurrent; of the other kinds a barrier separates one epoch's accesses from the next.
        previous = ""
        for epoch, (how, accesses) in enumerate(self.epochs):
            mine = [access for access in accesses if access.origin == me]
            if pause := self.pauses[(epoch + me) % len(self.pauses)]:
                lines.append(f"time.sleep({pause / 1000})")
            if how != "fence" or previous != "fence":
                if previous == "fence":
                    lines.append(f"{w}.Fence(MPI.MODE_NOSUCCEED)")
                lines += [f"{w}.Lock({me}, MPI.LOCK_EXCLUSIVE); {w}.Sync(); {w}.Unlock({me})", f"{comm}.Barrier()"]
                lines += [f"{w}.Fence()"] if how == "fence" else []
            lines += getattr(self, how)(epoch, mine, accesses, me, states)
            # Who has closed its epoch checks what it has read.
            for access in mine:
                if access.role in ("get", "swap") or access.call in ("Get_accumulate", "Rget_accumulate", "Fetch_and_op"):
                    lines.append(self.check_read(epoch, access, accesses, states[epoch]))
            if any(access.role == "swap" for access in accesses):
                lines.append(self.check_alone(epoch, mine, comm))
            if how in PASSIVE:
                lines += [f"{comm}.Barrier()", f"{w}.Lock({me}, MPI.LOCK_EXCLUSIVE)"]
            later = self.epochs[epoch + 1] if epoch + 1 < len(self.epochs) else ("", [])
            for slot in range(len(self.slots)):
                if self.stores(epoch, me, slot):
                    lines.append(f"{self.own(slot)} = {self.overwritten(epoch, me, slot)}")
                elif not (how == "fence" and any((a.target, a.slot) == (me, slot) for a in later[1])):
                    lines.append(self.check_own(epoch, slot, states[epoch + 1][me, slot]))
            if how in PASSIVE:
                lines += [f"{w}.Unlock({me})"]
            previous = how
        if previous == "fence":
            lines.append(f"{w}.Fence(MPI.MODE_NOSUCCEED)")
        lines += [f"{x}.release()"]
        if self.flavor == "dynamic":
            lines.append(f"{comm}.Barrier(); {w}.Detach({self.name('x')}d)")
        return [*self.kept(lines), f"{w}.Free()"]

    def kept(self, lines: list[str]) -> list[str]:
        """The memory of a dynamic window under a name of its own, beside the view of it."""
        x = self.name("x")
        if self.flavor != "dynamic":
            return lines
        return [line if line != f"{x} = memoryview({x}).cast('B').cast('q')" else f"{x}d = {x}; {line}" for line in lines]

    def own(self, slot: int) -> str:
        begin = sum(self.slots[:slot])
        return f"{self.name('x')}[{begin}:{begin + self.slots[slot]}]"

    def check_own(self, epoch: int, slot: int, allowed: Sequence[str]) -> str:
        what = f"'window {self.number}, slot {slot} after epoch {epoch}'"
        if len(allowed) == 1:
            return f"check({what}, {self.own(slot)}, {allowed[0]})"
        return f"among({what}, list({self.own(slot)}), [{', '.join(f'list({value})' for value in allowed)}])"

    def check_alone(self, epoch: int, mine: Sequence[Access], comm: str) -> str:
        """Who swaps reads what the one before it wrote: no two read the same.  Fewer numbers may be the same by chance."""
        swaps = [access for access in mine if access.role == "swap" and self.slots[access.slot] >= DISTINCT]
        reads = ", ".join(f"({a.target}, {a.slot}, list({self.result(epoch, a)}[:{DISTINCT}]))" for a in swaps)
        return f"alone('window {self.number}, epoch {epoch}', {comm}.allgather([{reads}]))"

    def check_read(
        self, epoch: int, access: Access, accesses: Sequence[Access], before: dict[tuple[int, int], list[str]]
    ) -> str:
        what = f"'window {self.number}, read from slot {access.slot} of {access.target} in epoch {epoch}'"
        values = before[access.target, access.slot]
        got = self.result(epoch, access)
        others = [a for a in accesses if (a.target, a.slot) == (access.target, access.slot) and a != access]
        if access.role == "sum":
            stamps = ", ".join(self.stamp(epoch, other) for other in others)
            return f"fetched({what}, {got}, [{', '.join(values)}], [{stamps}])"
        if access.role == "swap":
            values = values + [self.stamp(epoch, other) for other in others]
        if len(values) == 1:
            return f"check({what}, {got}, {values[0]})"
        return f"among({what}, list({got}), [{', '.join(f'list({value})' for value in values)}])"

    def result(self, epoch: int, access: Access) -> str:
        return f"r{self.number}_{epoch}_{access.target}_{access.slot}"

    def access(self, epoch: int, access: Access) -> tuple[list[str], list[str]]:
        """What comes before an access, and the access."""
        w, n = self.name("w"), self.slots[access.slot]
        t = "MPI.INT64_T"
        a, got = f"a{self.number}_{epoch}_{access.target}_{access.slot}", self.result(epoch, access)
        place = str(sum(self.slots[: access.slot]))
        if self.flavor == "dynamic":
            place = f"where[{access.target}] + {WIDTH * sum(self.slots[: access.slot])}"
        target = f"({place}, {n}, {t})"
        stamp = self.stamp(epoch, access)
        before = []
        if access.role in ("get", "swap") or "fetch" in access.call.lower() or "et_acc" in access.call:
            before.append(f"{got} = numbers(0, {n})")
        call, to = access.call, access.target
        wait = ".Wait()" if call.startswith("R") else ""
        if access.role in ("put", "sum"):
            before.append(f"{a} = {stamp}")
        origin = f"[{a}, {n}, {t}]"
        if self.vector and call in ("Put", "Rput") and n > 1:
            before[-1] = f"{a} = spaced({stamp}); tv = MPI.INT64_T.Create_vector({n}, 1, 2).Commit()"
            origin = f"[{a}, 1, tv]"
        if call in ("Put", "Rput"):
            text = f"{w}.{call}({origin}, {to}, {target}){wait}"
        elif call in ("Get", "Rget"):
            text = f"{w}.{call}([{got}, {n}, {t}], {to}, {target}){wait}"
        elif call in ("Accumulate", "Raccumulate"):
            op = "MPI.REPLACE" if access.role == "put" else "MPI.SUM"
            text = f"{w}.{call}({origin}, {to}, {target}, {op}){wait}"
        elif call == "Fetch_and_op":
            text = f"{w}.Fetch_and_op([{a}, 1, {t}], [{got}, 1, {t}], {to}, {place}, MPI.SUM)"
        elif access.role == "get":
            before.append(f"{a} = numbers(0, {n})")
            text = f"{w}.Get_accumulate({origin}, [{got}, {n}, {t}], {to}, {target}, MPI.NO_OP)"
        else:
            text = f"{w}.{call}({origin}, [{got}, {n}, {t}], {to}, {target}, MPI.SUM){wait}"
        return before, [text] + (["tv.Free()"] if "tv]" in text else [])

    def accessing(self, epoch: int, mine: Sequence[Access]) -> tuple[list[str], list[str]]:
        before: list[str] = []
        during: list[str] = []
        for access in mine:
            first, then = self.access(epoch, access)
            if "tv" in " ".join(first):
                during += first
            else:
                before += first
            during += then
        return before, during

    def fence(self, epoch: int, mine: list[Access], accesses: list[Access], me: int, states: States) -> list[str]:
        before, during = self.accessing(epoch, mine)
        return [*before, *during, f"{self.name('w')}.Fence()"]

    def pscw(self, epoch: int, mine: list[Access], accesses: list[Access], me: int, states: States) -> list[str]:
        w = self.name("w")
        origins = sorted({access.origin for access in accesses if access.target == me})
        targets = sorted({access.target for access in mine})
        before, during = self.accessing(epoch, mine)
        lines = [*before, f"g = {w}.Get_group()"]
        lines += [f"{w}.Post(g.Incl({origins}))"] if origins else []
        lines += [f"{w}.Start(g.Incl({targets}))", *during, f"{w}.Complete()"] if targets else []
        if origins:
            lines += [f"{w}.Wait()"] if epoch % 2 else [f"while not {w}.Test(): pass"]
        return lines

    def lock(self, epoch: int, mine: list[Access], accesses: list[Access], me: int, states: States) -> list[str]:
        w, lines = self.name("w"), []
        for target in sorted({access.target for access in mine}, key=lambda target: (target < me, target)):
            here = [access for access in mine if access.target == target and access.role != "swap"]
            if here:
                before, during = self.accessing(epoch, here)
                kind = "SHARED" if any(a.role == "swap" for a in accesses) or (epoch + me) % 2 else "EXCLUSIVE"
                lines += [*before, f"{w}.Lock({target}, MPI.LOCK_{kind})", *during, f"{w}.Unlock({target})"]
        for access in mine:
            if access.role == "swap":
                before, during = self.access(epoch, access)
                put = access._replace(role="put", call="Put")
                first, then = self.access(epoch, put)
                lines += [*before, *first, f"{w}.Lock({access.target}, MPI.LOCK_EXCLUSIVE)", *during]
                lines += [f"{w}.Flush({access.target})", *then, f"{w}.Unlock({access.target})"]
        return lines

    def lock_all(self, epoch: int, mine: list[Access], accesses: list[Access], me: int, states: States) -> list[str]:
        before, during = self.accessing(epoch, mine)
        return [*before, f"{self.name('w')}.Lock_all()", *during, f"{self.name('w')}.Unlock_all()"]

    def flush(self, epoch: int, mine: list[Access], accesses: list[Access], me: int, states: States) -> list[str]:
        """As lock_all, complete by flushes before the lock is given back."""
        w = self.name("w")
        before, during = self.accessing(epoch, mine)
        which = ["Flush_all()"] if (epoch + me) % 2 else [f"Flush({target})" for target in sorted({a.target for a in mine})]
        reads = [self.check_read(epoch, access, accesses, states[epoch]) for access in mine if access.role == "get"]
        return [*before, f"{w}.Lock_all()", *during, *(f"{w}.{call}" for call in which), *reads, f"{w}.Unlock_all()"]

    # -- shrinking

    def used(self) -> set[int]:
        return {self.communicator} - {-1}

    def renumbered(self, ranks: dict[int, int]) -> Action:
        size = len(ranks)
        epochs = [(how, [a for a in accesses if max(a.origin, a.target) < size]) for how, accesses in self.epochs]
        return self.changed(epochs=epochs)

    def simpler(self) -> Iterator[Action]:
        if len(self.epochs) > 1:
            for k in range(len(self.epochs)):
                yield self.changed(epochs=self.epochs[:k] + self.epochs[k + 1 :])
        for k, (how, accesses) in enumerate(self.epochs):
            for length in (len(accesses) // 2, 1):
                for at in range(0, len(accesses), length or 1):
                    less = accesses[:at] + accesses[at + length :]
                    if len(less) < len(accesses):
                        yield self.changed(epochs=[*self.epochs[:k], (how, less), *self.epochs[k + 1 :]])
        for k, slot in enumerate(self.slots):
            for smaller in (1, 2, slot // 10, slot // 2, slot * 3 // 4):
                if 0 < smaller < slot:
                    yield self.changed(slots=[*self.slots[:k], smaller, *self.slots[k + 1 :]])
        if len(self.slots) > 1 and not any(a.slot == len(self.slots) - 1 for _, accesses in self.epochs for a in accesses):
            yield self.changed(slots=self.slots[:-1])
        if self.vector:
            yield self.changed(vector=False)
        if self.pauses != [0]:
            yield self.changed(pauses=[0])
        if self.flavor != "create":
            yield self.changed(flavor="create")
