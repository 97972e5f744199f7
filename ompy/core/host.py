"""This process's host, as a number."""

from __future__ import annotations

# Of this process's host, once it was asked for.
number: int | None = None


def host_number() -> int:
    """A number that processes have in common exactly when they can share memory: drawn from host name and boot."""
    global number
    if number is None:
        from hashlib import blake2b
        from os import uname

        try:
            with open("/proc/sys/kernel/random/boot_id", "rb") as source:
                boot = source.read()
        except OSError:
            boot = b""
        number = int.from_bytes(blake2b(uname().nodename.encode() + boot, digest_size=7).digest(), "little")
    return number
