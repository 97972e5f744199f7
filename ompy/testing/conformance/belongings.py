"""What of a process is its program's own, to see whether a component leaves it as it is."""

from __future__ import annotations

import os
import signal
import sys
import threading


def belongings() -> dict[str, object]:
    """What is the program's own of this process."""
    handlers = {number.name: signal.getsignal(number) for number in signal.Signals}
    streams = {f"sys.{name}": getattr(sys, name) for name in ("stdin", "stdout", "stderr", "excepthook", "unraisablehook")}
    threads = {"threading.excepthook": threading.excepthook}
    return {**handlers, **streams, **threads, "the environment": dict(os.environ), "the working folder": os.getcwd()}
