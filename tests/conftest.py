"""What all tests share."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """A shell that puts a command in the background has it ignore SIGINT, and its children too: tests send that signal."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
