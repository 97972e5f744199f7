"""The door at which processes of other jobs knock."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket

import pytest

from ompy.core.errors import MPIError
from ompy.runtime.dpm.port import Port, parse


class Interrupted:
    """An epoll object whose `unregister` a signal's handler ends with an exception, once it is done."""

    def __init__(self, watched: select.epoll) -> None:
        self.watched = watched
        self.armed = True

    def unregister(self, number: int) -> None:
        self.watched.unregister(number)
        if self.armed:
            self.armed = False
            raise KeyboardInterrupt

    def close(self) -> None:
        self.watched.close()


def test_a_caller_that_no_descriptor_is_left_for_is_an_error_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    port = Port(everywhere=False)

    class Full:
        """A listener of a process that has as many descriptors as it may have."""

        def fileno(self) -> int:
            return listener.fileno()

        def _accept(self) -> None:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    listener = port.listener
    monkeypatch.setattr(port, "listener", Full())
    with socket.create_connection(("127.0.0.1", parse(port.name)[2])), pytest.raises(MPIError, match="Too many open files"):
        port.accept(30)
    monkeypatch.undo()
    port.close()


def test_a_port_closes_though_an_exception_has_ended_the_sending_away_of_a_caller() -> None:
    port = Port(everywhere=False)
    with socket.create_connection(("127.0.0.1", parse(port.name)[2])) as caller:
        port.listener.setblocking(True)
        port.let_in()
        (number,) = port.callers
        port.watched = Interrupted(port.watched)  # type: ignore[assignment]
        with pytest.raises(KeyboardInterrupt):
            port.send_away(number)
        port.close()
        caller.settimeout(10)
        with contextlib.suppress(ConnectionResetError):
            while caller.recv(100):
                pass
