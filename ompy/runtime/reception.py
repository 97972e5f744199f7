"""Where proxies call the launcher back: a port, open until all have come, at which only those who know the secret get in."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import time
from functools import partial

from ompy.runtime.link import LONGEST_NAME, NONCE, PROOF, proof

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ompy.runtime.loop import Loop

    # Host, connection, and the keys of what goes out and of what comes in.
    Admitted = Callable[[str, socket.socket, bytes, bytes], None]

# Callers that have not said who they are: of more than so many the one that has waited longest goes.
MOST_CALLERS = 128
# A caller has so many seconds to say who it is.
PATIENCE = 10.0
RETRY = 0.1
# A proxy calls so many times at each address.
ROUNDS = 5


def addresses() -> list[str]:
    """This machine's IP addresses, those that others may reach first, the loopback one last."""
    import ipaddress

    import psutil

    up = {name for name, status in psutil.net_if_stats().items() if status.isup}
    found = []
    for name, entries in psutil.net_if_addrs().items():
        for entry in entries:
            if name in up and entry.family in (socket.AF_INET, socket.AF_INET6) and "%" not in entry.address:
                found.append(ipaddress.ip_address(entry.address))
    return [str(address) for address in sorted(found, key=lambda it: (it.is_loopback, it.is_link_local, it.version))]


class Caller:
    """A connection whose other side has not proved who it is."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.nonce = os.urandom(NONCE)
        self.said = b""


class Reception:
    """The port.

    Parameters:
        loop: watches it.
        secret: the job's.
        hosts: the names of those who are to come, each once.
        admit: takes who has come.

    Errors: OSError when there is no port.
    """

    def __init__(self, loop: Loop, secret: bytes, hosts: Iterable[str], admit: Admitted) -> None:
        self.loop = loop
        self.secret = secret
        self.expected = set(hosts)
        self.admit = admit
        self.callers: list[Caller] = []
        if socket.has_dualstack_ipv6():
            self.listener = socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True, backlog=1024)
        else:
            self.listener = socket.create_server(("", 0), backlog=1024)
        self.listener.setblocking(False)
        self.port: int = self.listener.getsockname()[1]
        loop.watch(self.listener.fileno(), self.accept)

    def accept(self) -> None:
        try:
            connection, _ = self.listener.accept()
        except BlockingIOError:
            return
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                # The caller waits in the system's queue; to look again at once would find the same.
                self.loop.unwatch(self.listener.fileno())
                self.loop.set_timer("reception", RETRY, self.look_again)
            return
        connection.setblocking(False)
        caller = Caller(connection)
        self.callers.append(caller)
        if len(self.callers) > MOST_CALLERS:
            self.dismiss(self.callers[0])
        self.loop.watch(connection.fileno(), partial(self.hear, caller))
        self.loop.set_timer(f"caller {id(caller)}", PATIENCE, partial(self.dismiss, caller))
        with contextlib.suppress(OSError):
            connection.send(caller.nonce)

    def look_again(self) -> None:
        if self.listener.fileno() >= 0:
            self.loop.watch(self.listener.fileno(), self.accept)

    def hear(self, caller: Caller) -> None:
        """Take what a caller says; at the first wrong word it goes."""
        try:
            # No byte behind the proof is taken: what follows is the link's.
            data = caller.connection.recv(self.missing(caller.said))
        except BlockingIOError:
            return
        except OSError:
            data = b""
        caller.said += data
        if not data or self.missing(caller.said) < 0:
            self.dismiss(caller)
        elif self.missing(caller.said) == 0:
            self.judge(caller)

    @staticmethod
    def missing(said: bytes) -> int:
        """Bytes that a caller has yet to say, as far as can be told; -1 when it has said too long a name."""
        if len(said) < NONCE + 2:
            return NONCE + 2 - len(said)
        length = int.from_bytes(said[NONCE : NONCE + 2], "big")
        return NONCE + 2 + length + PROOF - len(said) if length <= LONGEST_NAME else -1

    def judge(self, caller: Caller) -> None:
        import hmac

        nonce, name, said = caller.said[:NONCE], caller.said[NONCE + 2 : -PROOF], caller.said[-PROOF:]
        host = name.decode("utf-8", "replace")
        parts = (caller.nonce, nonce, name)
        if not hmac.compare_digest(said, proof(self.secret, b"proxy", *parts)) or host not in self.expected:
            self.dismiss(caller)
            return
        try:
            sent = caller.connection.send(proof(self.secret, b"launcher", *parts))
        except OSError:
            sent = 0
        if sent < PROOF:
            self.dismiss(caller)
            return
        self.expected.discard(host)
        self.forget(caller)
        if not self.expected:
            self.close()
        down, up = proof(self.secret, b"down", *parts), proof(self.secret, b"up", *parts)
        self.admit(host, caller.connection, down, up)

    def forget(self, caller: Caller) -> None:
        self.callers.remove(caller)
        self.loop.drop_timer(f"caller {id(caller)}")
        self.loop.unwatch(caller.connection.fileno())

    def dismiss(self, caller: Caller) -> None:
        self.forget(caller)
        caller.connection.close()

    def close(self) -> None:
        """Nobody else is to come."""
        if self.listener.fileno() >= 0:
            self.loop.unwatch(self.listener.fileno())
            self.loop.drop_timer("reception")
            self.listener.close()
        for caller in list(self.callers):
            self.dismiss(caller)


def call(addresses: list[str], port: int, secret: bytes, name: str, seconds: float) -> tuple[socket.socket, bytes, bytes]:
    """The proxy's side: the connection to the launcher, and the keys of what goes out and of what comes in.

    Parameters:
        addresses: the launcher's, the likeliest first.
        seconds: each address has so long.

    Errors: OSError that names every address, and what was wrong with it.
    """
    for last in (*[False] * (ROUNDS - 1), True):
        problems = []
        for address in addresses:
            try:
                connection = socket.create_connection((address, port), timeout=seconds)
            except OSError as error:
                problems.append(f"{address} port {port}: {error}")
                continue
            try:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return connection, *greet(connection, secret, name.encode())
            except OSError as error:
                connection.close()
                problems.append(f"{address} port {port}: {error}")
        # Among very many callers this one may have been taken for one of those that say nothing.
        time.sleep(0 if last else RETRY)
    raise OSError("; ".join(problems))


def greet(connection: socket.socket, secret: bytes, name: bytes) -> tuple[bytes, bytes]:
    """Prove who this is, and see that the other one is the launcher; the keys of what goes out and of what comes in."""
    import hmac

    theirs, nonce = exactly(connection, NONCE), os.urandom(NONCE)
    parts = (theirs, nonce, name)
    connection.sendall(nonce + len(name).to_bytes(2, "big") + name + proof(secret, b"proxy", *parts))
    if not hmac.compare_digest(exactly(connection, PROOF), proof(secret, b"launcher", *parts)):
        raise OSError("whoever listens there is not the launcher")
    return proof(secret, b"up", *parts), proof(secret, b"down", *parts)


def exactly(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = connection.recv(count - len(data))
        if not piece:
            raise OSError("whoever listens there has closed the connection")
        data += piece
    return data
