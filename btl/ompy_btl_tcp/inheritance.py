"""What a child made by fork inherits: connections that would outlive their rank with it.

A peer learns of this rank's end by the end of its connections, which TCP keeps as long as any process has them.
"""

from __future__ import annotations

import os
from weakref import WeakSet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ompy_btl_tcp.module import TcpBtl

# Transports that are open in this process.
transports: WeakSet[TcpBtl] = WeakSet()


def let_go() -> None:
    """In the child: put nothing in the place of each, so that no number of a descriptor means something else."""
    numbers = [number for transport in transports for number in transport.descriptors()]
    if not numbers:
        return
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for number in numbers:
        os.dup2(nothing, number, inheritable=False)
    os.close(nothing)


os.register_at_fork(after_in_child=let_go)
