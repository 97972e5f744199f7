"""What happens to a socket's connections, as ZeroMQ tells it."""

from __future__ import annotations

import struct

import zmq

EVENTS = (
    zmq.EVENT_CONNECTED
    | zmq.EVENT_DISCONNECTED
    | zmq.EVENT_HANDSHAKE_SUCCEEDED
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
)
FAILED = zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_AUTH
EVENT = struct.Struct("=Hi")


class ConnectionMonitor:
    """The events of one socket's connections, in order."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], watched: zmq.Socket[bytes]) -> None:
        where = f"inproc://monitor-{id(watched):x}"
        watched.monitor(where, EVENTS)
        self.watched = watched
        self.socket = context.socket(zmq.PAIR)
        # The watched socket's I/O thread writes here and would wait for room: however many strangers call, there is some.
        self.socket.setsockopt(zmq.RCVHWM, 0)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.connect(where)

    def events(self) -> list[tuple[int, int, str]]:
        """What has happened since the last call: event, value, and the URL listened on or connected to."""
        found = []
        while self.socket.getsockopt(zmq.EVENTS) & zmq.POLLIN:
            packed, where = self.socket.recv_multipart()
            event, value = EVENT.unpack(packed)
            found.append((event, value, where.decode()))
        return found

    def close(self) -> None:
        self.watched.disable_monitor()
        self.socket.close()
