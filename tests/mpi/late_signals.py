"""A signal's exception in the middle of a call."""

from __future__ import annotations

import signal
from collections.abc import Callable


class Late(Exception):
    """What the signal handler raises."""


def raise_late(*_: object) -> None:
    raise Late


def until_late(call: Callable[[], object], before: Callable[[], object] = lambda: None) -> None:
    """`call` until the timer's exception ends it; its handler calls `before` first."""

    def handle(*_: object) -> None:
        before()
        raise Late

    signal.signal(signal.SIGALRM, handle)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        call()
    except Late:
        return
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    raise AssertionError("the call was over before the signal came")
