"""Ports under names (MPI-4.1, 11.9.4): the launcher keeps them for its ranks, files do for the user's jobs on this host.

    /dev/shm/ompy-name.<service>.<job>      one line: the port's string; mode 600

The launcher removes what a killed rank has left of its job's; a process without one removes its own.
"""

from __future__ import annotations

import contextlib
import os

from ompy.runtime.keeper import SEGMENTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ompy.runtime.instance import Instance

PREFIX = "ompy-name"
LONGEST = 120

# Published by this process: service -> file.
published: dict[str, str] = {}


def stem(service: str) -> str:
    """A service's name as part of a file's: different ones stay different."""
    plain = "".join(sign if sign.isalnum() and sign.isascii() else f"-{ord(sign):x}-" for sign in service)
    if len(plain) > LONGEST:
        from hashlib import sha256

        plain = sha256(service.encode("utf-8", "backslashreplace")).hexdigest()
    return f"{PREFIX}.{plain}."


def publish(instance: Instance, service: str, port: str) -> bool:
    """False when the name is taken."""
    if service in published or lookup(instance, service):
        return False
    with instance.launcher_lock:
        instance.rte.publish(service, port)
    name = f"{stem(service)}{instance.rte.job.replace('/', '-')}.{os.getpid()}"
    written = f"{SEGMENTS}/new-{name}"
    name = f"{SEGMENTS}/{name}"
    with contextlib.suppress(OSError):
        descriptor = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, port.encode())
            # Whoever finds the name finds the whole port under it.
            os.link(written, name)
        finally:
            os.close(descriptor)
            os.unlink(written)
    published[service] = name
    return True


def lookup(instance: Instance, service: str) -> str:
    """The port; empty when there is none."""
    with instance.launcher_lock:
        found = instance.rte.lookup(service)
    return found or in_files(service)


def in_files(service: str) -> str:
    beginning = stem(service)
    with contextlib.suppress(OSError):
        for name in sorted(os.listdir(SEGMENTS)):
            if name.startswith(beginning):
                path = f"{SEGMENTS}/{name}"
                pid = name.rpartition(".")[2]
                with contextlib.suppress(OSError), open(path) as source:
                    if os.fstat(source.fileno()).st_uid != os.geteuid():
                        continue
                    if pid.isdecimal() and os.path.exists(f"/proc/{pid}"):
                        return source.read()
                    os.unlink(path)  # of a process that had no time to do so
    return ""


def unpublish(instance: Instance, service: str) -> bool:
    """False for a name that this process has not published."""
    name = published.pop(service, None)
    if name is None:
        return False
    with instance.launcher_lock:
        instance.rte.unpublish(service)
    with contextlib.suppress(OSError):
        os.unlink(name)
    return True


def unpublish_all(instance: Instance) -> None:
    """At the end of MPI."""
    for service in list(published):
        unpublish(instance, service)
