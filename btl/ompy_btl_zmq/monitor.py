"""What happens to a socket's connections, as ZeroMQ tells it."""

from __future__ import annotations

import struct

import zmq

EVENTS = (
    zmq.EVENT_ACCEPTED
    | zmq.EVENT_CONNECTED
    | zmq.EVENT_DISCONNECTED
    | zmq.EVENT_HANDSHAKE_SUCCEEDED
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
)
EVENT = struct.Struct("=Hi")


class Callers:
    """Tells peers from others among those who connect to us, from the events of the listening socket.

    ZeroMQ names the connection (by its descriptor) when it is accepted and when it is gone, but not when its handshake
    succeeds, and says nothing of the handshake when the caller speaks something older than ZMTP 2.  So those who are
    admitted are found by counting:

        accepted 5, accepted 6, success, gone 6     two unproven, one of them is good; 6 leaves, so it was 5
    """

    def __init__(self) -> None:
        self.unproven: set[int] = set()
        self.successes = 0  # among the unproven
        self.admitted: set[int] = set()
        self.rejected = 0

    def waiting(self) -> int:
        """How many have not shown yet whether they belong to the job."""
        return len(self.unproven) - self.successes

    def follow(self, event: int, connection: int) -> None:
        if event == zmq.EVENT_ACCEPTED:
            self.unproven.add(connection)
        elif event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
            self.successes += 1
        elif event == zmq.EVENT_DISCONNECTED:
            if connection in self.unproven:
                self.unproven.discard(connection)
                self.rejected += 1
            self.admitted.discard(connection)
        if self.successes and self.successes >= len(self.unproven):
            self.admitted |= self.unproven
            self.unproven.clear()
            self.successes = 0


class ConnectionMonitor:
    """The events of one socket's connections, in order."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], watched: zmq.Socket[bytes]) -> None:
        where = f"inproc://monitor-{id(watched):x}"
        watched.monitor(where, EVENTS)
        self.watched = watched
        self.socket = context.socket(zmq.PAIR)
        # The watched socket's I/O thread writes here and would wait for room: however many call, there is some.
        self.socket.setsockopt(zmq.RCVHWM, 0)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.connect(where)

    def events(self) -> list[tuple[int, int, str]]:
        """What has happened since the last call: event, value, and the URL listened on or connected to."""
        found = []
        while int(self.socket.getsockopt(zmq.EVENTS)) & zmq.POLLIN:
            packed, where = self.socket.recv_multipart()
            event, value = EVENT.unpack(packed)
            found.append((event, value, where.decode()))
        return found

    def close(self) -> None:
        self.watched.disable_monitor()
        self.socket.close()
