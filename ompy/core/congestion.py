"""Who sets the pace of a TCP connection: the congestion control of this host's system.

Reno (RFC 5681) and cubic (RFC 9438) send what the window allows, whenever it does.  BBR sends by a clock, at the rate that it
takes the path to have: right for long paths, but where a round trip takes less than the clock's tick 1 MiB takes three to five
times as long.  A connection that has begun by a clock keeps to it, whatever it is told later: so the choice is made before.
"""

from __future__ import annotations

import sys
from _socket import IPPROTO_TCP, TCP_CONGESTION, TCP_INFO
from _socket import socket as Socket

# What a transport's parameter may say besides the name of an algorithm, and what it then means.
AUTO, SYSTEM = "auto", "system"
HELP = (
    "how fast its connections send: system (as this host's are set up), auto (the same, but cubic or reno in place of bbr "
    "where a round trip takes less than 1 ms), or one of net.ipv4.tcp_allowed_congestion_control"
)
ALLOWED = "/proc/sys/net/ipv4/tcp_allowed_congestion_control"
LONGEST_NAME = 16
# Those that send by a clock, and what comes in their place, the first that this process may choose.
PACED = ("bbr",)
INSTEAD = ("cubic", "reno")
# Microseconds of a round trip, below which a path is short.
SHORT = 1000
# Where `struct tcp_info` has tcpi_min_rtt: the shortest round trip so far, that of the handshake included; microseconds.
MIN_RTT = slice(148, 152)


class CongestionControl:
    """That of a transport's connections.

    Parameters:
        wanted: `AUTO`, `SYSTEM` or the name of an algorithm.
        parameter: whose value that is.

    Attributes:
        near, far: the algorithm on short paths, and on all others.

    Errors: OSError that names the parameter, and what it may be.
    """

    def __init__(self, wanted: str, parameter: str) -> None:
        self.system = self.near = self.far = ""
        if wanted == SYSTEM:
            return
        link = Socket()
        try:
            self.system = self.near = self.far = algorithm_of(link)
            if wanted == AUTO and self.system.startswith(PACED):
                self.near = next((name for name in INSTEAD if may_choose(link, name)), self.system)
            elif wanted != AUTO:
                choose(link, wanted)
                self.near = self.far = wanted
        except OSError as error:
            if wanted == AUTO:
                return  # a system that has no choice to offer
            with open(ALLOWED) as allowed:
                some = ", ".join((AUTO, SYSTEM, *allowed.read().split()))
            raise OSError(f"{parameter} {wanted}: {error.strerror}; it may be one of {some}") from None
        finally:
            link.close()

    def prepare(self, link: Socket) -> None:
        """For a socket that is to be a connection, or to listen: then for those whom it lets in."""
        if self.near != self.system:
            choose(link, self.near)

    def settle(self, link: Socket) -> None:
        """For a connection that stands, so that its round trip is known.  Errors: OSError where it does not."""
        if self.near == self.far == self.system:
            return
        right = self.near if self.near == self.far or round_trip(link) < SHORT else self.far
        if algorithm_of(link) != right:
            choose(link, right)


def choose(link: Socket, name: str) -> None:
    link.setsockopt(IPPROTO_TCP, TCP_CONGESTION, name.encode())


def may_choose(link: Socket, name: str) -> bool:
    """Whether the system has it, and lets this process; the socket then sends by it."""
    try:
        choose(link, name)
    except OSError:
        return False
    return True


def algorithm_of(link: Socket) -> str:
    """The name of what a socket sends by."""
    return link.getsockopt(IPPROTO_TCP, TCP_CONGESTION, LONGEST_NAME).rstrip(b"\0").decode()


def round_trip(link: Socket) -> int:
    """The shortest one of a connection so far, in microseconds."""
    return int.from_bytes(link.getsockopt(IPPROTO_TCP, TCP_INFO, MIN_RTT.stop)[MIN_RTT], sys.byteorder)
