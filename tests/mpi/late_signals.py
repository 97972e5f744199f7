"""A signal's exception in the middle of a call, and what tells what became of the memory."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable

import numpy as np


class Late(Exception):
    """What the signal handler raises."""


def raise_late(*_: object) -> None:
    raise Late


def until_late(call: Callable[[], object], before: Callable[[], object] = lambda: None, seconds: float = 0.1) -> None:
    """`call` until the timer's exception ends it; its handler calls `before` first."""

    def handle(*_: object) -> None:
        before()
        raise Late

    signal.signal(signal.SIGALRM, handle)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        call()
    except Late:
        return
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    raise AssertionError("the call was over before the signal came")


def pids(comm) -> list[int]:
    """Of all ranks; SIGUSR1 waits from here on until `told`."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    return comm.allgather(os.getpid())


def told() -> None:
    signal.sigwait({signal.SIGUSR1})


def overwritten(nbytes: int) -> list[np.ndarray]:
    """Arrays that take the place of one that was let go of."""
    gc.collect()
    return [np.full(nbytes // 8, 1.0) for _ in range(4)]
