"""Where a process listens, and what its card says of it."""

from __future__ import annotations

import errno
import ipaddress
from _socket import AF_INET, AF_INET6, SO_REUSEADDR, SOCK_NONBLOCK, SOCK_STREAM, SOL_SOCKET
from _socket import socket as Socket
from typing import NamedTuple

LOOPBACK = "127.0.0.1"


class Card(NamedTuple):
    """What a peer must know: where to connect, how to introduce itself, and the public key that encryption starts from."""

    url: str
    security: str
    key: bytes


def pack(card: Card) -> bytes:
    return b" ".join((card.url.encode(), card.security.encode(), card.key or b"-"))


def unpack(data: bytes) -> Card:
    """The reverse of `pack`; ValueError for what is none, an address that is no number among it."""
    url, security, key = data.decode("ascii").split(" ")
    port = url.rpartition(":")[2]
    if not url.startswith("tcp://") or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise ValueError(f"{url!r} is no address of TCP")
    ipaddress.ip_address(host_of(url))
    return Card(url, security, b"" if key == "-" else key.encode())


def is_loopback(url: str) -> bool:
    return ipaddress.ip_address(host_of(url)).is_loopback


def host_of(url: str) -> str:
    return url.removeprefix("tcp://").rpartition(":")[0].strip("[]")


def addresses() -> dict[str, str]:
    """IPv4 address of each network interface that is up."""
    import socket

    import psutil

    up = {name for name, status in psutil.net_if_stats().items() if status.isup}
    found: dict[str, str] = {}
    for name, entries in psutil.net_if_addrs().items():
        for entry in entries:
            if name in up and entry.family == socket.AF_INET:
                found.setdefault(name, entry.address)
    return found


def choose(interfaces: str, one_host: bool, link: int = 0) -> str:
    """The address to listen on.

    Parameters:
        interfaces: `btl_zmq_interface`: names and addresses, or empty.
        one_host: every rank of the job is on this host.
        link: which of several it is for, from 0 on; they go round the interfaces.

    Errors: OSError that names the parameter and what is there.
    """
    listed = [entry.strip() for entry in interfaces.split(",") if entry.strip()]
    if not listed and one_host:
        return LOOPBACK
    if listed:
        interface = listed[link % len(listed)]
        try:
            return str(ipaddress.ip_address(interface))
        except ValueError:
            pass
        present = addresses()
        if interface in present:
            return present[interface]
        known = ", ".join(f"{name} ({address})" for name, address in sorted(present.items()))
        raise OSError(f"btl_zmq_interface: no interface {interface!r} is up here; there are {known}")
    outside = [address for address in addresses().values() if not ipaddress.ip_address(address).is_loopback]
    return outside[link % len(outside)] if outside else LOOPBACK


def listen(host: str, port_min: int, port_range: int, first: int, backlog: int) -> tuple[Socket, str]:
    """A listening socket on a free port, and the URL that peers connect to.

    Parameters:
        host: from `choose`.
        port_min, port_range: the parameters of the same names; `port_min` 0 for any free port.
        first: where in the range to begin, so that the ranks of a host do not all try the same ports.
        backlog: callers that the system lets wait.

    Errors: OSError that names the parameter and the remedy.
    """
    family, where = (AF_INET6, f"[{host}]") if ":" in host else (AF_INET, host)
    ports = [port_min + (first + step) % port_range for step in range(port_range)] if port_min else [0]
    for port in ports:
        listener = Socket(family, SOCK_STREAM | SOCK_NONBLOCK)
        try:
            listener.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
            listener.bind((host, port))
            listener.listen(backlog)
        except (OSError, OverflowError) as error:
            listener.close()
            if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
                continue
            reason = f"btl_zmq_interface: can't listen on {host}, port {port}: {getattr(error, 'strerror', error)}"
            raise OSError(f"{reason}; choose an address of this host, and ports from 1024 up with btl_zmq_port_min") from None
        return listener, f"tcp://{where}:{listener.getsockname()[1]}"
    last = port_min + port_range - 1
    raise OSError(
        f"btl_zmq_port_min, btl_zmq_port_range: every port from {port_min} to {last} of {host} is in use; "
        "give a wider range, another btl_zmq_port_min, or 0 for any free port"
    )
