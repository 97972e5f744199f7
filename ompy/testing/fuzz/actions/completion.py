"""Waits and tests: requests of any actions completed together, in each of MPI's ways."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ompy.testing.fuzz.program import Action, Program

if TYPE_CHECKING:
    from ompy.testing.fuzz.generator import Composer, Token

STYLES = ("wait", "test", "get_status", "waitall", "testall", "waitany", "testany", "waitsome", "testsome")


@dataclass
class Completion(Action):
    """Requests of one rank completed.

    Attributes:
        rank: whose.
        tokens: (action, request) each.
        style: one of STYLES, `free` (a request that nobody waits for) or `interrupted` (a signal's handler raises meanwhile).
        seconds: until it does.
    """

    kind = "completion"

    rank: int
    tokens: list[tuple[int, str]]
    style: str = "wait"
    seconds: float = 0.001

    @classmethod
    def at_random(cls, composer: Composer, lane: int, rank: int, tokens: Sequence[Token]) -> Completion:
        rng = composer.rng
        style = rng.choice(STYLES)
        if len(tokens) == 1 and tokens[0] in composer.freeable and rng.random() < 0.2:
            style = "free"
        elif lane == 0 and "signals" in composer.setting.features and rng.random() < 0.05:
            style = "interrupted"
        seconds = rng.choice((0.0001, 0.0005, 0.002))
        return cls(composer.number(), lane, rank, [(token.action, token.name) for token in tokens], style, seconds)

    def open(self, program: Program) -> list[tuple[int, str]]:
        """The requests that the program still has."""
        return [(number, name) for number, name in self.tokens if number in program.actions]

    def empty(self, program: Program) -> bool:
        return not self.open(program)

    def ranks(self, program: Program, phase: str) -> Sequence[int]:
        return [self.rank]

    def lines(self, program: Program, phase: str, rank: int) -> list[str]:
        tokens = self.open(program)
        names = [f"{name}{number}" for number, name in tokens]
        if self.style == "free":
            return [f"{name}.Free()" for name in names]
        if self.style == "interrupted":
            lines = [f"complete_interrupted([{', '.join(names)}], {self.seconds})"]
            status = ""
        elif self.style == "wait" and len(names) == 1:
            status = self.name("st")
            lines = [f"{status} = MPI.Status(); {names[0]}.Wait({status})"]
        else:
            status = self.name("st")
            lines = [f"{status} = complete([{', '.join(names)}], {self.style!r})"]
        for place, (number, name) in enumerate(tokens):
            one = status if not status or (self.style == "wait" and len(names) == 1) else f"{status}[{place}]"
            lines += program.actions[number].completed(program, name, one, rank)
        return lines

    def renumbered(self, ranks: dict[int, int]) -> Action:
        return self.changed(rank=ranks[self.rank])

    def involved(self) -> set[int]:
        return {self.rank}

    def simpler(self) -> Iterator[Action]:
        if self.style != "wait":
            yield dataclasses.replace(self, style="wait")
            if self.style != "waitall" and len(self.tokens) > 1:
                yield dataclasses.replace(self, style="waitall")
