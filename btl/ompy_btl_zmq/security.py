"""Who may talk to a rank: identities, credentials, and the check of who connects.

Everything is derived from the secret of the circle (`ompy/core/circle.py`) in which two processes know each other: mostly
the job's, which the launcher gives to its ranks alone, else that of a meeting of two jobs.

    identity     names the sender of whatever arrives over a connection; ZeroMQ asks for it once, when the connection is
                 made, and puts it before each message.  It carries a code that only a holder of the secret can make,
                 and is verified at the first message.  It is good for one sender and one receiver, because ZeroMQ tells
                 it to whoever is connected to: one that was learnt that way opens no other rank.
    password     (plain) goes with the identity as a user name; the check is ours, through ZeroMQ's ZAP request.
    client key   (curve) one key pair that every member derives; each rank's server key is random, its public half on the card.

With `none` nobody is asked, and messages from identities that don't verify are dropped and counted.
"""

from __future__ import annotations

import hmac

import zmq
from zmq.utils import z85

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ompy.core.circle import Circle

DOMAIN = b"ompy"
ZAP_ENDPOINT = "inproc://zeromq.zap.01"
CODE_SIZE = 16
RANK_SIZE = 4
TAG_SIZE = 8
MARK = b"\x01"  # ZeroMQ keeps identities that begin with zero to itself


def derive(secret: bytes, purpose: bytes, subject: bytes = b"") -> bytes:
    """32 bytes that only holders of the secret can make, different for each purpose and subject."""
    return hmac.digest(secret, b"ompy btl/zmq\0" + purpose + b"\0" + subject, "sha256")


class Identities:
    """Makes and verifies the identities under which one circle's members present themselves to each other.

    Parameters:
        secret, job, size: the circle's; its name is the job's for the ranks of one job.
        me: this process's number there, in a job its rank.

    Attributes:
        tag: says in an identity which circle it is of.
    """

    def __init__(self, secret: bytes, job: str, me: int, size: int) -> None:
        self.secret = secret
        self.job = job.encode()
        self.tag = derive(secret, b"tag", self.job)[:TAG_SIZE]
        self.me = me
        self.size = size

    def make(self, sender: int, receiver: int) -> bytes:
        packed = sender.to_bytes(RANK_SIZE, "little")
        subject = self.job + b"\0" + packed + receiver.to_bytes(RANK_SIZE, "little")
        return MARK + self.tag + packed + derive(self.secret, b"identity", subject)[:CODE_SIZE]

    def towards(self, rank: int) -> bytes:
        """Who this process is to that rank."""
        return self.make(self.me, rank)

    def of(self, rank: int) -> bytes:
        """Who that rank is to this process."""
        return self.make(rank, self.me)

    def rank(self, identity: bytes) -> int:
        """The rank that an identity proves to this process, or -1."""
        if len(identity) != len(MARK) + TAG_SIZE + RANK_SIZE + CODE_SIZE:
            return -1
        rank = int.from_bytes(identity[len(MARK) + TAG_SIZE :][:RANK_SIZE], "little")
        if rank >= self.size or not hmac.compare_digest(identity, self.of(rank)):
            return -1
        return rank


class Circles:
    """All circles that this process is a member of.

    Parameters:
        own: identities within its job.
    """

    def __init__(self, own: Identities) -> None:
        self.own = own
        self.known = {own.tag: own}

    def add(self, circle: Circle) -> Identities:
        """Members of the circle may connect from now on."""
        identities = Identities(circle.secret, circle.name, circle.me, circle.size)
        return self.known.setdefault(identities.tag, identities)

    def remove(self, circle: Circle) -> bytes:
        """They may no more; returns how their identities begin."""
        tag = Identities(circle.secret, circle.name, circle.me, circle.size).tag
        self.known.pop(tag, None)
        return MARK + tag

    def of(self, circle: Circle | None) -> Identities:
        """Those of the job for None."""
        return self.own if circle is None else self.add(circle)

    def prove(self, identity: bytes) -> Identities | None:
        """The circle of whose members one has this identity towards this process."""
        identities = self.known.get(identity[len(MARK) :][:TAG_SIZE])
        return None if identities is None or identities.rank(identity) < 0 else identities


class Open:
    """btl_zmq_security none: nobody is asked."""

    name = "none"
    key = b""

    def guard(self, socket: zmq.Socket[bytes]) -> None:
        """Before `socket` listens: what it asks of those who connect."""

    def introduce(self, socket: zmq.Socket[bytes], identities: Identities, identity: bytes, key: bytes) -> None:
        """Before `socket` connects: how it presents itself, as `identity` of those, to the holder of the public `key`."""

    def admits(self, credentials: Sequence[bytes]) -> bool:
        """Whether whoever shows these credentials may connect."""
        return True


class Plain(Open):
    """btl_zmq_security plain: a password for each identity, in clear."""

    name = "plain"

    def __init__(self, circles: Circles) -> None:
        self.circles = circles

    def password(self, identities: Identities, user: bytes) -> bytes:
        return derive(identities.secret, b"password", user).hex().encode()

    def guard(self, socket: zmq.Socket[bytes]) -> None:
        socket.setsockopt(zmq.ZAP_DOMAIN, DOMAIN)
        socket.setsockopt(zmq.PLAIN_SERVER, 1)

    def introduce(self, socket: zmq.Socket[bytes], identities: Identities, identity: bytes, key: bytes) -> None:
        user = identity.hex().encode()
        socket.setsockopt(zmq.PLAIN_USERNAME, user)
        socket.setsockopt(zmq.PLAIN_PASSWORD, self.password(identities, user))

    def admits(self, credentials: Sequence[bytes]) -> bool:
        if len(credentials) != 2:
            return False
        user, password = credentials
        try:
            identities = self.circles.prove(bytes.fromhex(user.decode()))
        except ValueError:
            return False
        return identities is not None and hmac.compare_digest(password, self.password(identities, user))


class Curve(Open):
    """btl_zmq_security curve: keys on both sides, and everything encrypted."""

    name = "curve"

    def __init__(self, circles: Circles) -> None:
        self.circles = circles
        self.key, self.server_secret = zmq.curve_keypair()
        self.pairs: dict[bytes, tuple[bytes, bytes]] = {}

    def client_pair(self, identities: Identities) -> tuple[bytes, bytes]:
        """Public and secret key of all members of a circle as those who connect."""
        if identities.tag not in self.pairs:
            secret = z85.encode(derive(identities.secret, b"client key"))
            self.pairs[identities.tag] = zmq.curve_public(secret), secret
        return self.pairs[identities.tag]

    def guard(self, socket: zmq.Socket[bytes]) -> None:
        socket.setsockopt(zmq.ZAP_DOMAIN, DOMAIN)
        socket.setsockopt(zmq.CURVE_SERVER, 1)
        socket.setsockopt(zmq.CURVE_SECRETKEY, self.server_secret)

    def introduce(self, socket: zmq.Socket[bytes], identities: Identities, identity: bytes, key: bytes) -> None:
        public, secret = self.client_pair(identities)
        socket.setsockopt(zmq.CURVE_SERVERKEY, key)
        socket.setsockopt(zmq.CURVE_PUBLICKEY, public)
        socket.setsockopt(zmq.CURVE_SECRETKEY, secret)

    def admits(self, credentials: Sequence[bytes]) -> bool:
        keys = [z85.decode(self.client_pair(identities)[0]) for identities in self.circles.known.values()]
        return len(credentials) == 1 and any(hmac.compare_digest(credentials[0], key) for key in keys)


def scheme(name: str, circles: Circles) -> Open:
    """The scheme of `btl_zmq_security`."""
    if name == "plain":
        return Plain(circles)
    if name == "curve":
        return Curve(circles)
    return Open()


class Authenticator:
    """Answers ZeroMQ's question (ZAP, ZeroMQ RFC 27) whether a connection may be made.

    It has no thread: whoever drives the transport's progress calls `answer` when `socket` has something.
    """

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], security: Open) -> None:
        self.security = security
        self.socket = context.socket(zmq.REP)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.bind(ZAP_ENDPOINT)

    def answer(self) -> int:
        """Answer everybody who is waiting; returns how many."""
        answered = 0
        while int(self.socket.getsockopt(zmq.EVENTS)) & zmq.POLLIN:
            version, request, _, _, _, _, *credentials = self.socket.recv_multipart()
            known = self.security.admits(credentials)
            verdict = (b"200", b"a rank of this job") if known else (b"400", b"not a rank of this job")
            self.socket.send_multipart((version, request, *verdict, b"", b""))
            answered += 1
        return answered

    def close(self) -> None:
        self.socket.close()
