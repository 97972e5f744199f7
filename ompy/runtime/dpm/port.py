"""Ports: where a process waits for others, and the string that leads there (MPI-4.1, 11.9.2).

    ompy1/<token>/<host>/<port number>/<address>,<address>...

The string is all that two jobs need to know of each other.  The token in it is the right to connect: whoever has the string
has it.  A port serves one caller for each `Accept`; others wait in the listener's queue for the next.
"""

from __future__ import annotations

import errno
import os
import select
import time

# The module without underscore takes longer to import than a meeting takes.
from _socket import AF_INET, SO_REUSEADDR, SOCK_STREAM, SOL_SOCKET, socket

from ompy.core.errors import ERR_INTERN, ERR_PORT, MPIError
from ompy.core.progress import serve_until_readable
from ompy.runtime.dpm.channel import Channel, Handshake, Refused, call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MARK = "ompy1"
TOKEN = 16
BACKLOG = 128
LOOPBACK = "127.0.0.1"
# A caller has so many seconds to prove himself, and so many may be at it at once.
PATIENCE = 5.0
MOST_CALLERS = 64
# To be connected by TCP to one address, in seconds.
KNOCK = 3.0
LONGEST = 3600.0
# What this process, or the system, has too little of to let a caller in.
NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
LOOK_EVERY = 0.1


def addresses() -> list[str]:
    """IPv4 addresses of this host by which other hosts may reach it."""
    import psutil

    up = {name for name, state in psutil.net_if_stats().items() if state.isup}
    entries = [it for name, found in psutil.net_if_addrs().items() if name in up for it in found]
    return [it.address for it in entries if it.family == AF_INET and not it.address.startswith("127.")]


def this_host() -> str:
    """Equal where a loopback address leads to the same port: of the same network name space."""
    try:
        space = os.stat("/proc/self/ns/net").st_ino
        with open("/proc/sys/kernel/random/boot_id") as boot:
            return f"{boot.read(13).replace('-', '')}{space:x}"
    except OSError:
        return os.uname().nodename.replace("/", "-")


class Port:
    """A port of this process's.

    Parameters:
        everywhere: other hosts may connect; else this host's processes only.

    Errors: MPIError with ERR_INTERN when there is nowhere to listen.
    """

    def __init__(self, everywhere: bool) -> None:
        self.token = os.urandom(TOKEN)
        self.listener = socket(AF_INET, SOCK_STREAM)
        try:
            self.listener.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
            self.listener.bind(("" if everywhere else LOOPBACK, 0))
            self.listener.listen(BACKLOG)
        except OSError as error:
            self.listener.close()
            raise MPIError(ERR_INTERN, f"no port can be opened: {error.strerror}") from error
        self.listener.setblocking(False)
        where = ",".join([*(addresses() if everywhere else []), LOOPBACK])
        self.name = f"{MARK}/{self.token.hex()}/{this_host()}/{self.listener.getsockname()[1]}/{where}"
        # Those who stand at the door; who has not been served by one `accept` is by the next.
        self.callers: dict[int, Handshake] = {}
        self.watched = select.epoll()
        self.watched.register(self.listener.fileno(), select.EPOLLIN)

    def accept(self, limit: float, look: Callable[[], None] | None = None) -> Channel:
        """The channel to the next caller who has the token.

        Parameters:
            limit: seconds; 0 for none.
            look: called now and then; what it raises ends the wait.

        Errors: ERR_PORT when nobody comes within the limit.
        """
        deadline = time.monotonic() + limit if limit else float("inf")
        for caller in self.callers.values():
            caller.deadline = time.monotonic() + PATIENCE
        while True:
            now = time.monotonic()
            for number in [number for number, caller in self.callers.items() if now > caller.deadline]:
                self.send_away(number)
            if now > deadline:
                raise MPIError(ERR_PORT, f"nobody has connected to {self.where} for {limit:g} s (the hint timeout)")
            if look is not None:
                look()
            soonest = min([deadline, *(caller.deadline for caller in self.callers.values())])
            serve_until_readable(self.watched.fileno(), min(soonest - now, LONGEST if look is None else LOOK_EVERY))
            for number, _ in self.watched.poll(0):
                if number == self.listener.fileno():
                    self.let_in()
                elif (channel := self.hear(number)) is not None:
                    return channel

    def let_in(self) -> None:
        try:
            number, _ = self.listener._accept()  # type: ignore[attr-defined]
        except OSError as error:
            if error.errno in NO_ROOM:
                raise MPIError(
                    ERR_INTERN, f"a process that connects to {self.where} can't be let in: {error.strerror}"
                ) from error
            return  # it has gone again
        connection = socket(AF_INET, SOCK_STREAM, 0, number)
        if len(self.callers) == MOST_CALLERS:
            # Whoever has stood there longest is the likeliest to be no caller at all.
            self.send_away(next(iter(self.callers)))
        connection.setblocking(False)
        # An exception of a signal's handler may come between any two of these lines, here and where callers leave: who is among
        # them is watched.
        self.watched.register(connection.fileno(), select.EPOLLIN)
        self.callers[connection.fileno()] = Handshake(connection, self.token, time.monotonic() + PATIENCE)

    def hear(self, number: int) -> Channel | None:
        """A caller has said something: the channel, if that was all that was missing."""
        if number not in self.callers:
            return None
        try:
            channel = self.callers[number].step()
        except Refused:
            self.send_away(number)
            return None
        if channel is not None:
            del self.callers[number]
            self.watched.unregister(number)
        return channel

    def send_away(self, number: int) -> None:
        caller = self.callers.pop(number)
        self.watched.unregister(number)
        caller.connection.close()

    @property
    def where(self) -> str:
        """For people: the address without the token."""
        return readable(self.name)

    def close(self) -> None:
        for number in list(self.callers):
            self.send_away(number)
        self.watched.close()
        self.listener.close()


def parse(name: str) -> tuple[bytes, str, int, list[str]]:
    """Token, host, port number and addresses of a port's string.  ERR_PORT for what is none."""
    try:
        mark, token, host, number, where = name.split("/")
        found = bytes.fromhex(token), host, int(number), where.split(",")
    except (ValueError, AttributeError):
        mark = ""
    if mark != MARK or len(found[0]) != TOKEN or not 0 < found[2] < 1 << 16:
        raise MPIError(ERR_PORT, f"port_name: {str(name)[:60]!r} is no port: Open_port, or Lookup_name, gives the string")
    return found


def readable(name: str) -> str:
    """A port for people, without its token."""
    _, _, number, where = parse(name)
    return f"port {number} of {', '.join(where)}"


def connect(name: str, limit: float) -> Channel:
    """The channel to a port's owner.  ERR_PORT, with what became of each address, when there is none within so many seconds."""
    token, host, number, where = parse(name)
    deadline = time.monotonic() + limit
    if host == this_host():
        where = [LOOPBACK]
    elif len(where) > 1:
        where.remove(LOOPBACK)
    problems = []
    for address in where:
        connection = socket(AF_INET, SOCK_STREAM)
        connection.settimeout(min(KNOCK, limit))
        try:
            connection.connect((address, number))
            return call(connection, token, max(deadline - time.monotonic(), 0.0))
        except Refused as error:
            problems.append(f"{address}:{number}: {error}")
        except (OSError, OverflowError) as error:
            problems.append(f"{address}:{number}: {getattr(error, 'strerror', None) or error}")
        connection.close()
    raise MPIError(
        ERR_PORT, f"no connection to the port: {'; '.join(problems)} (after at most {limit:g} s: mpi_connect_timeout)"
    )
