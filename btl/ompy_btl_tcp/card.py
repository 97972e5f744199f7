"""What a process publishes for its peers: where it listens, and what both must agree on."""

from __future__ import annotations

import ipaddress
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ompy_btl_tcp.interfaces import Interface


class Address(NamedTuple):
    """One listening socket."""

    interface: Interface
    port: int

    def __str__(self) -> str:
        host = self.interface.ip
        return f"[{host}]:{self.port}" if host.version == 6 else f"{host}:{self.port}"


class Card(NamedTuple):
    """`security`, `largest` and `window` (bytes) are the parameters `security`, `max_send_size` and `failover_window`.

    `window` is 0 where a pair has one connection, and its loss is the peer's.
    """

    security: str
    largest: int
    addresses: tuple[Address, ...]
    window: int = 0


class Way(NamedTuple):
    """From one of this host's addresses, or whichever the system takes (""), to one of the peer's."""

    source: str
    address: Address


def pack(card: Card) -> bytes:
    """A line: `secret 131072 0 10.0.0.5/24 41234 fd00::5/64 36001`."""
    fields = [card.security, str(card.largest), str(card.window)]
    for address in card.addresses:
        fields += [str(address.interface), str(address.port)]
    return " ".join(fields).encode()


def unpack(data: bytes) -> Card:
    """The reverse of `pack`; ValueError for what is none."""
    security, largest, window, *rest = data.decode("ascii").split(" ")
    if not rest or len(rest) % 2:
        raise ValueError(f"{data!r} has no addresses with ports")
    addresses = tuple(Address(ipaddress.ip_interface(rest[at]), int(rest[at + 1])) for at in range(0, len(rest), 2))
    if not all(0 < address.port < 1 << 16 for address in addresses):
        raise ValueError(f"{data!r} names a port that is none")
    return Card(security, int(largest), addresses, int(window))


def candidates(theirs: Card, ours: Sequence[Interface], is_local: bool) -> list[Address]:
    """The peer's addresses that are worth a try from here, those on a subnet of ours first.

    What is an address of this host as well (loopback, a bridge that has the same on every host) leads to no peer elsewhere.
    """
    own = {interface.ip for interface in ours}
    some = [it for it in theirs.addresses if is_local or not (it.interface.is_loopback or it.interface.ip in own)]
    return sorted(some, key=lambda it: not any(it.interface.ip in interface.network for interface in ours))


def ways(theirs: Card, ours: Sequence[Interface], is_local: bool) -> list[Way]:
    """Ways to the peer that share as little as can be, in an order that is the same at both ends where subnets are shared.

    On each common subnet the first address here goes with the first there, and so on round both; IPv4 comes before IPv6.
    """
    reachable = candidates(theirs, ours, is_local)
    networks = {interface.network for interface in ours}
    found: list[Way] = []
    for network in sorted(networks, key=lambda it: (it.version, int(it.network_address), it.prefixlen)):
        here = sorted({it.ip for it in ours if it.network == network}, key=int)
        there = sorted((it for it in reachable if it.interface.ip in network), key=lambda it: (int(it.interface.ip), it.port))
        if there:
            steps = range(max(len(here), len(there)))
            found += [Way(str(here[step % len(here)]), there[step % len(there)]) for step in steps]
    met = {way.address for way in found}
    return found + [Way("", address) for address in reachable if address not in met]
