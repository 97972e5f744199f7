"""A program as data: actions of several ranks, and one global order of their steps.

    step   action 4        rank 0                              rank 1
    1      4 "post"                                            r4 = comm.Irecv(...)
    2      5 "call"        comm.Barrier()                      comm.Barrier()
    3      4 "send"        comm.Send(...)
    4      6 "complete"                                        complete([r4], "waitany"); check(...)

Each rank carries its own operations out in this order and waits for nobody between them.  The order is chosen such that a
step can complete once all steps before it have: whatever blocks there is answered by an earlier step, or by another rank in
the same one.  So the first step that is not complete can always go on, on every rank, and no correct MPI hangs.

An action is dropped with all its steps, which leaves the others as they were: that is how a program is shrunk.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

if TYPE_CHECKING:
    from ompy.testing.fuzz.generator import Composer, Plot

KINDS: dict[str, type[Action]] = {}


class Step(NamedTuple):
    """Part of an action that one rank or several carry out.

    Attributes:
        action: its number.
        phase: which part, in the action's own words.
        rank: who, for an action whose ranks do it at different times; -1: all that the action names for the phase.
    """

    action: int
    phase: str
    rank: int = -1


@dataclass
class Action:
    """Operations of several ranks that belong together.  Subclasses are the kinds; their fields are JSON values.

    Attributes:
        number: in the program; variables of the script are called after it.
        lane: thread of each rank that carries it out.
    """

    kind: ClassVar[str] = ""
    # What a library must have: see `Setting.features`.
    needs: ClassVar[frozenset[str]] = frozenset()

    number: int
    lane: int

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if cls.kind:
            KINDS[cls.kind] = cls

    def ranks(self, program: Program, phase: str) -> Sequence[int]:
        """Who takes part in a phase, ranks of the world."""
        raise NotImplementedError

    @classmethod
    def plot(cls, composer: Composer, lane: int) -> Plot:
        """Compose one of the kind: see `generator`."""
        raise NotImplementedError

    def weight(self, program: Program, phase: str) -> int:
        """For how many operations a phase counts: one a rank, unless it is made of many."""
        return len(self.ranks(program, phase))

    def group(self) -> list[int]:
        """World ranks of the communicator that an action makes."""
        raise NotImplementedError

    def lines(self, program: Program, phase: str, rank: int) -> list[str]:
        """What a rank does in a phase, expectations checked, as Python."""
        raise NotImplementedError

    def completed(self, program: Program, token: str, status: str, rank: int) -> list[str]:
        """The checks after a request of this action is complete; `status` is a variable or empty."""
        return []

    def empty(self, program: Program) -> bool:
        """Whether nothing is left of it to do."""
        return False

    def buffer_needed(self, rank: int) -> int:
        """Bytes for a rank's buffered sends."""
        return 0

    def involved(self) -> set[int]:
        """Ranks that it can't do without."""
        return set()

    def renumbered(self, ranks: dict[int, int]) -> Action:
        """The same among fewer ranks; `ranks` are the new numbers of the old ones that stay."""
        return self

    def used(self) -> set[int]:
        """Actions that it can't do without: those that make its communicator, its window."""
        return set()

    def simpler(self) -> Iterator[Action]:
        """Variants to try when a failing program is shrunk, the simplest first."""
        return iter(())

    def changed(self, **fields: Any) -> Action:
        return dataclasses.replace(self, **fields)

    def name(self, letter: str) -> str:
        """A variable of the script."""
        return f"{letter}{self.number}"


@dataclass
class Program:
    """Actions, and the order of their steps.

    Attributes:
        seed: that it was made from.
        size: number of ranks.
        lanes: threads of each rank.
        memory: where buffers lie: `bytes`, `alloc` (MPI.Alloc_mem) or `numpy`.
        actions: by number.
        steps: in the global order.
    """

    seed: int
    size: int
    lanes: int = 1
    memory: str = "bytes"
    actions: dict[int, Action] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)

    @property
    def everybody(self) -> range:
        return range(self.size)

    def group(self, communicator: int) -> list[int]:
        """World ranks of a communicator's members, in its order; -1: the lane's own."""
        if communicator < 0:
            return list(self.everybody)
        return self.actions[communicator].group()

    def ranks(self, step: Step) -> Sequence[int]:
        return [step.rank] if step.rank >= 0 else self.actions[step.action].ranks(self, step.phase)

    @property
    def operations(self) -> int:
        """Steps, counted for each rank that takes part, by their weight."""
        return sum(self.weight(step) for step in self.steps)

    def weight(self, step: Step) -> int:
        return 1 if step.rank >= 0 else self.actions[step.action].weight(self, step.phase)

    def without(self, dropped: set[int]) -> Program:
        """The program without some actions, and without those that can't do without them."""
        gone = set(dropped)
        while more := {n for n, action in self.actions.items() if n not in gone and action.used() & gone}:
            gone |= more
        actions = {n: action for n, action in self.actions.items() if n not in gone}
        steps = [step for step in self.steps if step.action not in gone]
        return dataclasses.replace(self, actions=actions, steps=steps).tidied()

    def tidied(self) -> Program:
        """Without completions that complete nothing, and without threads that do nothing."""
        empty = {n for n, action in self.actions.items() if action.empty(self)}
        actions = {n: action for n, action in self.actions.items() if n not in empty}
        return dataclasses.replace(
            self,
            actions=actions,
            steps=[step for step in self.steps if step.action not in empty],
            lanes=max((action.lane for action in actions.values()), default=0) + 1,
        )

    def without_rank(self, rank: int) -> Program:
        """The program on one rank less: what involves that one is dropped."""
        smaller = self.without({n for n, action in self.actions.items() if rank in action.involved()})
        numbers = {old: old - (old > rank) for old in self.everybody if old != rank}
        actions = {n: action.renumbered(numbers) for n, action in smaller.actions.items()}
        steps = [
            step._replace(rank=numbers.get(step.rank, -1)) for step in smaller.steps if step.rank < 0 or step.rank in numbers
        ]
        return dataclasses.replace(smaller, size=self.size - 1, actions=actions, steps=steps)

    def changed(self, **fields: Any) -> Program:
        return dataclasses.replace(self, **fields)

    def replaced(self, action: Action) -> Program:
        """The program with another variant of an action."""
        return dataclasses.replace(self, actions=self.actions | {action.number: action})

    # -- as a file

    def dumps(self) -> str:
        """The program as JSON."""
        actions = [{"kind": action.kind, **dataclasses.asdict(action)} for action in self.actions.values()]
        whole = {"seed": self.seed, "size": self.size, "lanes": self.lanes, "memory": self.memory}
        return json.dumps(whole | {"actions": actions, "steps": self.steps})

    @staticmethod
    def loads(text: str) -> Program:
        """The program of a file; ValueError or KeyError when it is none."""
        whole = json.loads(text)
        actions = {}
        for fields in whole.pop("actions"):
            kind = KINDS[fields.pop("kind")]
            actions[fields["number"]] = kind(**fields)
        steps = [Step(*step) for step in whole.pop("steps")]
        return Program(**whole, actions=actions, steps=steps)
