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
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
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

from ompy_btl_tcp.handshake import Ended

TYPE_CHECKING = False
if TYPE_CHECKING:
    from socket import socket as Socket

# Bytes taken from a socket at a time; whatever somebody unknown sends, others have their turn after so many.
PIECE = 16 << 10


@cache
def context(is_answerer: bool) -> SSLContext:
    """For one of the two ends; OSError when this Python can't have it."""
    made = SSLContext(PROTOCOL_TLS_SERVER if is_answerer else PROTOCOL_TLS_CLIENT)
    made.minimum_version = TLSVersion.TLSv1_3
    if is_answerer:
        made.num_tickets = 0
        made.load_cert_chain(Path(__file__).with_name("nobody.pem"))
    else:
        made.check_hostname = False
        made.verify_mode = CERT_NONE
    return made


class Channel:
    """TLS over a socket that does not block, until a connection is made of it.

    Parameters:
        link: the socket, which is somebody else's to close.
        is_answerer: whether this end was called.

    Attributes:
        has_spoken: this end has said something; an answerer does when it has been greeted.
        binding: what no other channel has, the same at both ends; b"" until both have shaken hands.
        session, incoming, outgoing: the state, and what was received for it and is to be sent by it.
    """

    def __init__(self, link: Socket, is_answerer: bool) -> None:
        self.link = link
        self.is_answerer = is_answerer
        self.has_spoken = False
        self.binding = b""
        self.incoming, self.outgoing = MemoryBIO(), MemoryBIO()
        self.session = context(is_answerer).wrap_bio(self.incoming, self.outgoing, server_side=is_answerer)

    def fetch(self) -> None:
        """Take some of what has come; BlockingIOError when there is nothing."""
        piece = self.link.recv(PIECE)
        if not piece:
            raise Ended("the connection was closed", again=True)
        self.incoming.write(piece)

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
                self.session.do_handshake()
                self.binding = self.session.get_channel_binding("tls-unique") or b""
                if not self.binding:
                    raise Ended("this Python has no name for a channel of TLS 1.3")
            except SSLWantReadError:
                self.flush()
                self.fetch()
            except SSLError as error:
                raise Ended(f"no TLS is spoken there: {error.reason}") from None
        self.flush()

    def send(self, message: bytes) -> int:
        self.session.write(message)
        self.flush()
        return len(message)

    def recv(self, size: int) -> bytes:
        """At most so many bytes, b"" at the end; BlockingIOError when nothing has come."""
        try:
            try:
                return self.session.read(size)
            except SSLWantReadError:
                self.fetch()
                return self.session.read(size)
        except SSLWantReadError:
            raise BlockingIOError from None
        except SSLError as error:
            raise Ended(f"no TLS is spoken there: {error.reason}") from None
