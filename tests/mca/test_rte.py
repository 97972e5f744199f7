"""What every run-time environment says of the host, unless it knows better."""

from __future__ import annotations

import os

import pytest

from ompy.mca.rte import Rte


class Host(Rte):
    """A rank of so many on one host."""

    def __init__(self, ranks: int) -> None:
        self.local_size = ranks


@pytest.fixture
def processors(monkeypatch: pytest.MonkeyPatch):
    """Sets how many processors this process may use, and the one that started it; and what the launcher has said."""

    def set_them(own: int, starter: int | None, told: str = "") -> None:
        def affinity(pid: int) -> set[int]:
            if pid and starter is None:
                raise PermissionError(1, "it is another user's")
            return set(range((starter or 0) if pid else own))

        monkeypatch.setattr(os, "sched_getaffinity", affinity)
        monkeypatch.setattr(os, "cpu_count", lambda: 64)
        monkeypatch.setenv("OMPY_PROCESSORS", told)

    return set_them


@pytest.mark.parametrize(
    ("ranks", "own", "starter", "told", "found"),
    [
        (2, 4, 4, "4", 4),
        (4, 1, 1, "4", 4),  # bound to a core each; the launcher was binding the next one when it was looked at
        (4, 1, 1, "2", 2),  # a part of the machine, as a batch system gives it
        (4, 1, 4, "", 4),  # of another launcher
        (4, 2, 2, "", 2),
        (4, 1, None, "", 64),
        (4, 2, 1, "many", 2),
    ],
)
def test_ranks_know_how_many_processors_they_have_together(processors, ranks, own, starter, told, found) -> None:
    processors(own, starter, told)
    assert Host(ranks).processors == found
    assert Host(ranks).is_crowded == (ranks > found)
