"""What a child made by fork inherits: connections that would outlive their rank with it.

A peer learns of this rank's end by the end of its connections, which TCP keeps as long as any process has them.  ZeroMQ has
no names for their descriptors, so they are told by their ports: a child finds them among all that it has.
"""

from __future__ import annotations

import os
from socket import AF_INET, AF_INET6, socket
from weakref import WeakSet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ompy_btl_zmq.module import ZmqBtl

# Transports that are open in this process.
transports: WeakSet[ZmqBtl] = WeakSet()


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


def port(name: Callable[[], tuple[str, int]]) -> int:
    """Of one end of a connection; 0 where there is none."""
    try:
        return name()[1]
    except OSError:
        return 0


def let_go() -> None:
    """In the child: put nothing in the place of each, so that no number of a descriptor means something else."""
    listening = {port_of(transport.url) for transport in transports}
    others = {port_of(url) for transport in transports for url in transport.peers_by_url}
    if not listening:
        return
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for number in map(int, os.listdir("/proc/self/fd")):
        try:
            inherited = socket(fileno=number)
        except OSError:
            continue  # no socket
        if inherited.family in (AF_INET, AF_INET6) and (
            port(inherited.getsockname) in listening or port(inherited.getpeername) in others
        ):
            os.dup2(nothing, number, inheritable=False)
        inherited.detach()
    os.close(nothing)


os.register_at_fork(after_in_child=let_go)
