"""What all tests share."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """Tests send these signals, which a shell or nohup may have had this process, and so its children, ignore."""
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)
