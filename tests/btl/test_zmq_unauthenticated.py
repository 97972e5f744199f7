"""Strangers at a rank's port: they deliver nothing, disturb nothing, leave nothing behind, and are counted."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import socket
import time
from collections.abc import Callable

import pytest
import zmq
from ompy_btl_zmq.address import host_of, unpack
from ompy_btl_zmq.endpoint import MARK
from ompy_btl_zmq.security import Circles, Identities, Plain, derive
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
    identities = Identities(b"another secret", "test", 1, 2)
    identity = identities.towards(0)
    caller.setsockopt(zmq.ROUTING_ID, identity)
    Plain(Circles(identities)).introduce(caller, identities, identity, b"")


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
            rank.progress_until(lambda: rank.btl.statistics()["connections rejected"] >= attempts)
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
            assert rank.btl.statistics()["connections rejected"] == attempts
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
            rank.progress_until(lambda: rank.btl.statistics()["connections rejected"] == 50)
            rank.progress_until(lambda: len(os.listdir("/proc/self/fd")) <= files, sleep=False)
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
            rank.progress_until(lambda: rank.btl.statistics()["unauthenticated messages dropped"] == 2)
            rank.wait_for(1)
            assert rank.inbox.messages == [b"from a rank"]
        else:
            context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
            for identity in (b"", Identities(b"another secret", "test", 0, 2).of(1)):
                with context.socket(zmq.DEALER) as caller:
                    if identity:
                        caller.setsockopt(zmq.ROUTING_ID, identity)
                    caller.connect(card.url)
                    caller.send(b"let me in\x11")
            context.term()
            rank.post(0, b"from a rank")
        rank.gather()

    run(body, security="none")


def test_without_security_messages_of_any_number_of_parts_leave_the_reader_in_step() -> None:
    def body(rank: Rank) -> None:
        card = unpack(rank.gather(rank.btl.address())[0])
        if rank.rank == 0:
            rank.progress_until(lambda: rank.btl.statistics()["unauthenticated messages dropped"] == 5)
            rank.wait_for(2)
            assert rank.inbox.messages == [b"from a rank", b"again"]
        else:
            context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
            with context.socket(zmq.DEALER) as caller:
                caller.connect(card.url)
                for parts in ([b""], [b"x\x11"], [b"let", b"me in\x11"], [b"", b"", b"\x11"], [b"x\x11"] * 7):
                    caller.send_multipart(parts)
            context.term()
            rank.post(0, b"from a rank")
            rank.post(0, b"again")
        rank.gather()

    run(body, security="none")


def test_without_security_a_stranger_who_calls_itself_a_connection_of_ours_ends_nothing() -> None:
    def body(rank: Rank) -> None:
        card = unpack(rank.gather(rank.btl.address())[0])
        if rank.rank == 1:
            context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
            for peer in range(2):
                with context.socket(zmq.DEALER) as caller:
                    caller.setsockopt(zmq.ROUTING_ID, MARK + peer.to_bytes(4, "little"))
                    caller.connect(card.url)
                    caller.send(b"let me in\x11")
                    if peer == 1:
                        rank.gather()  # rank 0 connects while a stranger stands there under that name
                        rank.wait_for(1)
        else:
            rank.progress_until(lambda: rank.btl.statistics()["unauthenticated messages dropped"] == 2)
            rank.gather()
            rank.post(1, b"here")
        rank.gather()

    run(body, security="none")


def test_without_security_a_caller_learns_no_identity_that_another_rank_believes() -> None:
    def body(rank: Rank) -> None:
        cards = [unpack(card) for card in rank.gather(rank.btl.address())]
        if rank.rank == 2:
            context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
            with context.socket(zmq.ROUTER) as caller, context.socket(zmq.DEALER) as thief:
                caller.setsockopt(zmq.ROUTING_ID, b"anybody")
                caller.setsockopt(zmq.PROBE_ROUTER, 1)
                caller.connect(cards[0].url)
                with socket.create_connection(port_of(cards[0].url)) as plain:  # what rank 0 says of itself, read by hand
                    plain.settimeout(20)
                    plain.sendall(b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + bytes(16) + b"\x00" + bytes(31))
                    ready = b"\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER\x08Identity\x00\x00\x00\x00"
                    plain.sendall(bytes([4, len(ready)]) + ready)
                    heard = b""
                    while b"Identity" not in heard:
                        heard += plain.recv(4096)
                told = heard.partition(b"Identity")[2]
                identity = told[4 : 4 + int.from_bytes(told[:4], "big")]
                assert identity
                thief.setsockopt(zmq.ROUTING_ID, identity)
                thief.connect(cards[1].url)
                thief.send(b"forged\x11")
            context.destroy(linger=1000)
            rank.gather()
            return
        if rank.rank == 1:
            rank.progress_until(lambda: rank.btl.statistics()["unauthenticated messages dropped"] == 1)
            assert rank.inbox.messages == []
            rank.gather()
        else:
            rank.gather()

    run(body, size=3, security="none")


def test_more_strangers_than_descriptors_keep_nobody_out() -> None:
    def body(rank: Rank) -> None:
        card = unpack(rank.gather(rank.btl.address())[0])
        if rank.rank == 1:
            silent = [socket.socket() for _ in range(400)]
            for caller in silent:
                caller.setblocking(False)  # those beyond the queue wait in the system
                caller.connect_ex(port_of(card.url))
            rank.post(0, b"through the crowd")
            rank.wait_for(1)
            for caller in silent:
                caller.close()
        else:
            before = len(os.listdir("/proc/self/fd"))
            resource.setrlimit(resource.RLIMIT_NOFILE, (before + 200, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
            rank.progress_until(lambda: rank.btl.statistics()["times accepting was paused"] > 0)
            rank.wait_for(1)
            rank.post(1, b"me too")
        rank.gather()

    run(body, handshake_timeout=500, handshakes=50)


def identities_of(rank: int, secret: bytes = SECRET, job: str = "job") -> Identities:
    return Identities(secret, job, rank, 4)


def test_an_identity_proves_the_rank_to_one_other_and_nothing_else_does() -> None:
    mine = identities_of(3)
    assert [mine.rank(identities_of(rank).towards(3)) for rank in range(4)] == [0, 1, 2, 3]
    assert mine.rank(mine.of(4)) == -1
    assert mine.rank(identities_of(1, job="other job").towards(3)) == -1
    assert mine.rank(identities_of(1, secret=b"other").towards(3)) == -1
    assert mine.rank(identities_of(1).towards(2)) == -1
    forged = bytearray(identities_of(1).towards(3))
    forged[1] = 2
    assert mine.rank(bytes(forged)) == -1
    assert mine.rank(b"") == -1


def test_a_password_opens_one_rank() -> None:
    identity = identities_of(1).towards(3)
    shown = [identity.hex().encode(), Plain(Circles(identities_of(1))).password(identities_of(1), identity.hex().encode())]
    assert Plain(Circles(identities_of(3))).admits(shown)
    assert not Plain(Circles(identities_of(2))).admits(shown)
    assert not Plain(Circles(identities_of(3))).admits([shown[0], shown[1][::-1]])


def test_a_port_in_use_names_the_parameters_and_the_remedy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match="btl_zmq_port_min") as caught:
            open_btl(port_min=port, port_range=1)
    assert f"every port from {port} to {port} of " in str(caught.value)


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
