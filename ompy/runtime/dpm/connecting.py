"""Accept, Connect and Join: what each side's root does until it has a channel, and the meeting behind it."""

from __future__ import annotations

import os
import socket
import time

from ompy.core.board import show_call, show_running
from ompy.core.errors import ERR_ARG, ERR_OTHER, MPIError
from ompy.core.progress import serve_until_readable
from ompy.runtime.dpm import port as ports
from ompy.runtime.dpm.channel import Channel
from ompy.runtime.dpm.meeting import meet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ompy.core.communicator import Communicator
    from ompy.runtime.dpm.port import Port
    from ompy.runtime.instance import Instance

SALUTE = b"ompy join 1\n"
JOIN_LIMIT = 60.0


def accept(
    instance: Instance, comm: Communicator, root: int, port: Callable[[], Port], limit: Callable[[], float]
) -> Communicator:
    """`port` and `limit` (seconds, 0 for none) are asked on the root alone."""

    def opened() -> Channel:
        it, seconds = port(), limit()
        show_call("Comm_accept", it.where)
        try:
            return it.accept(seconds)
        finally:
            show_running()

    return meet(instance, comm, root, opened)


def connect(
    instance: Instance, comm: Communicator, root: int, name: Callable[[], str], limit: Callable[[], float]
) -> Communicator:
    """`name` of the port and `limit` (seconds) are asked on the root alone."""

    def opened() -> Channel:
        show_call("Comm_connect", ports.readable(name()))
        try:
            return ports.connect(name(), limit())
        finally:
            show_running()

    return meet(instance, comm, root, opened)


def join(instance: Instance, descriptor: int) -> Communicator:
    """With the process at the other end of a connected stream socket, which stays the program's and is as it was."""

    def opened() -> Channel:
        copy = -1
        try:
            copy = os.dup(descriptor)
            connection = socket.socket(fileno=copy)
        except OSError as error:
            if copy >= 0:
                os.close(copy)
            raise MPIError(ERR_ARG, f"fd: a connected stream socket expected: {error.strerror}") from error
        port = ports.Port(everywhere=True)
        try:
            ours = port.name.encode()
            theirs = swap(connection, ours)
            # Both have the same two strings: the smaller one is called.
            if ours < theirs:
                return port.accept(JOIN_LIMIT)
            return ports.connect(theirs.decode("ascii", "replace"), JOIN_LIMIT)
        finally:
            port.close()
            connection.close()

    return meet(instance, instance.own, 0, opened)


def swap(connection: socket.socket, ours: bytes) -> bytes:
    """Each other's port over the program's socket."""
    blocking = connection.getblocking()
    connection.setblocking(True)
    deadline = time.monotonic() + JOIN_LIMIT
    try:
        connection.sendall(SALUTE + len(ours).to_bytes(2, "big") + ours)
        came = take(connection, len(SALUTE) + 2, deadline)
        if not came.startswith(SALUTE):
            raise MPIError(ERR_OTHER, "fd: who is at the other end of the socket did not call Join")
        return take(connection, int.from_bytes(came[-2:], "big"), deadline)
    except OSError as error:
        raise MPIError(ERR_OTHER, f"fd: the socket has failed: {error.strerror}") from error
    finally:
        connection.setblocking(blocking)


def take(connection: socket.socket, size: int, deadline: float) -> bytes:
    data = b""
    while len(data) < size:
        left = deadline - time.monotonic()
        if left < 0:
            raise MPIError(ERR_OTHER, f"fd: nobody has called Join at the other end of the socket for {JOIN_LIMIT:g} s")
        serve_until_readable(connection.fileno(), left)
        try:
            piece = connection.recv(size - len(data), socket.MSG_DONTWAIT)
        except BlockingIOError:
            continue
        if not piece:
            raise MPIError(ERR_OTHER, "fd: the other end of the socket is closed")
        data += piece
    return data
