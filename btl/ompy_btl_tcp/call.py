"""A call to a peer: one address after the other, until one leads to it.

    idle --> connecting --> talking --> connected
      ^          |             |
      |          v             v
      +--- (later again)   next address, or failed when there is none

A host that is down is noticed by time, which the addresses share.  Whoever has answered the network's connect is alive, if
perhaps computing: for what it says we wait as long as the connection stands.  This process may have computed as well: an answer
that it has not looked at is no silence, and whoever hung up because it said nothing is called again.
"""

from __future__ import annotations

import errno
import os
import time
from _socket import AF_INET, AF_INET6, SO_ERROR, SOL_SOCKET
from select import POLLNVAL, POLLOUT, poll

from ompy_btl_tcp.handshake import Caller, Ended

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from socket import socket as Socket

    from ompy_btl_tcp.card import Way
    from ompy_btl_tcp.channel import Channel

FIRST_PAUSE, LONGEST_PAUSE = 0.01, 0.5  # seconds before a peer that hung up is called again
CLOSED = "the program has closed the socket, which is a descriptor of ompy's"
# The system has none left: of no fault of the address, and perhaps for a moment only.
SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Call:
    """One peer that is being called.

    Parameters:
        open_link: makes a socket of a family, which does not block.
        close_link: closes it.
        ways: to the peer, in the order of trial; at least one.
        secret, me, peer: the circle's, this process's name and the peer's, as in `Conversation`.
        patience: seconds for all ways together, for a peer that hangs up again and again, and for a descriptor.
        number, turn: of the link that this is to be, as in the handshake.
        protection: as in `Conversation`.

    Attributes:
        link: the socket of the address that is being tried, or None between two.
        is_talking: the peer has answered the network's connect, and has been told who calls.
        failure: why no address leads to the peer, in words for people; "" until then.
        is_denied: at every address somebody said that the peer is not there.
    """

    def __init__(
        self,
        open_link: Callable[[int], Socket],
        close_link: Callable[[Socket], object],
        ways: Sequence[Way],
        secret: bytes,
        me: bytes,
        peer: bytes,
        patience: float,
        number: int = 0,
        turn: int = 0,
        protection: type[Channel] | None = None,
    ) -> None:
        self.open_link = open_link
        self.close_link = close_link
        self.ways = ways
        self.secret = secret
        self.me = me
        self.peer = peer
        self.patience = patience
        self.number = number
        self.turn = turn
        self.protection = protection
        self.end = time.monotonic() + patience
        self.failure = ""
        self.pause = FIRST_PAUSE
        self.link: Socket | None = None
        self.conversation: Caller | None = None
        self.restart()

    def restart(self) -> None:
        """From the first address on."""
        self.at = 0
        self.reasons: list[str] = []
        self.is_denied = True
        self.dial()

    @property
    def is_talking(self) -> bool:
        return self.conversation is not None

    @property
    def channel(self) -> Channel | None:
        return None if self.conversation is None else self.conversation.channel

    def dial(self) -> None:
        """Begin with the current address, or the first one after it that can be begun with."""
        while True:
            source, address = self.ways[self.at]
            ip = address.interface.ip
            self.deadline = time.monotonic() + self.patience / len(self.ways)
            try:
                self.link = self.open_link(AF_INET6 if ip.version == 6 else AF_INET)
                if source:
                    self.link.bind((source, 0))
                problem = self.link.connect_ex((str(ip), address.port))
            except OSError as error:
                problem = error.errno or errno.EIO
            if problem in (0, errno.EINPROGRESS, errno.EINTR):
                return
            if problem in SHORTAGES and self.may_try_again():
                self.rest()
                return
            if not self.next_address(os.strerror(problem), problem == errno.ECONNREFUSED):
                return

    def next_address(self, reason: str, denied: bool) -> bool:
        """Give the current address up; whether there is another one."""
        self.hang_up()
        self.reasons.append(f"{self.ways[self.at].address}: {reason}")
        self.is_denied = self.is_denied and denied
        self.at += 1
        if self.at == len(self.ways):
            self.failure = "; ".join(self.reasons)
            return False
        return True

    def may_try_again(self) -> bool:
        """Whether patience lasts; time in which this process did not call is none of it, so a few tries are always made."""
        return self.pause < LONGEST_PAUSE or time.monotonic() < self.end

    def rest(self) -> None:
        """Begin again in a moment."""
        self.hang_up()
        self.deadline = time.monotonic() + self.pause
        self.pause = min(2 * self.pause, LONGEST_PAUSE)

    def hang_up(self) -> None:
        if self.link is not None:
            self.close_link(self.link)
        self.link = None
        self.conversation = None

    def advance(self) -> bool:
        """Something has come over the link; True once the connection stands."""
        assert self.link is not None
        try:
            if self.conversation is None:
                problem = outcome(self.link)
                if problem == errno.EBADF:
                    raise Ended(CLOSED, again=True)
                if problem:
                    raise Ended(os.strerror(problem), denied=problem == errno.ECONNREFUSED)
                conversation = Caller(self.link, self.secret, self.me, self.protection)
                conversation.begin(self.peer, self.number, self.turn)
                self.conversation = conversation
            return self.conversation.advance()
        except Ended as ended:
            if ended.again and self.may_try_again():
                self.rest()
            elif self.next_address(str(ended), ended.denied):
                self.dial()
            return False

    def look_at_clock(self, now: float) -> bool:
        """Whether this changed anything: an address was given up, or it is time to call again."""
        if now < self.deadline or self.failure:
            return False
        if self.link is None:
            self.restart()
            return True
        seen = state(self.link)
        if not seen & POLLNVAL and (seen or self.is_talking):
            # It was connected, perhaps long ago, and nobody has looked here: the poller tells of it.
            self.deadline = now + self.patience / len(self.ways)
            return False
        if self.next_address(CLOSED if seen else f"no answer for {self.patience / len(self.ways):g} s", False):
            self.dial()
        return True


def state(link: Socket) -> int:
    """As `poll` has it: 0 until the network has connected a socket or said why not; POLLNVAL: the program has closed it."""
    waiter = poll()
    waiter.register(link, POLLOUT)
    return sum(events for _, events in waiter.poll(0))


def outcome(link: Socket) -> int:
    """The number of the error that the network's connect has ended with; 0: none."""
    try:
        return link.getsockopt(SOL_SOCKET, SO_ERROR)
    except OSError as error:
        return error.errno or errno.EIO
