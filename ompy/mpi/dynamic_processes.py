"""Processes that are started, or met, while a job runs (MPI-4.1, chapter 11).

What the calls mean is here: whose arguments count, what is wrong with them, which hints there are.  How groups become
acquainted is in `ompy.runtime.dpm`.
"""

from __future__ import annotations

import os
import sys

from ompy.core.errors import ERR_ARG, ERR_INFO_VALUE, ERR_NAME, ERR_PORT, ERR_ROOT, ERR_SERVICE, ERR_SPAWN, MPIError
from ompy.mpi.info import hints_of
from ompy.mpi.raising import hand_over

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ompy.core.communicator import Communicator
    from ompy.mca.rte import Order
    from ompy.mpi.info import Info
    from ompy.runtime.dpm.port import Port
    from ompy.runtime.instance import Instance

__all__ = ["Close_port", "Lookup_name", "Open_port", "Publish_name", "Unpublish_name"]

# Open ports of this process, by their strings.
ports: dict[str, Port] = {}
# To those that have spawned this process's job, or None.
parent: Communicator | None = None


def running() -> Any:
    from ompy.mpi.environment import instance

    return instance()


# --- ports


def Open_port(info: Info | None = None) -> str:
    """A port: the string by which others, of this job or any other, can `Connect` to whoever calls `Accept` (MPI-4.1, 11.9.2).

    It carries this host's addresses and the right to connect: whoever has the string has it.  It stays open until `Close_port`.
    """
    running()
    try:
        from ompy.runtime.dpm.port import Port

        port = Port(everywhere=True)
    except MPIError as error:
        hand_over(error, None)
    ports[port.name] = port
    return port.name


def Close_port(port_name: str) -> None:
    """Close a port (MPI-4.1, 11.9.2).  Errors: ERR_PORT for none of this process's."""
    running()
    port = ports.pop(port_name, None)
    if port is None:
        hand_over(MPIError(ERR_PORT, f"port_name: {port_name[:60]!r} is no open port of this process"), None)
    port.close()


def close(instance: Instance) -> None:
    """At the end of MPI: nobody can connect any more."""
    global parent
    while ports:
        ports.popitem()[1].close()
    parent = None
    if "ompy.runtime.dpm.names" in sys.modules:
        from ompy.runtime.dpm import names

        names.unpublish_all(instance)


def timeout(info: Info | None, default: float) -> float:
    """Seconds, of the hint `timeout`; 0 for no limit."""
    text = hints_of(info).get("timeout")
    if text is None:
        return default
    try:
        seconds = float(text)
        if not 0 <= seconds < float("inf"):
            raise ValueError(text)
        return seconds
    except ValueError:
        raise MPIError(ERR_INFO_VALUE, f"info: timeout: a number of seconds from 0 on expected, not {text!r}") from None


def check_root(comm: Communicator, root: int) -> None:
    if not 0 <= root < comm.size:
        raise MPIError(ERR_ROOT, f"root: a rank from 0 to {comm.size - 1} expected, got {root}")


def accept(comm: Communicator, port_name: str, info: Info | None, root: int) -> Communicator:
    """The group of whoever connects next to a port; everything but `root` counts on the root only.

    Errors: ERR_PORT for a string that is no open port of the root's, and where the hint `timeout` says how long to wait.
    """
    from ompy.runtime.dpm import connecting

    check_root(comm, root)

    def opened() -> Port:
        if port_name not in ports:
            raise MPIError(ERR_PORT, f"port_name: {str(port_name)[:60]!r} is no open port of this process: Open_port gives one")
        return ports[port_name]

    return connecting.accept(running(), comm, root, opened, lambda: timeout(info, 0.0))


def connect(comm: Communicator, port_name: str, info: Info | None, root: int) -> Communicator:
    """The group that accepts at a port; everything but `root` counts on the root only.

    Errors: ERR_PORT, with the addresses, when nobody accepts there within `mpi_connect_timeout` seconds, or the hint `timeout`.
    """
    from ompy.mca.params import registry
    from ompy.runtime.dpm import connecting

    check_root(comm, root)
    limit = registry.value("mpi_connect_timeout")
    return connecting.connect(running(), comm, root, lambda: port_name, lambda: timeout(info, limit) or limit)


def join(fd: int) -> Communicator:
    """The process at the other end of a connected stream socket (MPI-4.1, 11.10.5)."""
    from ompy.runtime.dpm import connecting

    return connecting.join(running(), fd)


# --- names


def Publish_name(service_name: str, port_name: str, info: Info | None = None) -> None:
    """Make a port known under a name (MPI-4.1, 11.9.4): to all whom the launcher serves, and to this user's jobs on this host.

    Errors: ERR_SERVICE when the name is taken.
    """
    try:
        from ompy.runtime.dpm import names, port

        port.parse(port_name)
        if not names.publish(running(), service_name, port_name):
            raise MPIError(ERR_SERVICE, f"service_name: {service_name!r} is published already")
    except MPIError as error:
        hand_over(error, None)


def Unpublish_name(service_name: str, port_name: str, info: Info | None = None) -> None:
    """Take back a name that this process has published (MPI-4.1, 11.9.4).  Errors: ERR_SERVICE for another one."""
    try:
        from ompy.runtime.dpm import names

        if not names.unpublish(running(), service_name):
            raise MPIError(ERR_SERVICE, f"service_name: this process has published no {service_name!r}")
    except MPIError as error:
        hand_over(error, None)


def Lookup_name(service_name: str, info: Info | None = None) -> str:
    """The port that is known under a name (MPI-4.1, 11.9.4).  Errors: ERR_NAME when there is none."""
    found = ""
    try:
        from ompy.runtime.dpm import names

        found = names.lookup(running(), service_name)
        if not found:
            raise MPIError(ERR_NAME, f"service_name: nobody here has published {service_name!r}")
    except MPIError as error:
        hand_over(error, None)
    return found


# --- further processes


def spawn(
    comm: Communicator, commands: Any, args: Any, maxprocs: Any, infos: Any, root: int
) -> tuple[Communicator, list[list[int]]]:
    """Start programs as one job (MPI-4.1, 11.8); everything but `root` counts on the root only.

    Returns the inter-communicator, and an error class for each process of each program.
    """
    from ompy.runtime.dpm import spawning

    check_root(comm, root)
    return spawning.spawn(running(), comm, root, lambda: orders(commands, args, maxprocs, infos))


def orders(commands: Sequence[Any], args: Any, maxprocs: Any, infos: Any) -> list[Order]:
    """What is to be started, from the root's arguments.  Errors: ERR_ARG, ERR_SPAWN, ERR_INFO_VALUE."""
    from ompy.mca.rte import Order

    found = []
    for command, own, count, info in zip(commands, args, maxprocs, infos, strict=True):
        if count < 1:
            raise MPIError(ERR_ARG, f"maxprocs: a positive number of processes expected, got {count}")
        name = os.fsdecode(command)
        if not name:
            raise MPIError(ERR_SPAWN, "command: the name of a program expected, got nothing")
        hints = hints_of(info)
        if "soft" in hints:
            check_soft(hints["soft"])
        if "mpi_initial_errhandler" in hints:
            check_errhandler(hints["mpi_initial_errhandler"])
        found.append(Order(name, words(own), count, hints))
    return found


def words(args: Any) -> list[str]:
    """Arguments of a program: none, one, or several."""
    if args is None:
        return []
    if isinstance(args, (str, bytes, os.PathLike)):
        return [os.fsdecode(args)]
    return [os.fsdecode(arg) for arg in args]


def check_errhandler(text: str) -> None:
    """`mpi_initial_errhandler`, of which a process that can't read it would only say so at its start."""
    from ompy.mca.params import registry

    choices = registry.entries["mpi_initial_errhandler"].parameter.choices or ()
    if text not in choices:
        raise MPIError(ERR_INFO_VALUE, f"info: mpi_initial_errhandler: {', '.join(choices)} expected, not {text!r}")


def check_soft(text: str) -> None:
    """`soft`: numbers and ranges `first:last:stride`; all processes can be started, so any set of numbers is met."""
    for part in text.split(","):
        if not all(word.strip().lstrip("-").isdecimal() for word in part.split(":")) or part.count(":") > 2:
            raise MPIError(ERR_INFO_VALUE, f"info: soft: numbers and ranges first:last:stride expected, not {text!r}")


def of_programs(commands: Any, args: Any, maxprocs: Any, info: Any) -> tuple[list[Any], list[Any], list[int], list[Any]]:
    """The arguments of `Spawn_multiple`, as many of each as there are programs.  ValueError for others."""
    if isinstance(commands, (str, bytes, os.PathLike)):
        raise ValueError("command: a sequence of programs expected, found one string")
    commands = list(commands)
    count = len(commands)

    def spread(value: Any, name: str) -> list[Any]:
        values = list(value)
        if len(values) != count:
            raise ValueError(f"{name}: {len(values)} were given for {count} programs")
        return values

    if isinstance(args, (str, bytes, os.PathLike)):
        raise ValueError("args: a sequence of arguments for each program expected, found one string")
    return (
        commands,
        [None] * count if args is None else spread(args, "args"),
        [1] * count if maxprocs is None else [maxprocs] * count if isinstance(maxprocs, int) else spread(maxprocs, "maxprocs"),
        spread(info, "info") if isinstance(info, (list, tuple)) else [info] * count,
    )


def meet_parent() -> None:
    """Where this job was spawned: become acquainted with those who have done so."""
    from ompy.runtime.dpm import spawning

    global parent
    parent = spawning.meet_parent(running())
