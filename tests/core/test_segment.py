"""Memory that processes share: what is asked for is there, or refused, and nothing is left of what was not made."""

from __future__ import annotations

import os
import signal

import pytest

from ompy.core import segment
from ompy.core.errors import ERR_NO_MEM, ERR_PROC_FAILED, MPIError


def shared() -> list[str]:
    """What of the segments' memory this process holds open."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{number}"))
        except OSError:
            continue
    return [name for name in found if "ompy-trial" in name]


@pytest.mark.parametrize("backing", ["memfd", "file"])
@pytest.mark.parametrize("size", [1 << 40, 1 << 62])
def test_more_than_the_machine_has_is_refused(backing: str, size: int) -> None:
    with pytest.raises(MPIError, match=f"no room for a segment of {size} bytes") as caught:
        segment.create("ompy-trial", size, backing)
    assert caught.value.code == ERR_NO_MEM
    assert shared() == []


def test_a_segment_whose_making_a_signal_handler_ends_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(BaseException):
        pass

    def stop(number: int, frame: object) -> None:
        raise Interrupted

    fallocate = os.posix_fallocate

    def interrupted(*arguments: int) -> None:
        fallocate(*arguments)
        signal.raise_signal(signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, stop)
    monkeypatch.setattr(os, "posix_fallocate", interrupted)
    try:
        with pytest.raises(Interrupted):
            segment.create("ompy-trial", 4096, "memfd")
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert shared() == []


def test_a_segment_that_nobody_closes_gives_its_descriptor_back() -> None:
    made = segment.create("ompy-trial", 4096, "memfd")
    assert len(shared()) == 1
    del made
    assert shared() == []


@pytest.mark.parametrize("asked_for", [False, True])
def test_the_segment_of_a_process_that_has_died_says_so(asked_for: bool) -> None:
    """Also of one whose parent has not asked for its end yet."""
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitid(os.P_PID, pid, os.WEXITED | (0 if asked_for else os.WNOWAIT))
    with pytest.raises(MPIError, match=f"process {pid} has died") as caught:
        segment.attach(f"{pid}:3".encode(), 1)
    assert caught.value.code == ERR_PROC_FAILED
    if not asked_for:
        os.waitpid(pid, 0)
