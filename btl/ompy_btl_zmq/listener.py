"""The listening socket, which can be shut for a while.

    open   SYN -> queue -> ZeroMQ accepts
    shut   SYN -> dropped by a filter; the caller's system calls again after a second, then two, then four

ZeroMQ accepts whoever calls, and has no bound.  To take the socket away from it would end the connections that it has
accepted, and a listening socket has no other switch: so a filter (socket(7), SO_ATTACH_FILTER) drops what arrives at it.
Connections that are made already have sockets of their own, which it does not reach.
"""

from __future__ import annotations

import os
import struct
from _socket import SOL_SOCKET
from _socket import socket as Socket

from ompy.core.memory import address_of

SO_ATTACH_FILTER = 26
SO_DETACH_FILTER = 27
# One instruction (linux/filter.h): return 0, the number of bytes to keep.
DROP = bytearray(struct.pack("HBBI", 0x06, 0, 0, 0))


class Listener:
    """The socket, and whether callers come to it.

    Parameters:
        socket: that listens.

    Attributes:
        is_open: whether it takes calls.
    """

    def __init__(self, socket: Socket) -> None:
        self.socket = socket
        self.is_open = True

    def hand_over(self) -> int:
        """A descriptor of the socket for somebody who accepts, and closes it in the end."""
        return os.dup(self.socket.fileno())

    def shut(self) -> bool:
        """False when it was shut, or the system has no filters: then callers are accepted as before."""
        if not self.is_open:
            return False
        program = struct.pack("HP", 1, address_of(DROP))
        try:
            self.socket.setsockopt(SOL_SOCKET, SO_ATTACH_FILTER, program)
        except OSError:
            return False
        self.is_open = False
        return True

    def open(self) -> None:
        if not self.is_open:
            self.socket.setsockopt(SOL_SOCKET, SO_DETACH_FILTER, 0)
            self.is_open = True

    def close(self) -> None:
        self.socket.close()
