"""What a component counts: the description of what its modules' `statistics()` return."""

from __future__ import annotations

KINDS = ("counter", "level")


class Counter:
    """Something that is counted.

    Parameters:
        name: as `statistics()` has it; `<framework>_<component>_` goes before it.
        help: a line for people.
        unit: "bytes", "messages", ...
        kind: "counter" only grows; "level" is what there is now.
    """

    __slots__ = ("help", "kind", "name", "unit")

    def __init__(self, name: str, help: str, *, unit: str = "", kind: str = "counter") -> None:
        if kind not in KINDS:
            raise ValueError(f"counter {name}: kind is one of {', '.join(KINDS)}, not {kind!r}")
        self.name = name
        self.help = help
        self.unit = unit
        self.kind = kind


# What the progress engine counts (`ompy.core.progress.counters`).
PROGRESS = (
    Counter("events", "messages and completions that the progress engine saw", unit="events"),
    Counter("waits", "waits that did not end at once", unit="waits"),
    Counter("sleeps", "times that a wait slept", unit="sleeps"),
    Counter("sources", "transports and others that are polled now", unit="sources", kind="level"),
)
