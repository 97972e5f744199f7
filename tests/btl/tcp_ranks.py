"""Processes that are joined by btl/tcp alone, and callers who are none of them."""

from __future__ import annotations

import hmac
import os
import socket
from collections.abc import Callable
from ssl import SSLWantReadError
from typing import Any

import network_ranks
import pytest
from network_ranks import SECRET, TAG, Rank
from ompy_btl_tcp.card import unpack
from ompy_btl_tcp.channel import Channel, context
from ompy_btl_tcp.handshake import HELLO, LINK, MAGIC, NONCE_SIZE, VERDICT, VERSION, name_of

__all__ = [
    "ME",
    "PEER",
    "SECRET",
    "TAG",
    "Rank",
    "binding_of",
    "call",
    "door",
    "exactly",
    "greeting",
    "hello",
    "introduced",
    "open_btl",
    "proof",
    "protecting",
    "run",
]

ME, PEER = name_of("test", 0), name_of("test", 1)
# btl_tcp_security where a test does not say it; the fixture `protection` sets it.
security = "secret"
# And btl_tcp_cipher.
cipher = "auto"


def open_btl(*arguments: Any, **parameters: Any) -> Any:
    return network_ranks.open_btl("tcp", *arguments, **{"security": security, "cipher": cipher} | parameters)


def run(body: Callable[[Rank], Any], *arguments: Any, **parameters: Any) -> list[Any]:
    return network_ranks.run("tcp", body, *arguments, **{"security": security, "cipher": cipher} | parameters)


def door(rank: Rank) -> tuple[str, int]:
    """Where rank 0 listens."""
    [address] = unpack(rank.gather(rank.btl.address())[0]).addresses
    return str(address.interface.ip), address.port


def call(where: tuple[str, int], timeout: float = 10) -> socket.socket:
    """A caller who speaks TLS where the rank there does."""
    caller = socket.create_connection(where, timeout=timeout)
    return context(False).wrap_socket(caller, do_handshake_on_connect=False) if security == "tls" else caller


def binding_of(caller: Any) -> bytes:
    """Of the channel that a caller is in."""
    return bytes(caller.get_channel_binding()) if security == "tls" else b""


def greeting(nonce: bytes) -> bytes:
    """What a caller says first."""
    if security != "tls":
        return hello(nonce)
    channel = Channel(socket.socket(), False)
    with pytest.raises(SSLWantReadError):
        channel.session.do_handshake()
    channel.link.close()
    return channel.outgoing.read()


def protecting() -> type[Channel] | None:
    """What a conversation is to be protected by."""
    return Channel if security == "tls" else None


def exactly(caller: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size and (piece := caller.recv(size - len(data))):
        data += piece
    return data


def hello(nonce: bytes, name: bytes = PEER, called: bytes = ME, link: tuple[int, int] = (0, 0)) -> bytes:
    return HELLO.pack(MAGIC, VERSION, name, called, nonce, *link)


def proof(
    secret: bytes,
    nonce: bytes,
    challenge: bytes,
    name: bytes = PEER,
    called: bytes = ME,
    link: tuple[int, int] = (0, 0),
    binding: bytes = b"",
) -> bytes:
    words = b"\0".join((b"ompy btl/tcp", b"caller", name, called, nonce, challenge, LINK.pack(*link)))
    return hmac.digest(secret, words + binding, "sha256")


def introduced(caller: Any, secret: bytes, link: tuple[int, int] = (0, 0)) -> bytes:
    """What a caller is answered in the end who knows `secret`, and says that it is rank 1."""
    nonce = os.urandom(NONCE_SIZE)
    caller.sendall(hello(nonce, link=link))
    challenge = exactly(caller, NONCE_SIZE)
    caller.sendall(proof(secret, nonce, challenge, link=link, binding=binding_of(caller)))
    return exactly(caller, VERDICT.size)
