"""How the two ends of a new connection prove to each other that they know a secret, before a byte is taken.

    caller                                                answerer
    HELLO      who I am, whom I call, nonce c, link ---->
                                               <--------  CHALLENGE  nonce a
    PROOF      code("caller", both names, c, a) ------->
                                               <--------  VERDICT    welcome, code("answerer", both names, c, a)

The secret is that of the circle in which the two know each other (`ompy/core/circle.py`): their job, or the meeting of two
jobs.  Whom the caller calls says which one it is, as a process has another name in each of its circles.

A code is HMAC-SHA256 under the secret.  Each end chose one of the nonces at random, so that nothing heard in one conversation
is good in another; the two codes differ, so that nobody can answer with what he was told.  A stranger is told a random number
and a refusal.  The messages have fixed sizes, and nothing beyond them is read.

With TLS this is said within a channel (`channel.py`) that only two ends are in, and the codes are over its binding as well.

A link is a number and how many links of that number there were before; 0 and 0 where a pair has one connection (`bundle.pxd`
tells of several).  The codes are over it as well.

There is one connection a pair, and a number.  Where both ends call at the same time that of the lower name stands: who has the
lower one answers TWICE once its own call has been taken, and the other then tries again, to find the connection there.  Who has
given the caller up for good answers OVER.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from socket import socket as Socket

    from ompy_btl_tcp.channel import Channel

MAGIC = b"ompy tcp"
VERSION = 2
NONCE_SIZE = 32
CODE_SIZE = 32
HELLO = struct.Struct("<8sH20s20s32sHI")
LINK = struct.Struct("<HI")
VERDICT = struct.Struct("<B32s")
WELCOME, TWICE, REFUSED, OVER = 1, 2, 3, 4
NOTHING = bytes(CODE_SIZE)


def beginning(circle: str) -> bytes:
    """How the names of a circle's members begin."""
    return hashlib.sha256(circle.encode()).digest()[:16]


def name_of(circle: str, number: int) -> bytes:
    """A member's name in the handshake, of a job's by rank; of one circle's the lower number has the lower one."""
    return beginning(circle) + number.to_bytes(4, "big")


class Ended(Exception):
    """The conversation is over, and there is no connection.

    Attributes:
        again: it may be tried again.
        denied: the process that was called is not there.
    """

    def __init__(self, reason: str, again: bool = False, denied: bool = False) -> None:
        super().__init__(reason)
        self.again = again
        self.denied = denied


class Conversation:
    """One end of a handshake over a socket that does not block.

    Parameters:
        link: the socket, which is somebody else's to close.
        secret: the circle's; b"" where nobody has to prove anything.
        me: this process's name.
        protection: makes the channel; None: all is said in clear.
    """

    def __init__(self, link: Socket, secret: bytes, me: bytes, protection: type[Channel] | None = None) -> None:
        self.link = link
        self.channel = None if protection is None else protection(link, isinstance(self, Answerer))
        self.secret = secret
        self.me = me
        self.peer = b""
        self.caller_nonce = self.answerer_nonce = b""
        self.number = self.turn = 0
        self.heard = b""
        self.awaited = 0
        self.take: Callable[[bytes], bool] = self.nothing_more

    def nothing_more(self, message: bytes) -> bool:
        raise Ended("spoke out of turn")

    @property
    def steps(self) -> int:
        """How often the caller has said what a rank would, up to its name."""
        return bool(self.peer) + (self.channel is not None and self.channel.has_spoken)

    def code(self, role: bytes) -> bytes:
        caller, answerer = (self.me, self.peer) if isinstance(self, Caller) else (self.peer, self.me)
        link = LINK.pack(self.number, self.turn)
        text = b"\0".join((b"ompy btl/tcp", role, caller, answerer, self.caller_nonce, self.answerer_nonce, link))
        return hmac.digest(self.secret, text if self.channel is None else text + self.channel.binding, "sha256")

    def open(self) -> None:
        """The channel stands."""

    def expect(self, size: int, take: Callable[[bytes], bool]) -> None:
        self.awaited, self.take, self.heard = size, take, b""

    def say(self, message: bytes) -> None:
        """A message of some bytes has room in a new connection."""
        try:
            sent = (self.channel or self.link).send(message)
        except OSError as error:
            raise Ended(f"the connection broke: {error.strerror}", again=True) from None
        if sent != len(message):
            raise Ended("the connection takes nothing", again=True)

    def advance(self) -> bool:
        """Go on with what has come; True once both have proved themselves.  Raises Ended when there will be no connection."""
        while True:
            try:
                if self.channel is not None and not self.channel.binding:
                    self.channel.shake_hands()
                    self.open()
                piece = (self.channel or self.link).recv(self.awaited - len(self.heard))
            except (BlockingIOError, InterruptedError):
                return False
            except OSError as error:
                raise Ended(f"the connection broke: {error.strerror}", again=True) from None
            if not piece:
                raise Ended("the connection was closed", again=True)
            self.heard += piece
            if len(self.heard) == self.awaited and self.take(self.heard):
                return True


class Caller(Conversation):
    """The end that has connected."""

    def begin(self, peer: bytes, number: int = 0, turn: int = 0) -> None:
        self.peer, self.number, self.turn = peer, number, turn
        self.caller_nonce = os.urandom(NONCE_SIZE)
        if self.channel is None:
            self.open()

    def open(self) -> None:
        self.say(HELLO.pack(MAGIC, VERSION, self.me, self.peer, self.caller_nonce, self.number, self.turn))
        self.expect(NONCE_SIZE, self.take_challenge)

    def take_challenge(self, message: bytes) -> bool:
        self.answerer_nonce = message
        self.say(self.code(b"caller"))
        self.expect(VERDICT.size, self.take_verdict)
        return False

    def take_verdict(self, message: bytes) -> bool:
        verdict, code = VERDICT.unpack(message)
        if verdict == REFUSED:
            reason = "it refused our credentials: the ranks do not share a secret, or this is not the rank called"
            if self.channel is not None:
                reason += ", or somebody is between the two"
            raise Ended(reason, denied=True)
        if verdict not in (WELCOME, TWICE, OVER) or not hmac.compare_digest(code, self.code(b"answerer")):
            raise Ended("whoever answered there does not know the secret", denied=True)
        if verdict == TWICE:
            raise Ended("it is calling too", again=True)
        if verdict == OVER:
            raise Ended("it has given up contact", denied=True)
        return True


class Answerer(Conversation):
    """The end that was called.

    Parameters:
        secrets: of the circles that this process is in, by its name there.
        judge: `judge(conversation)`: WELCOME, TWICE or OVER, of a connection to `peer`, to whom this process is `me`.

    Attributes:
        deadline: when whoever holds the conversation loses patience, in seconds of `time.monotonic`.
    """

    def __init__(
        self,
        link: Socket,
        secrets: Mapping[bytes, bytes],
        judge: Callable[[Answerer], int],
        protection: type[Channel] | None = None,
    ) -> None:
        super().__init__(link, b"", b"", protection)
        self.deadline = 0.0
        self.secrets = secrets
        self.judge = judge
        self.called = b""
        self.expect(HELLO.size, self.take_hello)

    def take_hello(self, message: bytes) -> bool:
        magic, version, self.peer, self.called, self.caller_nonce, self.number, self.turn = HELLO.unpack(message)
        if magic != MAGIC or version != VERSION:
            raise Ended("spoke another language")
        if self.called in self.secrets:
            self.me, self.secret = self.called, self.secrets[self.called]
        self.answerer_nonce = os.urandom(NONCE_SIZE)
        self.say(self.answerer_nonce)
        self.expect(CODE_SIZE, self.take_proof)
        return False

    def take_proof(self, message: bytes) -> bool:
        if not hmac.compare_digest(message, self.code(b"caller")) or self.called != self.me or self.peer == self.me:
            self.say(VERDICT.pack(REFUSED, NOTHING))
            raise Ended("does not know the secret, or called somebody else")
        verdict = self.judge(self)
        self.say(VERDICT.pack(verdict, self.code(b"answerer")))
        if verdict != WELCOME:
            raise Ended("there is a connection to it, or will be none", again=True)
        return True
