"""Where a process listens, and those who have called and not yet said who they are.

Anybody can connect.  A caller costs a socket, a few hundred bytes and a deadline.  At most so many may be introducing
themselves at once; for one more the oldest is closed.  A rank says who it is at once, so it is out again before many others
have come; where it was not, it calls again.
"""

from __future__ import annotations

import errno
import time
from _socket import (
    AF_INET,
    AF_INET6,
    IPPROTO_IPV6,
    IPPROTO_TCP,
    IPV6_V6ONLY,
    SO_REUSEADDR,
    SOCK_CLOEXEC,
    SOCK_NONBLOCK,
    SOCK_STREAM,
    SOL_SOCKET,
    TCP_NODELAY,
)
from socket import socket as Socket

from ompy_btl_tcp.card import Address
from ompy_btl_tcp.handshake import Answerer, Ended

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ompy_btl_tcp.interfaces import Interface

# Callers accepted at one look, so that a crowd does not keep the ranks' own messages waiting.
BATCH = 16
# Seconds in which nobody is accepted after there was no descriptor for one.
REST = 0.01


def listen(interface: Interface, port_min: int, port_range: int, first: int, backlog: int) -> tuple[Socket, Address]:
    """A listening socket on a free port, and the address that peers connect to.

    Parameters:
        interface: from `choose`.
        port_min, port_range: the parameters of the same names; `port_min` 0 for any free port.
        first: where in the range to begin, so that the ranks of a host do not all try the same ports.
        backlog: callers that the system lets wait.

    Errors: OSError that names the parameter and the remedy.
    """
    host = str(interface.ip)
    ports = [port_min + (first + step) % port_range for step in range(port_range)] if port_min else [0]
    for port in ports:
        link = Socket(AF_INET6 if interface.version == 6 else AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC)
        try:
            if interface.version == 6:
                link.setsockopt(IPPROTO_IPV6, IPV6_V6ONLY, 1)
            link.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
            link.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)  # of those who are let in, too
            link.bind((host, port))
            link.listen(backlog)
        except (OSError, OverflowError) as error:
            link.close()
            if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
                continue
            reason = f"btl_tcp_if_include: can't listen on {host}, port {port}: {getattr(error, 'strerror', error)}"
            raise OSError(f"{reason}; choose an address of this host, and ports from 1024 up with btl_tcp_port_min") from None
        return link, Address(interface, link.getsockname()[1])
    last = port_min + port_range - 1
    raise OSError(
        f"btl_tcp_port_min, btl_tcp_port_range: every port from {port_min} to {last} of {host} is in use; "
        "give a wider range, another btl_tcp_port_min, or 0 for any free port"
    )


class Reception:
    """The listening sockets, and the callers that are introducing themselves.

    Parameters:
        listening: pairs as from `listen`.
        answer: `answer(link)` makes the conversation with a new caller.
        most: callers at once.
        patience: seconds for each of the few steps of a caller's; who has just been heard has time for the next one, however
            long this process had computed.
        watch, forget: add a descriptor to those that are polled, and take one away.
        close_link: `close_link(link)` closes a caller's.

    Attributes:
        callers: by the descriptor of their sockets, the oldest first.
        turned_away: how many proved nothing.
    """

    def __init__(
        self,
        listening: Iterable[tuple[Socket, Address]],
        answer: Callable[[Socket], Answerer],
        most: int,
        patience: float,
        watch: Callable[[int], object],
        forget: Callable[[int], object],
        close_link: Callable[[Socket], object],
    ) -> None:
        self.links = {link.fileno(): link for link, _ in listening}
        self.answer = answer
        self.most = most
        self.patience = patience
        self.watch = watch
        self.forget = forget
        self.close_link = close_link
        self.callers: dict[int, Answerer] = {}
        self.turned_away = 0
        self.rests_until = 0.0
        for number in self.links:
            watch(number)

    def accept(self, number: int) -> int:
        """Let callers in; returns how many came."""
        came = 0
        while came < BATCH:
            try:
                link, _ = self.links[number].accept()
            except (BlockingIOError, InterruptedError):
                break
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    continue  # this one has gone already
                if self.callers:
                    self.dismiss(next(iter(self.callers)))
                    continue
                self.rest()
                break
            came += 1
            link.setblocking(False)
            if len(self.callers) >= self.most:
                self.dismiss(next(iter(self.callers)))
            self.wait_for(self.answer(link))
            self.watch(link.fileno())
        return came

    def wait_for(self, conversation: Answerer) -> None:
        """Its next step, as the youngest."""
        conversation.deadline = time.monotonic() + self.patience
        self.callers[conversation.link.fileno()] = conversation

    def rest(self) -> None:
        """Accept nobody for a moment; whoever calls waits in the system."""
        if not self.rests_until:
            for number in self.links:
                self.forget(number)
        self.rests_until = time.monotonic() + REST

    def advance(self, number: int) -> Answerer | None:
        """Something has come from a caller; the conversation, once it has proved itself, whose socket is then the caller's."""
        conversation = self.callers[number]
        steps = conversation.steps
        try:
            stands = conversation.advance()
        except Ended as ended:
            self.dismiss(number, counted=not ended.again or not conversation.steps)
            return None
        if stands or conversation.steps > steps:
            del self.callers[number]
            if stands:
                return conversation
            self.wait_for(conversation)
        return None

    def dismiss(self, number: int, counted: bool = True) -> None:
        self.close_link(self.callers.pop(number).link)
        self.turned_away += counted

    def look_at_clock(self, now: float) -> None:
        """Close those who have said nothing for too long; they stand in the order of their deadlines."""
        if self.rests_until and now > self.rests_until:
            self.rests_until = 0.0
            for number in self.links:
                self.watch(number)
        while self.callers:
            number = next(iter(self.callers))
            if now < self.callers[number].deadline:
                break
            self.dismiss(number)

    def close(self) -> None:
        for number in list(self.callers):
            self.dismiss(number, counted=False)
        for link in self.links.values():
            link.close()
