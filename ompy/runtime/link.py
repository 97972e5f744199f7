"""A connection between a launcher and a proxy, each of which knows that the other one has the job's secret.

    launcher                                                   proxy
       |  A: 32 random bytes                                ->   |
       |  <- B: 32 random bytes, its name, proof over A, B, name |      proof: HMAC-SHA-256 with the secret
       |  proof over A, B, name                             ->   |
       |  frames, each with a proof over its number and body <-> |      keys of their own for each direction

    frame:  4 bytes length of the body | 16 bytes proof | header as JSON, newline, data

What a stranger sends is no proof, and what he has overheard is none for another number, direction or connection.  Who listens
on the network can read what goes over it; the secret does not.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from socket import socket
    from typing import Any

    from ompy.runtime.loop import Loop

    Header = dict[str, Any]

NONCE = 32
PROOF = 32
FRAME_PROOF = 16
LONGEST_BODY = 32 * 1024 * 1024
LONGEST_NAME = 1024
PIECE = 1 << 18
# Of the time after which silence is the end, the share between two signs of life.
BEATS = 5


def proof(secret: bytes, purpose: bytes, *parts: bytes) -> bytes:
    """What only those who know the secret can say of the parts."""
    return hmac.digest(secret, b"".join(len(part).to_bytes(4, "big") + part for part in (purpose, *parts)), "sha256")


class Link:
    """One side of a connection.

    Parameters:
        loop: watches it.
        connection: to the other side; the link's from here on.
        outgoing, incoming: keys of the two directions.
        limit: seconds of silence after which the other side counts as lost.
        on_frame: takes header and data of what arrives.
        on_lost: is told once, in words, that nothing will come any more.
    """

    def __init__(
        self,
        loop: Loop,
        connection: socket,
        outgoing: bytes,
        incoming: bytes,
        limit: float,
        on_frame: Callable[[Header, bytes], None],
        on_lost: Callable[[str], None],
    ) -> None:
        self.loop = loop
        connection.setblocking(False)
        self.reader = connection.detach()
        # A loop watches a descriptor for one thing.
        self.writer = os.dup(self.reader)
        self.outgoing = outgoing
        self.incoming = incoming
        self.limit = limit
        self.on_frame = on_frame
        self.on_lost = on_lost
        self.sent = self.received = 0
        self.unsent = bytearray()
        self.partial = bytearray()
        self.is_open = True
        self.is_paused = False
        self.heard = self.looked = time.monotonic()
        loop.watch(self.reader, self.read)
        self.beat()

    def send(self, command: str, data: bytes = b"", **header: Any) -> None:
        """Queue a frame; nothing happens on a connection that is closed."""
        if not self.is_open:
            return
        body = json.dumps({"cmd": command} | header).encode() + b"\n" + data
        self.unsent += len(body).to_bytes(4, "big")
        self.unsent += self.proof_of(self.outgoing, self.sent, body)
        self.unsent += body
        self.sent += 1
        self.write()

    @staticmethod
    def proof_of(key: bytes, number: int, body: bytes) -> bytes:
        return hmac.digest(key, number.to_bytes(8, "big") + body, "sha256")[:FRAME_PROOF]

    def write(self) -> None:
        try:
            while self.unsent:
                written = os.write(self.writer, memoryview(self.unsent)[:PIECE])
                del self.unsent[:written]
        except BlockingIOError:
            self.loop.watch_writable(self.writer, self.write)
            return
        except OSError as error:
            self.lose(f"the connection is broken: {error.strerror}")
            return
        self.loop.unwatch(self.writer)

    def read(self) -> None:
        try:
            data = os.read(self.reader, PIECE)
        except BlockingIOError:
            return
        except OSError as error:
            self.lose(f"the connection is broken: {error.strerror}")
            return
        if not data:
            self.lose("it has closed the connection")
            return
        self.heard = time.monotonic()
        self.partial += data
        at = 0
        try:
            while self.is_open and len(self.partial) - at >= 4 + FRAME_PROOF:
                length = int.from_bytes(self.partial[at : at + 4], "big")
                begin = at + 4 + FRAME_PROOF
                if length > LONGEST_BODY:
                    self.lose("what came from there is not its own")
                    return
                if len(self.partial) < begin + length:
                    break
                body = bytes(self.partial[begin : begin + length])
                if not hmac.compare_digest(self.partial[at + 4 : begin], self.proof_of(self.incoming, self.received, body)):
                    self.lose("what came from there is not its own")
                    return
                self.received += 1
                at = begin + length
                head, _, rest = body.partition(b"\n")
                header = json.loads(head)
                if header["cmd"] != "beat":
                    self.on_frame(header, rest)
        finally:
            del self.partial[:at]

    # -- signs of life

    def beat(self) -> None:
        """Say that this side lives, and see whether the other one has said so."""
        if not self.is_open:
            return
        now = time.monotonic()
        pause = self.limit / BEATS
        if self.is_paused or now - self.looked > 2 * pause:
            # This side was stopped, or had no processor: it can't tell that the other one was silent.
            self.heard = now
        self.looked = now
        if now - self.heard >= self.limit:
            self.lose(f"nothing was heard from it for {self.limit:g} s")
            return
        self.send("beat")
        self.loop.set_timer(f"beat {self.reader}", min(pause, self.heard + self.limit - now), self.beat)

    def pause(self, is_paused: bool) -> None:
        """Whether the other side is known to be stopped: its silence then means nothing."""
        self.is_paused = is_paused
        self.heard = time.monotonic()

    # -- the end

    def flush(self, seconds: float) -> None:
        """Wait until all is sent, or the time is over."""
        end = time.monotonic() + seconds
        while self.is_open and self.unsent and time.monotonic() < end:
            self.loop.turn(0.1)

    def lose(self, reason: str) -> None:
        if self.is_open:
            self.close()
            self.on_lost(reason)

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            self.loop.drop_timer(f"beat {self.reader}")
            for descriptor in (self.reader, self.writer):
                self.loop.unwatch(descriptor)
                with contextlib.suppress(OSError):
                    os.close(descriptor)
