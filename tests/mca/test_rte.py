"""What every run-time environment says of the host, unless it knows better."""

from __future__ import annotations

import os

import pytest
from ompy_rte_singleton.component import COMPONENT, ompy_query
from ompy_rte_singleton.module import SingletonRte, mismatch

from ompy.core.quota import NO_LIMIT
from ompy.mca import rte
from ompy.mca.component import Context, Refusal
from ompy.mca.rte import Rte


class Host(Rte):
    """A rank of so many on one host."""

    def __init__(self, ranks: int) -> None:
        self.local_size = ranks


@pytest.fixture
def processors(monkeypatch: pytest.MonkeyPatch):
    """Sets how many processors this process may use, and the one that started it; what the launcher has said; a quota."""

    def set_them(own: int, starter: int | None, told: str = "", quota: float = NO_LIMIT) -> None:
        monkeypatch.setattr(rte, "processor_quota", lambda: quota)

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


@pytest.mark.parametrize(("quota", "found"), [(1.5, 1), (0.25, 1), (2.0, 2), (NO_LIMIT, 4)])
def test_ranks_have_no_more_processors_than_a_quota_of_time_fills(processors, quota: float, found: int) -> None:
    processors(4, 4, "4", quota)
    assert Host(2).processors == found
    assert Host(2).is_crowded == (found < 2)


def test_a_job_of_one_begins_at_the_first_fence_and_not_again() -> None:
    begun = []
    alone = SingletonRte(lambda: begun.append(True))
    assert begun == []
    for _ in range(3):
        alone.commit_and_fence()
    assert begun == [True]


def test_a_job_of_one_may_grow_to_the_processors_that_it_may_use(processors) -> None:
    processors(3, None)
    assert SingletonRte(lambda: None).universe_size == 3


@pytest.mark.parametrize("tasks", ["1", "2", "10"])
def test_two_tasks_of_a_launcher_that_can_t_be_joined_are_warned(tasks: str) -> None:
    assert (f"started {tasks} tasks" in mismatch({"SLURM_STEP_NUM_TASKS": tasks})) == (tasks != "1")


def test_one_of_several_ranks_of_a_pmi_launcher_is_no_job_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PMI_FD", "7")
    monkeypatch.setenv("PMI_SIZE", "2")
    answer = ompy_query(Context(COMPONENT))
    assert isinstance(answer, Refusal)
    assert "PMI_FD" in answer.reason
