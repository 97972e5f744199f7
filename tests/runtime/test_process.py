"""What the start of a rank's process leaves where it fails."""

from __future__ import annotations

import os
import resource
import sys

import pytest

from ompy.runtime.job import Program
from ompy.runtime.process import Process


def descriptors() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


def started(command: list[str], merged: bool = False) -> Process:
    return Process(0, 0, Program(command, 1), dict(os.environ), None, stack_traces=True, merged=merged)


def test_a_program_that_is_not_there_leaves_no_descriptor() -> None:
    before = descriptors()
    with pytest.raises(FileNotFoundError):
        started(["/nowhere/program"])
    assert descriptors() == before


@pytest.mark.parametrize("merged", [False, True])
def test_descriptors_that_run_out_at_any_step_leave_none(merged: bool) -> None:
    highest = max(map(int, descriptors()))
    fillers = [os.open(os.devnull, os.O_RDONLY)]
    while fillers[-1] <= highest:  # none is free below the limit
        fillers.append(os.open(os.devnull, os.O_RDONLY))
    before = descriptors()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    failures = 0
    process = None
    try:
        while process is None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (fillers[-1] + 1 + failures, hard))
            try:
                process = started([sys.executable, "-c", ""], merged)
            except OSError:
                failures += 1
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
                assert descriptors() == before
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    process.wait()
    for descriptor in [*process.descriptors(), process.stack_file]:
        os.close(descriptor)
    assert failures >= 5
    assert descriptors() == before
    for descriptor in fillers:
        os.close(descriptor)
