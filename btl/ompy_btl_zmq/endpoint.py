"""A peer as btl/zmq sees it."""

from __future__ import annotations

import os

from ompy.core.proc import Proc
from ompy.mca.btl import Btl, Endpoint
from ompy_btl_zmq.address import Card

# Our own names for connections that we made; never an identity, which begins otherwise.  Nobody can guess the rest: libzmq
# ends the process where it is to make a connection under a name that a caller from outside has taken already.
MARK = b"\x02"
NAME_SIZE = 16


class ZmqEndpoint(Endpoint):
    """Where a peer listens, and how far the connection to it has come.

    Attributes:
        card: what the peer published.
        identity: under which its messages arrive.
        name: what our socket calls the connection that we make to it.
        connected: a connection was asked for, at the first message.
        deadline: when to give up on somebody answering there, in seconds of `time.monotonic`; 0 once TCP has connected.
        connection: its descriptor, as ZeroMQ's events name it.
        established: the peer has let us in.
        departed: the peer has said goodbye, so that losing the connection is no failure.
        failure: why contact was lost, or None.
    """

    card: Card
    identity: bytes
    name: bytes
    connected: bool
    deadline: float
    connection: int
    established: bool
    departed: bool
    failure: Exception | None

    def __init__(self, btl: Btl, proc: Proc, card: Card, identity: bytes) -> None:
        super().__init__(btl, proc)
        self.card = card
        self.identity = identity
        self.departed = False
        self.begin()

    def begin(self) -> None:
        """No connection was asked for."""
        self.name = MARK + os.urandom(NAME_SIZE)
        self.connected = False
        self.deadline = 0.0
        self.connection = -1
        self.established = False
        self.failure = None
