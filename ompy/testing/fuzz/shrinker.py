"""Makes a failing program small: fewer actions, ranks and bytes, plainer calls, as long as it still fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from ompy.testing.fuzz.actions.completion import Completion
from ompy.testing.fuzz.program import Program
from ompy.testing.fuzz.runner import Failure, Place, Runner

# Seconds of silence that are a hang, where it is known that the program can hang.
SILENCE = 5.0
# Runs that show how often a program fails, and the most that are made of each variant of it.
TRIALS, MOST_RUNS = 40, 60


class Shrinker:
    """Shrinks one program.

    Parameters:
        place: where it failed.
        seconds: to spend.
        said: is told what is going on.
    """

    def __init__(self, place: Place, seconds: float, said: Callable[[str], None] = lambda words: None) -> None:
        self.place = place
        self.end = time.monotonic() + seconds
        self.said = said
        self.runners: dict[int, Runner] = {}
        self.runs = 1
        self.tried = 0
        self.essence = ""
        self.failure: Failure | None = None

    def run(self, program: Program, times: int) -> Failure | None:
        """What is wrong with a program, on as many ranks as it has."""
        runner = self.runners.get(program.size)
        if runner is None:
            silence = min(SILENCE, self.place.silence)
            runner = self.runners[program.size] = Runner(self.place._replace(ranks=program.size, silence=silence))
        self.tried += 1
        try:
            return runner.fails(program, times)
        except RuntimeError:
            return None

    def still(self, program: Program) -> bool:
        if time.monotonic() > self.end:
            return False
        failure = self.run(program, self.runs)
        if failure is None or failure.essence != self.essence:
            return False
        self.failure = failure
        return True

    def shrink(self, failure: Failure) -> Failure | None:
        """The failure of the smallest program that was found; None when the program does not fail alone."""
        self.essence = failure.essence
        try:
            return self.smallest(failure.program)
        finally:
            for runner in self.runners.values():
                runner.close()

    def smallest(self, program: Program) -> Failure | None:
        for self.runs in (1, 3, 10, TRIALS):
            if self.still(program):
                break
        else:
            return None
        before = None
        while before != program and time.monotonic() < self.end:
            before = program
            program = self.fewer_actions(program)
            program = self.fewer_ranks(program)
            for variant in self.variants:
                program = variant(program)
        return self.failure

    def accepts(self, program: Program) -> bool:
        self.said(f"{program.operations} operations, {program.size} ranks; {self.tried} tried")
        return self.still(program)

    def fewer_actions(self, program: Program) -> Program:
        """Drop halves, quarters, ... and at last single actions."""
        chosen = sorted(number for number, action in program.actions.items() if not isinstance(action, Completion))
        length = max(1, len(chosen) // 2)
        while True:
            at = len(chosen)
            while at > 0 and time.monotonic() < self.end:
                part = [number for number in chosen[max(0, at - length) : at] if number in program.actions]
                at -= length
                if not part:
                    continue
                candidate = program.without(set(part))
                if candidate.steps and self.accepts(candidate):
                    program = candidate
            if length == 1 or time.monotonic() > self.end:
                return program
            chosen = [number for number in chosen if number in program.actions]
            length = max(1, length // 2)

    def fewer_ranks(self, program: Program) -> Program:
        for rank in reversed(range(program.size)):
            if program.size > 1:
                candidate = program.without_rank(rank)
                if candidate.steps and self.accepts(candidate):
                    program = candidate
        return program

    @property
    def variants(self) -> Iterator[Callable[[Program], Program]]:
        yield self.plainer_memory
        yield self.plainer_actions

    def plainer_memory(self, program: Program) -> Program:
        candidate = program.changed(memory="bytes")
        return candidate if program.memory != "bytes" and self.accepts(candidate) else program

    def plainer_actions(self, program: Program) -> Program:
        """Each action in its simplest form that still fails."""
        for number in sorted(program.actions):
            going = True
            while going:
                going = False
                for action in program.actions[number].simpler():
                    candidate = program.replaced(action)
                    if self.accepts(candidate):
                        program, going = candidate, True
                        break
        return program
