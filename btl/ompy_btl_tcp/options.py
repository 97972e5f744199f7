"""Options of the sockets that connections are made of."""

from __future__ import annotations

from _socket import IPPROTO_TCP, SO_KEEPALIVE, SO_RCVBUF, SO_SNDBUF, SOL_SOCKET, TCP_KEEPCNT, TCP_KEEPIDLE, TCP_KEEPINTVL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from socket import socket
    from typing import Any


def bound_buffers(link: socket, settings: Mapping[str, Any]) -> None:
    """What the system holds for a connection; a listening socket hands it to those whom it lets in."""
    for option, name in ((SO_SNDBUF, "sndbuf"), (SO_RCVBUF, "rcvbuf")):
        if settings[name]:
            link.setsockopt(SOL_SOCKET, option, settings[name])


def keep_alive(link: socket, idle: int, interval: int, times: int = 0) -> None:
    """Have the system ask whether the other host is there, while nothing comes from it.

    Parameters:
        idle: seconds before it asks.
        interval: seconds between two questions.
        times: questions that may stay unanswered; 0: the system's number.
    """
    link.setsockopt(SOL_SOCKET, SO_KEEPALIVE, 1)
    link.setsockopt(IPPROTO_TCP, TCP_KEEPIDLE, idle)
    link.setsockopt(IPPROTO_TCP, TCP_KEEPINTVL, interval)
    if times:
        link.setsockopt(IPPROTO_TCP, TCP_KEEPCNT, times)
