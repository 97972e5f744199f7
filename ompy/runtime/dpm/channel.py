"""A stream between two processes that share a token, of which each proves to the other that he has it.

    who calls                                        who answers
      |  greeting, nonce c                       ->    |
      |  <-  nonce a, code(token, "answer", c, a)      |
      |  code(token, "call", c, a)               ->    |
      |  length, body, code(key, direction, number, body)  in both directions

Nonces are new for each channel, so that a conversation that somebody has recorded opens no other; the token itself is
never sent.  The key of the frames, and the secret of a meeting, are derived from token and nonces.  Nothing is encrypted.
"""

from __future__ import annotations

import os
import time

# What hashlib and hmac have as well: to import these takes longer than a meeting.
from _blake2 import blake2b
from _operator import _compare_digest as are_equal

from ompy.core.errors import ERR_OTHER, MPIError
from ompy.core.progress import serve_until_readable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket

GREETING = b"ompy meeting 1\n"
NONCE = 32
CODE = 32
MOST = 1 << 30  # bytes of a frame
CALL, ANSWER = b"call", b"answer"


def code(key: bytes, *parts: bytes) -> bytes:
    """What only holders of the key can make of the parts."""
    text = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
    return blake2b(text, key=key, digest_size=CODE).digest()


class Refused(Exception):
    """Whoever is at the other end has no right to be there, or is gone."""


class Channel:
    """The stream, once both have proved themselves.

    Parameters:
        connection: a connected stream socket, which becomes the channel's.
        token: shared by the two.
        nonces: of the caller and of the one who answers.
        direction: of what this side sends, `CALL` or `ANSWER`.
    """

    def __init__(self, connection: socket, token: bytes, nonces: bytes, direction: bytes) -> None:
        self.connection = connection
        self.key = code(token, b"frames", nonces)
        self.secret = code(token, b"secret", nonces)
        self.outward = direction
        self.inward = ANSWER if direction == CALL else CALL
        self.sent = self.received = 0
        connection.setblocking(False)

    def send(self, body: bytes, limit: float) -> None:
        """One frame; ERR_OTHER when it is not taken within so many seconds."""
        number = self.sent.to_bytes(8, "big")
        self.sent += 1
        data = memoryview(len(body).to_bytes(8, "big") + body + code(self.key, self.outward, number, body))
        deadline = time.monotonic() + limit
        while data:
            try:
                data = data[self.connection.send(data) :]
            except BlockingIOError:
                # What is not taken at once is longer than the system's buffers: the other side reads while it waits.
                if time.monotonic() > deadline:
                    raise MPIError(ERR_OTHER, f"the other group has not read for {limit:g} s") from None
                serve_until_readable(self.connection.fileno(), 0.001)
            except OSError as error:
                raise MPIError(ERR_OTHER, f"the other group's root has gone: {error.strerror}") from error

    def receive(self, limit: float) -> bytes:
        """One frame; ERR_OTHER when none comes within so many seconds, or one that the other side has not signed."""
        deadline = time.monotonic() + limit
        number = self.received.to_bytes(8, "big")
        self.received += 1
        length = int.from_bytes(self.read(8, deadline, limit), "big")
        if length > MOST:
            raise MPIError(ERR_OTHER, f"the other group announces {length} bytes")
        body = self.read(length, deadline, limit)
        if not are_equal(self.read(CODE, deadline, limit), code(self.key, self.inward, number, body)):
            raise MPIError(ERR_OTHER, "what came from the other group was changed on its way")
        return body

    def read(self, size: int, deadline: float, limit: float) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                piece = self.connection.recv(min(size - len(data), 1 << 20))
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise MPIError(ERR_OTHER, f"the other group has said nothing for {limit:g} s") from None
                serve_until_readable(self.connection.fileno(), max(0.0, deadline - time.monotonic()))
                continue
            except OSError as error:
                raise MPIError(ERR_OTHER, f"the other group's root has gone: {error.strerror}") from error
            if not piece:
                raise MPIError(ERR_OTHER, "the other group's root has gone: it closed the connection")
            data += piece
        return bytes(data)

    def close(self) -> None:
        self.connection.close()


class Handshake:
    """The part of the one who answers, a step whenever something has come.

    Parameters:
        connection: accepted, not blocking.
        token: that the caller must have.
        deadline: when he must have shown it, in seconds of `time.monotonic`.
    """

    def __init__(self, connection: socket, token: bytes, deadline: float) -> None:
        self.connection = connection
        self.token = token
        self.deadline = deadline
        self.ours = os.urandom(NONCE)
        self.came = b""
        self.nonces = b""

    def step(self) -> Channel | None:
        """Read what is there; the channel once the caller has proved himself.  Raises Refused."""
        wanted = CODE if self.nonces else len(GREETING) + NONCE
        try:
            piece = self.connection.recv(wanted - len(self.came))
            if not piece:
                raise Refused("the caller has hung up")
        except BlockingIOError:
            return None
        except OSError as error:
            raise Refused(error.strerror) from error
        self.came += piece
        if not self.nonces and not GREETING.startswith(self.came[: len(GREETING)]):
            raise Refused("the caller speaks another language")
        if len(self.came) < wanted:
            return None
        came, self.came = self.came, b""
        if not self.nonces:
            self.nonces = came[len(GREETING) :] + self.ours
            try:
                self.connection.send(self.ours + code(self.token, ANSWER, self.nonces))
            except OSError as error:
                raise Refused(error.strerror) from error
            return None
        if not are_equal(came, code(self.token, CALL, self.nonces)):
            raise Refused("the caller does not have the token")
        return Channel(self.connection, self.token, self.nonces, ANSWER)


def call(connection: socket, token: bytes, limit: float) -> Channel:
    """The part of the one who calls, over a blocking connection.  Raises Refused when the other end has no such token."""
    ours = os.urandom(NONCE)
    deadline = time.monotonic() + limit
    came = b""
    try:
        connection.sendall(GREETING + ours)
        connection.setblocking(False)
        while len(came) < NONCE + CODE:
            try:
                piece = connection.recv(NONCE + CODE - len(came))
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise Refused(f"nobody has accepted there for {limit:g} s") from None
                serve_until_readable(connection.fileno(), max(0.0, deadline - time.monotonic()))
                continue
            if not piece:
                raise Refused("the connection was closed: no such port is open there any more")
            came += piece
        nonces = ours + came[:NONCE]
        if not are_equal(came[NONCE:], code(token, ANSWER, nonces)):
            raise Refused("who listens there does not have the port's token")
        connection.sendall(code(token, CALL, nonces))
    except OSError as error:
        raise Refused(error.strerror or str(error)) from error
    return Channel(connection, token, nonces, CALL)
