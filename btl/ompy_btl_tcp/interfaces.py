"""The network interfaces of this host, and those of them that the job may use."""

from __future__ import annotations

import ipaddress
from ipaddress import IPv4Interface, IPv6Interface

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Interface = IPv4Interface | IPv6Interface

LOOPBACK = ipaddress.ip_interface("127.0.0.1/8")


def present() -> dict[str, list[Interface]]:
    """The addresses, with their subnets, of each interface that is up: IPv4 first, and none that is good on its link alone."""
    import socket

    import psutil

    up = {name for name, status in psutil.net_if_stats().items() if status.isup}
    found: dict[str, list[Interface]] = {}
    for name, entries in psutil.net_if_addrs().items():
        for entry in entries:
            if name not in up or entry.family not in (socket.AF_INET, socket.AF_INET6) or "%" in entry.address:
                continue
            found.setdefault(name, []).append(ipaddress.ip_interface(f"{entry.address}/{prefix(entry.netmask)}"))
    for addresses in found.values():
        addresses.sort(key=lambda address: address.version)
    return found


def prefix(mask: str | None) -> str:
    """How `ip_interface` wants a mask, which systems give in several ways, and not at all for a link of two ends."""
    if mask is None:
        return ""
    if ":" not in mask:
        return mask
    return str(int(ipaddress.IPv6Address(mask.partition("/")[0])).bit_count())


def matches(name: str, interface: Interface, listed: str) -> bool:
    """Whether one entry of a list means this address of the interface called `name`."""
    if listed == name:
        return True
    try:
        return interface.ip in ipaddress.ip_network(listed, strict=False)
    except (TypeError, ValueError):
        return False


def entries(parameter: str, text: str, there: Mapping[str, Sequence[Interface]]) -> list[str]:
    """The entries of a list.  Raises OSError, which names the parameter and what is there, for one that means nothing here."""
    listed = [entry.strip() for entry in text.split(",") if entry.strip()]
    for entry in listed:
        if not any(matches(name, interface, entry) for name, all_of_it in there.items() for interface in all_of_it):
            known = ", ".join(f"{name} ({', '.join(str(it) for it in some)})" for name, some in sorted(there.items()))
            raise OSError(f"{parameter}: no interface, address or subnet {entry!r} is up here; there are {known}")
    return listed


def choose(include: str, exclude: str, one_host: bool) -> list[Interface]:
    """The addresses to listen on.

    Parameters:
        include, exclude: `btl_tcp_if_include`, `btl_tcp_if_exclude`.
        one_host: every rank of the job is on this host.

    Errors: OSError that names the parameter and what is there.
    """
    if one_host and not include and not exclude:
        return [LOOPBACK]
    there = present()
    wanted = entries("btl_tcp_if_include", include, there)
    refused = entries("btl_tcp_if_exclude", exclude, there) if exclude else []
    found = []
    for name, all_of_it in there.items():
        for interface in all_of_it:
            named = any(matches(name, interface, entry) for entry in wanted)
            if not any(matches(name, interface, entry) for entry in refused) and (
                named or (not wanted and interface.is_loopback == one_host)
            ):
                found.append(interface)
    if not found and not one_host and not wanted and not refused:
        return [LOOPBACK]
    if not found:
        raise OSError("btl_tcp_if_include, btl_tcp_if_exclude: no address of this host is left")
    return found
