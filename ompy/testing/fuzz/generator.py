"""Makes correct programs at random.

Each kind of action has a *plot*: a generator function that adds the action's steps one after another and yields where other
actions' steps may come between.  The composer has several plots under way and goes on with one of them at random:

    plot of a message       yield                      yield            ->  the ranks' operations mingle
    step "send" of rank 0        step "recv" of rank 1       requests opened, which completions wait for
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from ompy.testing.fuzz import actions
from ompy.testing.fuzz.program import KINDS, Action, Program, Step

# What a plot waits for: None, or a condition.
Plot = Iterator[Callable[[], bool] | None]
PLAIN_LIMITS = (64, 1024, 4096, 65536)
LARGEST = 1 << 21
MOST_PLOTS, MOST_OPEN = 8, 12


# How often each kind is chosen.
WEIGHTS = {
    "message": 30, "collective": 14, "persistent": 5, "partitioned": 2, "race": 2, "exchange": 3,
    "objects": 5, "window": 2, "communicator": 5, "neighbours": 1.5, "cancel": 2, "truncation": 1,
    "synchronous": 2, "flood": 0.5, "handles": 1.5, "flush": 0.5, "pause": 3, "fork": 0.4, "interruption": 1,
}  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """What programs are made for.

    Attributes:
        size: ranks.
        limits: sizes in bytes at which a component changes its way.
        features: what the library can do: `threads`, `signals`, `fork`, `mpi4.1`, `sessions`, `rma`, ...
        weights: how often each kind of action is chosen; of those not named, never.
        operations: about how many a program has.
        memories: where its buffers may lie; see `Program.memory`.
        largest: bytes of a message, at most.
    """

    size: int
    limits: tuple[int, ...] = PLAIN_LIMITS
    features: frozenset[str] = frozenset()
    weights: dict[str, float] = field(default_factory=lambda: dict(WEIGHTS))
    operations: int = 60
    memories: tuple[str, ...] = ("bytes",)
    largest: int = LARGEST


class Token(NamedTuple):
    """A request that is open: the action's number, its name there, and the rank whose it is."""

    action: int
    name: str
    rank: int


class Channel:
    """The messages from one rank to another in one communicator that are sent and not received, or the other way round.

    They match in the order of sends and receives (MPI-4.1, 3.5), so the halves that are missing come in an order that makes
    those partners which are meant to be.
    """

    def __init__(self) -> None:
        self.sent: list[tuple[int, int]] = []  # (message, tag), nothing posted for it yet
        self.posted: list[tuple[int, int, bool]] = []  # (message, tag, any tag), not sent yet

    def may_send_first(self, tag: int) -> bool:
        return not any(wild or other == tag for _, other, wild in self.posted)

    def may_post_first(self, tag: int) -> bool:
        return not any(other == tag for _, other in self.sent)

    def may_be_wild(self, message: int) -> bool:
        """Whether a receive with any tag, posted at this moment, matches this message."""
        return not self.sent or self.sent[0][0] == message

    def next_posted(self, message: int, tag: int) -> bool:
        """Whether a receive posted at this moment matches this message, which is sent."""
        return next(other for other, its in self.sent if its == tag) == message

    def next_sent(self, message: int, tag: int) -> bool:
        """Whether a message sent at this moment matches the receive that is posted for it."""
        return next(other for other, its, wild in self.posted if wild or its == tag) == message

    def receive(self, message: int) -> None:
        self.sent = [entry for entry in self.sent if entry[0] != message]

    def send(self, message: int) -> None:
        self.posted = [entry for entry in self.posted if entry[0] != message]

    @property
    def idle(self) -> bool:
        return not self.sent and not self.posted


class Composer:
    """Composes one program.

    Attributes:
        rng: of everything random.
        setting: what the program is for.
        program: as far as it is.
        communicators: those that a lane's actions may use; -1 is the lane's own.
    """

    def __init__(self, seed: int, setting: Setting) -> None:
        self.rng = rng = random.Random(seed)
        self.setting = setting
        lanes = rng.choice((2, 3)) if "threads" in setting.features and rng.random() < 0.12 else 1
        self.program = Program(seed, setting.size, lanes, rng.choice(setting.memories))
        self.plots: list[tuple[Plot, Callable[[], bool] | None]] = []
        self.communicators: list[list[int]] = [[-1] for _ in range(lanes)]
        self.channels: dict[tuple[int, int, int, int], Channel] = {}
        self.open: dict[tuple[int, int], list[Token]] = {}
        self.freeable: set[Token] = set()
        self.completed: set[Token] = set()
        self.held: dict[int, int] = {}
        self.operations = 0
        self.numbers = 0
        weights = {name: weight for name, weight in setting.weights.items() if KINDS[name].needs <= setting.features}
        self.kinds, self.weights = list(weights), list(weights.values())

    # -- what plots use

    def number(self) -> int:
        self.numbers += 1
        return self.numbers

    def add(self, action: Action) -> None:
        self.program.actions[action.number] = action

    def step(self, action: Action, phase: str, rank: int = -1) -> None:
        step = Step(action.number, phase, rank)
        self.program.steps.append(step)
        self.operations += self.program.weight(step)

    def channel(self, lane: int, communicator: int, source: int, dest: int) -> Channel:
        return self.channels.setdefault((lane, communicator, source, dest), Channel())

    def communicator(self, lane: int, least: int = 1) -> int:
        """One at random of so many members at least."""
        known = [c for c in self.communicators[lane] if len(self.program.group(c)) >= least]
        return self.rng.choice(known) if known else -2

    def quiet(self, lane: int, communicator: int) -> bool:
        """Whether no message is half under way in a communicator, and nobody holds it."""
        return not self.held.get(communicator) and all(
            channel.idle for key, channel in self.channels.items() if key[:2] == (lane, communicator)
        )

    def settled(self, lane: int, communicator: int) -> bool:
        """Whether no request of a communicator's messages and collectives is open."""
        tokens = {token.action for (its, _), opened in self.open.items() if its == lane for token in opened}
        return not any(getattr(self.program.actions[number], "communicator", -1) == communicator for number in tokens)

    def begun(self, action: Action, name: str, rank: int, freeable: bool = False) -> None:
        """A request may be completed from here on."""
        token = Token(action.number, name, rank)
        self.open.setdefault((action.lane, rank), []).append(token)
        if freeable:
            self.freeable.add(token)

    def over(self, action: Action, name: str, *ranks: int) -> Callable[[], bool]:
        """Until these ranks' requests of that name are complete."""
        return lambda: all(Token(action.number, name, rank) in self.completed for rank in ranks)

    def hold(self, communicator: int) -> None:
        """An action will still need a communicator; it is not freed before `release`."""
        self.held[communicator] = self.held.get(communicator, 0) + 1

    def release(self, communicator: int) -> None:
        self.held[communicator] -= 1

    def size(self, largest: int = 0) -> int:
        """Bytes of a message: around the limits, small, and at times large."""
        rng, dice = self.rng, self.rng.random()
        largest = min(largest or self.setting.largest, self.setting.largest)
        if dice < 0.12:
            found = rng.choice((0, 0, 1, 2, 3))
        elif dice < 0.5:
            found = rng.randint(1, 300)
        elif dice < 0.86:
            found = max(0, rng.choice(self.setting.limits) + rng.choice((-1, 0, 1, -1, 0, 1, -40, -24, -32, 24)))
        elif dice < 0.975:
            found = rng.randint(300, 70000)
        else:
            found = rng.randint(70000, max(largest, 70001))
        return found if found <= largest else rng.randint(0, largest)

    # -- composing

    def start(self) -> None:
        """A new plot."""
        (kind,) = self.rng.choices(self.kinds, self.weights)
        plot = KINDS[kind].plot(self, self.rng.randrange(self.program.lanes))
        self.go_on(plot)

    def go_on(self, plot: Plot) -> None:
        with suppress(StopIteration):
            self.plots.append((plot, next(plot)))

    def advance(self) -> bool:
        """Go on with a plot that can; whether there was one."""
        ready = [entry for entry in self.plots if entry[1] is None or entry[1]()]
        if not ready:
            return False
        entry = self.rng.choice(ready)
        self.plots.remove(entry)
        self.go_on(entry[0])
        return True

    def complete(self) -> bool:
        """Complete some of the requests that a rank has; whether there were any."""
        places = [place for place, tokens in self.open.items() if tokens]
        if not places:
            return False
        lane, rank = place = self.rng.choice(places)
        tokens = self.open[place]
        chosen = self.rng.sample(tokens, self.rng.randint(1, min(len(tokens), 5)) if self.rng.random() < 0.6 else 1)
        self.open[place] = [token for token in tokens if token not in chosen]
        completion = actions.completion.Completion.at_random(self, lane, rank, chosen)
        self.add(completion)
        self.step(completion, "complete")
        self.completed |= set(chosen)
        return True

    def compose(self) -> Program:
        """The whole program."""
        rng = self.rng
        while self.operations < self.setting.operations:
            dice = rng.random()
            many = len(self.plots) >= MOST_PLOTS
            if dice < 0.45 and not many:
                self.start()
            elif dice < 0.75 or (many and dice < 0.9):
                if not self.advance() and not self.complete():
                    self.start()
            else:
                self.complete()
        while self.plots or any(self.open.values()):
            went = self.advance() if rng.random() < 0.6 else self.complete()
            if not went and not self.advance() and not self.complete():
                raise RuntimeError(f"seed {self.program.seed}: a plot can't be ended: {self.plots}")
        return self.program


def generate(seed: int, setting: Setting) -> Program:
    """The program of a seed."""
    return Composer(seed, setting).compose()
