"""Conversations with a rank's port that begin like ZeroMQ's, at each level of security: none of them delivers a byte."""

from __future__ import annotations

import contextlib
import os
import random
import socket

from mutation import mutated

MECHANISMS = {"none": b"NULL", "plain": b"PLAIN", "curve": b"CURVE"}
IDENTITY = b"\x01" + bytes(4) + bytes(range(16))
# Connections that stand open at once, so that some are half way when others end.
OPEN = 40


def command(name: bytes, data: bytes = b"") -> bytes:
    """A command of ZMTP 3 (ZeroMQ RFC 23)."""
    body = bytes([len(name)]) + name + data
    return (bytes([4, len(body)]) if len(body) < 256 else b"\x06" + len(body).to_bytes(8, "big")) + body


def properties(identity: bytes, kind: bytes) -> bytes:
    pairs = ((b"Socket-Type", kind), (b"Identity", identity))
    return b"".join(bytes([len(name)]) + name + len(value).to_bytes(4, "big") + value for name, value in pairs)


def message(*parts: bytes) -> bytes:
    return b"".join(
        (bytes([int(part is not parts[-1]), len(part)]) if len(part) < 256 else bytes([2 + int(part is not parts[-1])])
         + len(part).to_bytes(8, "big")) + part
        for part in parts
    )  # fmt: skip


def greeting(mechanism: bytes) -> bytes:
    return b"\xff" + bytes(8) + b"\x7f\x03\x00" + mechanism.ljust(20, b"\0") + b"\0" + bytes(31)


class UnauthenticatedCallers:
    """Callers at one level of security."""

    def __init__(self, security: str) -> None:
        self.name = f"zmq-{security}"
        self.security = security

    def begin(self) -> None:
        from ompy_btl_zmq.component import COMPONENT
        from ompy_btl_zmq.module import ZmqBtl

        from ompy.mca.btl import Receiver
        from ompy.mca.rte import Rte

        class Inbox(Receiver):
            def receive(inbox, btl: object, endpoint: object, data: memoryview) -> int:
                self.delivered.append(bytes(data))
                return 0

        self.delivered: list[bytes] = []
        self.inbox = Inbox()
        rte = Rte()
        rte.job, rte.size, rte.local_size, rte.secret = "hostile", 2, 2, os.urandom(32)
        values = {it.name: it.default for it in COMPONENT.parameters} | {"security": self.security, "handshake_timeout": 300}
        self.btl = ZmqBtl(rte, values.__getitem__)
        for tag in range(256):
            self.btl.register(tag, self.inbox)
        host, _, port = self.btl.url.removeprefix("tcp://").rpartition(":")
        self.address = host, int(port)
        self.callers: list[socket.socket] = []

    def make(self, rng: random.Random) -> object:
        mechanism = rng.choice((MECHANISMS[self.security], *MECHANISMS.values()))
        ready = command(
            b"READY",
            properties(
                rng.choice((b"", IDENTITY, b"\x02" * 17, b"\x00x", b"x" * 255)), rng.choice((b"DEALER", b"ROUTER", b"PUB"))
            ),
        )
        hello = {
            b"NULL": ready,
            b"PLAIN": command(b"HELLO", b"\x04user\x04pass") + command(b"INITIATE", properties(IDENTITY, b"DEALER")),
            b"CURVE": command(b"HELLO", rng.randbytes(194)) + command(b"INITIATE", rng.randbytes(200)),
        }[mechanism]
        after = [
            message(b"forged\x11"),
            message(b"", b"\x11"),
            message(b"a", b"b", b"c\x11"),
            message(b""),
            message(b"x" * 300),
        ]
        after += [
            command(b"PING", b"\0\0x"),
            command(b"SUBSCRIBE"),
            b"\x02" + b"\xff" * 8,
            b"\x02" + (1 << 40).to_bytes(8, "big"),
        ]
        pieces = [greeting(mechanism), hello, *(rng.choice(after) for _ in range(rng.randrange(5)))]
        spoilt = rng.randrange(len(pieces))
        if rng.random() < 0.8:
            pieces[spoilt] = mutated(rng, pieces[spoilt], pieces)
        data = b"".join(pieces)
        return data[: rng.randrange(len(data) + 1)] if rng.random() < 0.2 else data

    def carry_out(self, given: object) -> str:
        caller = socket.socket()
        caller.setblocking(False)
        caller.connect_ex(self.address)
        self.callers.append(caller)
        self.progress()
        with contextlib.suppress(OSError):  # it waits in the queue, or has been thrown out already
            caller.send(given)  # type: ignore[arg-type]
        self.progress()
        if len(self.callers) >= OPEN:
            self.callers.pop(0).close()
        return f"a stranger's {self.delivered.pop()!r} was delivered" if self.delivered else ""

    def progress(self) -> None:
        for _ in range(3):
            self.btl.progress()

    def settle(self) -> None:
        """Until the last caller has gone, and ZeroMQ knows."""
        import time

        for caller in self.callers:
            caller.close()
        self.callers.clear()
        end = time.monotonic() + 10
        while self.btl.callers.unproven and time.monotonic() < end:
            self.btl.progress()
            time.sleep(0.001)

    def show(self, given: object) -> str:
        return repr(given)[:1500]
