"""TLS 1.3 between the two ends of a new connection, before they prove to each other who they are.

    caller   ---- connect ----> answerer
    caller   <--- TLS 1.3 ----> answerer      keys that nobody else has, but whose? Whoever is at the other end shows the
                                              certificate of nobody
    caller   <- handshake.py -> answerer      within: both prove that they know the secret, and that they speak of this channel

TLS in the standard library asks the answerer for a certificate (keys shared beforehand come with Python 3.13 only), and a job
has none.  So all answerers have the one beside this file, with its key, for anybody to read: it says nothing of who shows it,
and nothing is believed because of it.  The keys that messages are encrypted with are agreed anew for each channel (ephemeral
Diffie-Hellman), and no certificate's key is of use to learn them.

What a certificate would be for is done by the proofs of `handshake.py`, which are over `Channel.binding` too: the caller's
Finished message, a code over everything that was said to make this channel, under its keys (RFC 8446, 4.4.4; RFC 5929, 3).
Somebody between the two who makes one channel with each of them has two different ones, so that a proof that was made for one
is none for the other.  The same is true of what was recorded.  No session is resumed, so no two channels have the same.

Up to there OpenSSL speaks, through the standard library.  What a connection then sends and receives are records like OpenSSL's,
made by `cipher.pxd` without Python: the secrets of the two directions are what OpenSSL tells its key log.  That is a file in
memory, for as long as one step of one handshake lasts.  Where both ends have AEGIS, which they say by ALPN (RFC 7301), so that
their Finished messages are over it, those records are under AEGIS, and keys of their own.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path
from socket import socket as Socket
from ssl import (
    CERT_NONE,
    PROTOCOL_TLS_CLIENT,
    PROTOCOL_TLS_SERVER,
    MemoryBIO,
    SSLContext,
    SSLError,
    SSLWantReadError,
    TLSVersion,
)

from ompy_btl_tcp import libcrypto, libsodium
from ompy_btl_tcp.handshake import Ended
from ompy_btl_tcp.traffic import TrafficSecret

# Bytes taken from a socket at a time; whatever somebody unknown sends, others have their turn after so many.
PIECE = 16 << 10
# Of a record (RFC 8446, 5.1 and 5.2): bytes before its body, and most of these.
HEADER, MOST_BODY = 5, (16 << 10) + 256
# By ALPN.
AEGIS = "ompy aegis-128l, kind in header"
# Held through a step of a handshake: the key log is a context's, not a session's.
one_step = threading.Lock()


@cache
def context(is_answerer: bool, ciphers: tuple[str, ...] = ()) -> SSLContext:
    """For one of the two ends, which has those ciphers beside TLS's own; OSError when this Python can't have it."""
    made = SSLContext(PROTOCOL_TLS_SERVER if is_answerer else PROTOCOL_TLS_CLIENT)
    made.minimum_version = TLSVersion.TLSv1_3
    if is_answerer:
        made.num_tickets = 0
        made.load_cert_chain(Path(__file__).with_name("nobody.pem"))
    else:
        made.check_hostname = False
        made.verify_mode = CERT_NONE
    if ciphers:
        made.set_alpn_protocols(ciphers)
    return made


class Channel:
    """TLS over a socket that does not block, until a connection is made of it.

    Parameters:
        link: the socket, which is somebody else's to close.
        is_answerer: whether this end was called.

    Attributes:
        ciphers: those that this end has beside TLS's own.
        has_spoken: this end has said something; an answerer does when it has been greeted.
        binding: what no other channel has, the same at both ends; b"" until both have shaken hands.
        sealed, opened: records of data that were sent and received.
    """

    ciphers: tuple[str, ...] = ()

    def __init__(self, link: Socket, is_answerer: bool) -> None:
        self.link = link
        self.is_answerer = is_answerer
        self.has_spoken = False
        self.binding = b""
        self.sealed = self.opened = 0
        self.incoming, self.outgoing = MemoryBIO(), MemoryBIO()
        self.session = context(is_answerer, self.ciphers).wrap_bio(self.incoming, self.outgoing, server_side=is_answerer)
        self.log = b""
        self.records = bytearray()  # received, and not given to the session

    def fetch(self) -> bytes:
        """Take some of what has come; BlockingIOError when there is nothing."""
        piece = self.link.recv(PIECE)
        if not piece:
            raise Ended("the connection was closed", again=True)
        return piece

    def flush(self) -> None:
        """Some messages have room in a new connection."""
        words = self.outgoing.read()
        if not words:
            return
        self.has_spoken = True
        try:
            sent = self.link.send(words)
        except BlockingIOError:
            sent = 0
        if sent != len(words):
            raise Ended("the connection takes nothing", again=True)

    def shake_hands(self) -> None:
        """Go on until there is a `binding`; BlockingIOError when the other end has to say something first."""
        while not self.binding:
            try:
                self.step()
                self.binding = self.session.get_channel_binding("tls-unique") or b""
                if not self.binding:
                    raise Ended("this Python has no name for a channel of TLS 1.3")
            except SSLWantReadError:
                self.flush()
                self.incoming.write(self.fetch())
            except SSLError as error:
                raise Ended(f"no TLS is spoken there: {error.reason}") from None
        self.records += self.incoming.read()
        self.flush()

    def step(self) -> None:
        """Go on with the handshake, and keep what OpenSSL logs of its keys."""
        context = self.session.context
        with one_step:
            log = os.memfd_create("keys")
            try:
                context.keylog_filename = f"/proc/self/fd/{log}"
                try:
                    self.session.do_handshake()
                finally:
                    context.keylog_filename = None  # type: ignore[assignment]
                    self.log += os.pread(log, PIECE, 0)
            finally:
                os.close(log)

    def secret(self, of_answerer: bool) -> TrafficSecret:
        """By which the records of one end are sealed from the end of the handshake on."""
        label = b"SERVER_TRAFFIC_SECRET_0" if of_answerer else b"CLIENT_TRAFFIC_SECRET_0"
        [value] = [words[2] for words in map(bytes.split, self.log.splitlines()) if words[:1] == [label]]
        [suite, *_] = self.session.cipher() or [""]
        secret = TrafficSecret(suite, bytes.fromhex(value.decode()))
        return secret.for_aegis() if self.session.selected_alpn_protocol() == AEGIS else secret

    @property
    def outgoing_secret(self) -> TrafficSecret:
        return self.secret(self.is_answerer)

    @property
    def incoming_secret(self) -> TrafficSecret:
        return self.secret(not self.is_answerer)

    def send(self, message: bytes) -> int:
        """A message that has room in a record."""
        self.session.write(message)
        self.sealed += 1
        self.flush()
        return len(message)

    def recv(self, size: int) -> bytes:
        """At most so many bytes, b"" at the end; BlockingIOError when nothing has come."""
        while True:
            try:
                return self.session.read(size)
            except SSLWantReadError:
                if not self.open():
                    self.records += self.fetch()
            except SSLError as error:
                raise Ended(f"no TLS is spoken there: {error.reason}") from None

    def open(self) -> bool:
        """Give the session a record; False when none is whole."""
        body = int.from_bytes(self.records[3:HEADER], "big")
        if body > MOST_BODY:
            raise Ended("no TLS is spoken there: a record that is too long")
        if len(self.records) < HEADER + body or len(self.records) < HEADER:
            return False
        self.incoming.write(self.records[: HEADER + body])
        del self.records[: HEADER + body]
        self.opened += 1
        return True

    def rest(self) -> tuple[bytes, bytes]:
        """What came behind the last message that was received: data, and records that are not opened."""
        pending = self.session.pending()
        return self.session.read(pending) if pending else b"", bytes(self.records)


class AegisChannel(Channel):
    """Where this process has AEGIS."""

    ciphers = (AEGIS,)


def channel_of(cipher: str, openssl: str, sodium: str) -> type[Channel]:
    """OSError, in words for people, where this process can't have TLS 1.3, with records of those libraries' and that cipher.

    Parameters:
        cipher: of records: "aegis" or "aes"; "auto": AEGIS where there is a library that has it, and the peer does, too.
        openssl, sodium: files of the libraries; "": those that are there.
    """
    libcrypto.load(openssl)
    kind: type[Channel] = Channel
    if cipher != "aes":
        try:
            libsodium.load(sodium)
            kind = AegisChannel
        except OSError:
            if cipher == "aegis" or sodium:
                raise
    context(True, kind.ciphers)
    with Socket() as link, suppress(SSLWantReadError):
        kind(link, False).step()
    return kind
