"""What all tests share."""

from __future__ import annotations

import signal

import pytest
from workshop import Workshop


def pytest_configure() -> None:
    """Tests send these signals, which a shell or nohup may have had this process, and so its children, ignore."""
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """Where distributions of others are written and installed, and only these tests see them."""
    return Workshop(tmp_path_factory.mktemp("workshop"))
