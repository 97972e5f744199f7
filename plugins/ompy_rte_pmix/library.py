"""Which libpmix: the launcher's own where that can be seen, since one of another version need not understand its server."""

from __future__ import annotations

import os

from ompy.core.errors import MPIError
from ompy_rte_pmix.client import Client

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "libpmix.so.2"
# Beneath a prefix.
PLACES = ("lib", "lib64", "lib/openmpi")
# Shells and tools between a launcher and its rank, at most.
ANCESTORS = 8


def connected(wanted: str) -> Client:
    """A client that the launcher's server has let in.

    Parameters:
        wanted: path of the library; empty for the first that serves of those that there may be.

    Errors: OSError where there is none; MPIError with the reason where none serves.
    """
    problem: OSError | MPIError | None = None
    for path in dict.fromkeys([wanted] if wanted else candidates()):
        try:
            client = Client(path)
            client.begin()
        except (OSError, MPIError) as error:
            problem = problem or error
            continue
        return client
    assert problem is not None
    raise problem


def candidates() -> Iterator[str]:
    """Mapped by the launcher; beneath its prefix; as the linker finds it."""
    pid = os.getppid()
    for _ in range(ANCESTORS):
        yield from mapped(pid)
        pid = parent(pid)
        if pid <= 1:
            break
    for variable in ("PMIX_PREFIX", "PMIX_INSTALL_PREFIX"):
        for place in PLACES:
            path = os.path.join(os.environ.get(variable, ""), place, NAME)
            if variable in os.environ and os.path.exists(path):
                yield path
    yield NAME


def mapped(pid: int) -> list[str]:
    """The libpmix of another process; nothing where it has none, or is not ours to see."""
    try:
        with open(f"/proc/{pid}/maps") as lines:
            paths = {line.split(maxsplit=5)[5].strip() for line in lines if "/libpmix.so" in line}
    except OSError:
        return []
    return sorted(path for path in paths if os.path.exists(path))


def parent(pid: int) -> int:
    """Its parent's number; 0 where that can't be known."""
    try:
        with open(f"/proc/{pid}/stat") as line:
            return int(line.read().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0
