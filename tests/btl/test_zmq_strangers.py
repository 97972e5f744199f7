"""Strangers at a rank's port: they deliver nothing, disturb nothing, leave nothing behind, and are counted."""

from __future__ import annotations

import contextlib
import os
import random
import socket
import time
from collections.abc import Callable

import pytest
import zmq
from ompy_btl_zmq.address import host_of, unpack
from ompy_btl_zmq.security import Identities, Plain, derive
from zmq.utils import z85
from zmq_ranks import SECRET, Rank, open_btl, run


def port_of(url: str) -> tuple[str, int]:
    return host_of(url), int(url.rpartition(":")[2])


def garbage(url: str, number: int, seed: int) -> None:
    """Connect, say something random (or nothing, or half a greeting), hang up."""
    rng = random.Random(seed * 1_000_003 + number)
    openings = (b"", b"\xff", b"\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x03", rng.randbytes(rng.randrange(1, 300)))
    with socket.create_connection(port_of(url), timeout=10) as caller:
        caller.sendall(rng.choice(openings))


class Intruder:
    """Speaks ZeroMQ properly, but does not belong to the job."""

    def __init__(self) -> None:
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()

    def knock(self, url: str, prepare: Callable[[zmq.Socket[bytes]], None]) -> None:
        with self.context.socket(zmq.DEALER) as caller:
            caller.setsockopt(zmq.LINGER, 0)
            caller.setsockopt(zmq.RECONNECT_IVL, -1)
            prepare(caller)
            with caller.get_monitor_socket(zmq.EVENT_DISCONNECTED) as ended:
                caller.connect(url)
                with contextlib.suppress(zmq.Again):  # refused before there was anything to say
                    caller.send(b"let me in\x11", zmq.NOBLOCK)
                assert ended.poll(10_000), "the connection was neither refused nor closed"
                caller.disable_monitor()

    def close(self) -> None:
        self.context.destroy(linger=0)


def without_secret(caller: zmq.Socket[bytes]) -> None:
    """The NULL mechanism, as anybody's socket has it."""


def with_a_wrong_password(caller: zmq.Socket[bytes]) -> None:
    identity = Identities(b"another secret", "test", 2).of(1)
    caller.setsockopt(zmq.ROUTING_ID, identity)
    Plain(b"another secret", identity).introduce(caller, b"")


def with_a_wrong_key(server_key: bytes) -> Callable[[zmq.Socket[bytes]], None]:
    def prepare(caller: zmq.Socket[bytes]) -> None:
        secret = z85.encode(derive(b"another secret", b"client key"))
        caller.setsockopt(zmq.CURVE_SERVERKEY, server_key)
        caller.setsockopt(zmq.CURVE_PUBLICKEY, zmq.curve_public(secret))
        caller.setsockopt(zmq.CURVE_SECRETKEY, secret)

    return prepare


def siege(security: str, attempts: int) -> None:
    """Two ranks talk to each other while a third process, which is no rank, tries to get at rank 0."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")

    def body(rank: Rank) -> None:
        card = unpack(rank.gather(rank.btl.address())[0])
        if rank.rank == 2:
            intruder = Intruder()
            ways: list[Callable[[zmq.Socket[bytes]], None]] = [without_secret, with_a_wrong_password]
            if security == "curve":
                ways.append(with_a_wrong_key(card.key))
            for number in range(attempts):
                if number % 10 == 0:
                    intruder.knock(card.url, ways[number // 10 % len(ways)])
                else:
                    garbage(card.url, number, seed)
            intruder.close()
            rank.gather()
            rank.gather()
            return
        rank.post(1 - rank.rank, b"before")
        rank.wait_for(1)
        files = len(os.listdir("/proc/self/fd"))
        if rank.rank == 0:
            rank.progress_until(lambda: rank.btl.statistics()["strangers rejected"] >= attempts)
            rank.post(1, b"after")
            rank.wait_for(2)
        else:
            rank.wait_for(2)
            rank.post(0, b"after")
        rank.gather()
        rank.gather()
        assert rank.inbox.messages == [b"before", b"after"]
        assert not rank.errors
        if rank.rank == 0:
            assert rank.btl.statistics()["strangers rejected"] == attempts
            end = time.monotonic() + 10
            while len(os.listdir("/proc/self/fd")) > files:  # the last connections are closed by ZeroMQ's own thread
                rank.btl.progress()
                assert time.monotonic() < end, "connections of strangers are still open"

    run(body, size=3, security=security)


@pytest.mark.parametrize(("security", "attempts"), [("plain", 10_000), ("curve", 500)])
def test_strangers_deliver_nothing_and_are_counted(security: str, attempts: int) -> None:
    siege(security, attempts)


def test_connections_that_never_introduce_themselves_are_closed_and_counted() -> None:
    def body(rank: Rank) -> None:
        card = unpack(rank.gather(rank.btl.address())[0])
        if rank.rank == 0:
            files = len(os.listdir("/proc/self/fd"))
            rank.progress_until(lambda: rank.btl.statistics()["strangers rejected"] == 50)
            rank.progress_until(lambda: len(os.listdir("/proc/self/fd")) == files, sleep=False)
        else:
            silent = [socket.create_connection(port_of(card.url)) for _ in range(50)]
            for caller in silent:
                caller.settimeout(20)
                while caller.recv(1000):  # ZeroMQ's greeting, then the end
                    pass
        rank.gather()

    run(body, handshake_timeout=300)


def test_without_security_messages_of_strangers_are_dropped() -> None:
    def body(rank: Rank) -> None:
        card = unpack(rank.gather(rank.btl.address())[0])
        if rank.rank == 0:
            rank.progress_until(lambda: rank.btl.statistics()["messages of strangers dropped"] == 2)
            rank.wait_for(1)
            assert rank.inbox.messages == [b"from a rank"]
        else:
            context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
            for identity in (b"", Identities(b"another secret", "test", 2).of(1)):
                with context.socket(zmq.DEALER) as caller:
                    if identity:
                        caller.setsockopt(zmq.ROUTING_ID, identity)
                    caller.connect(card.url)
                    caller.send(b"let me in\x11")
            context.term()
            rank.post(0, b"from a rank")
        rank.gather()

    run(body, security="none")


def test_an_identity_proves_the_rank_and_nothing_else_does() -> None:
    identities = Identities(SECRET, "job", 4)
    assert [identities.rank(identities.of(rank)) for rank in range(4)] == [0, 1, 2, 3]
    assert identities.rank(identities.of(4)) == -1
    assert identities.rank(Identities(SECRET, "other job", 4).of(1)) == -1
    assert identities.rank(Identities(b"other", "job", 4).of(1)) == -1
    forged = bytearray(identities.of(1))
    forged[1] = 2
    assert identities.rank(bytes(forged)) == -1
    assert identities.rank(b"") == -1


def test_a_port_in_use_names_the_parameters_and_the_remedy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match="btl_zmq_port_min") as caught:
            open_btl(port_min=port, port_range=1)
    assert str(port) in str(caught.value)
    assert "in use" in str(caught.value)


def test_an_unknown_interface_names_the_known_ones() -> None:
    with pytest.raises(OSError, match=r"btl_zmq_interface.*'wlan77'.*lo \(127\.0\.0\.1\)"):
        open_btl(interface="wlan77")


def test_ranks_share_a_port_range() -> None:
    opened = []
    with socket.create_server(("127.0.0.1", 0)) as probe:
        first = probe.getsockname()[1]
    try:
        for rank in range(3):
            opened.append(open_btl(rank, size=3, port_min=first, port_range=20))
        ports = [port_of(btl.url)[1] for btl in opened]
        assert len(set(ports)) == 3
        assert all(first <= port < first + 20 for port in ports)
    finally:
        for btl in opened:
            btl.finalize()
