"""Datagrams on Unix sockets: each process has one socket, and a peer's name is all that is needed to write to it."""

from __future__ import annotations

import socket

from ompy.mca.btl import BACK_PRESSURE, IN_ORDER, SEND, TAKEN, Btl, Descriptor, Endpoint


class MailboxBtl(Btl):
    def __init__(self, max_send_size: int) -> None:
        self.name = "mailbox"
        self.flags = SEND | IN_ORDER
        self.max_send_size = max_send_size
        self.exclusivity = 1000
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.socket.bind("")  # the system finds a free abstract name
        self.endpoints: dict[bytes, Endpoint] = {}
        self.held_back = False

    def address(self) -> bytes:
        return self.socket.getsockname()

    def add_procs(self, procs):
        return [self.endpoint(proc) if proc.is_local and self.name in proc.card else "it has no mailbox here" for proc in procs]

    def endpoint(self, proc) -> Endpoint:
        return self.endpoints.setdefault(proc.card[self.name], Endpoint(self, proc))

    def send(self, endpoint: Endpoint, descriptor: Descriptor, tag: int) -> int:
        try:
            self.socket.sendto(bytes([tag]) + descriptor.view + descriptor.payload_view, endpoint.proc.card[self.name])
        except BlockingIOError:
            self.held_back = True
            return BACK_PRESSURE
        descriptor.complete()
        return TAKEN

    def progress(self) -> int:
        self.held_back = False
        try:
            data, sender = self.socket.recvfrom(self.max_send_size + 1)
        except BlockingIOError:
            return 0
        self.deliver_view(data[0], self.endpoints.get(sender), data[1:])
        return 1

    def descriptor(self) -> int:
        return self.socket.fileno()

    def may_sleep(self) -> bool:
        return not self.held_back  # a full mailbox wakes nobody when it has room again

    def finalize(self) -> int:
        self.socket.close()
        return 0
