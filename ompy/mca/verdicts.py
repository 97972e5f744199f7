"""What became of each component, kept for people: nothing is dropped in silence."""

from __future__ import annotations

import sys

from ompy.mca.params import registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ompy.mca.rte import Rte


class Verdict:
    """What became of one component.

    Attributes:
        framework, component: their names.
        chosen: whether it serves.
        priority: what it offered; None when it made no offer.
        reason: why, in words.
    """

    __slots__ = ("chosen", "component", "framework", "priority", "reason")

    def __init__(self, framework: str, component: str, chosen: bool, priority: int | None, reason: str) -> None:
        self.framework = framework
        self.component = component
        self.chosen = chosen
        self.priority = priority
        self.reason = reason

    def __repr__(self) -> str:
        word = "chosen" if self.chosen else "not chosen"
        return f"<{self.framework}/{self.component} {word}: {self.reason}>"


class Record:
    """The verdicts of this process, the latest on each component, and the voice that tells them as they fall."""

    def __init__(self) -> None:
        self.frameworks: dict[str, dict[str, Verdict]] = {}
        self.rte: Rte | None = None
        self.told: set[str] = set()

    def add(self, framework: str, component: str, chosen: bool, priority: int | None, reason: str) -> None:
        """Record a verdict, and print it when `<framework>_base_verbose` is 1 or more."""
        self.frameworks.setdefault(framework, {})[component] = Verdict(framework, component, chosen, priority, reason)
        words = "chosen" if chosen else "not chosen"
        if priority is not None:
            words += f", priority {priority}"
        self.say(framework, 1, f"{component} {words}: {reason}")

    def say(self, framework: str, level: int, line: str) -> None:
        """A line for people, on the error output, when `<framework>_base_verbose` is at least `level`."""
        if registry.value(f"{framework}_base_verbose") >= level:
            rank = "?" if self.rte is None else self.rte.rank
            print(f"[ompy rank {rank}] {framework}: {line}", file=sys.stderr, flush=True)

    def tell_once(self, framework: str, line: str) -> None:
        """A line for people on what went wrong, from one process a host; `<framework>_base_verbose` -1 silences it."""
        first = self.rte is None or self.rte.local_rank == 0
        if first and line not in self.told and registry.value(f"{framework}_base_verbose") == 0:
            self.told.add(line)
            print(f"ompy: {framework}: {line}", file=sys.stderr, flush=True)

    def of(self, framework: str = "") -> list[Verdict]:
        """The verdicts of one framework, or of all."""
        names = [framework] if framework else list(self.frameworks)
        return [verdict for name in names for verdict in self.frameworks.get(name, {}).values()]

    def table(self, framework: str) -> str:
        """A line for each component, for the error that says that none can serve."""
        lines = [f"\n  {verdict.component}: {verdict.reason}" for verdict in self.of(framework)]
        return "".join(lines) or " none is installed"

    def clear(self) -> None:
        self.frameworks.clear()
        self.rte = None


record = Record()
