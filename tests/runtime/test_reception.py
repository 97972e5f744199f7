"""The port at which proxies call the launcher back: those who know the secret get in, once, and nobody else."""

from __future__ import annotations

import os
import random
import socket
import threading

import pytest

from ompy.runtime.link import NONCE, Link, proof
from ompy.runtime.loop import Loop
from ompy.runtime.reception import MOST_CALLERS, Reception, call, greet

SECRET = bytes(range(32))


class Listener:
    """A reception in a loop of its own thread, which ends with the test."""

    def __init__(self, *hosts: str) -> None:
        self.loop = Loop()
        self.admitted: list[str] = []
        self.frames: list[tuple[dict[str, object], bytes]] = []
        self.lost: list[str] = []
        self.links: list[Link] = []
        self.reception = Reception(self.loop, SECRET, hosts, self.admit)
        self.port = self.reception.port
        self.is_over = False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def admit(self, host: str, connection: socket.socket, outgoing: bytes, incoming: bytes) -> None:
        self.admitted.append(host)
        frames = lambda header, data: self.frames.append((header, data))  # noqa: E731
        self.links.append(Link(self.loop, connection, outgoing, incoming, 30.0, frames, self.lost.append))

    def run(self) -> None:
        while not self.is_over:
            self.loop.turn(0.01)
        self.reception.close()
        for link in self.links:
            link.close()

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *problem: object) -> None:
        self.is_over = True
        self.thread.join()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=10)

    def wait_for(self, found: list[object]) -> None:
        """Until the list holds something."""
        gone = threading.Event()
        for _ in range(1000):
            if found:
                return
            gone.wait(0.01)
        raise AssertionError("nothing came")


def test_who_knows_the_secret_gets_in_and_is_heard() -> None:
    with Listener("n1", "n2") as listener:
        connection, up, down = call(["127.0.0.1"], listener.port, SECRET, "n1", 10)
        link = Link(Loop(), connection, up, down, 30.0, lambda header, data: None, lambda reason: None)
        link.send("word", b"data\n\0", number=3)
        listener.wait_for(listener.frames)
        listener.wait_for(listener.admitted)
        assert listener.admitted == ["n1"]
        assert listener.frames == [({"cmd": "word", "number": 3}, b"data\n\0")]
        link.close()


def test_a_frame_that_makes_its_taker_fail_is_taken_once() -> None:
    ours, theirs = socket.socketpair()
    taken = []

    def take(header: dict[str, object], data: bytes) -> None:
        taken.append(header["number"])
        if header["number"] == 0:
            raise KeyError("nobody knows that")

    sender = Link(Loop(), theirs, bytes(32), bytes(32), 30.0, take, taken.append)
    link = Link(Loop(), ours, bytes(32), bytes(32), 30.0, take, taken.append)
    sender.send("word", number=0)
    with pytest.raises(KeyError):
        link.read()
    sender.send("word", number=1)
    link.read()
    assert taken == [0, 1]
    link.close()
    sender.close()


@pytest.mark.parametrize("secret", [b"", bytes(32)])
def test_another_secret_opens_nothing(secret: bytes) -> None:
    with Listener("n1") as listener, pytest.raises(OSError, match=r"closed|reset"):
        call(["127.0.0.1"], listener.port, secret, "n1", 10)
    assert listener.admitted == []


def test_a_host_that_is_not_expected_or_has_come_is_turned_away() -> None:
    with Listener("n1", "n2") as listener:
        connection, *_ = call(["127.0.0.1"], listener.port, SECRET, "n1", 10)
        for name in ("n1", "n3", "n" * 2000):
            with pytest.raises(OSError, match=r"closed|reset"):
                call(["127.0.0.1"], listener.port, SECRET, name, 10)
        listener.wait_for(listener.admitted)
        assert listener.admitted == ["n1"]
        connection.close()


def test_what_was_overheard_is_of_no_use() -> None:
    with Listener("n1", "n2") as listener:
        with listener.connect() as first:
            theirs = first.recv(NONCE)
            nonce = os.urandom(NONCE)
            said = nonce + len(b"n1").to_bytes(2, "big") + b"n1" + proof(SECRET, b"proxy", theirs, nonce, b"n1")
        with listener.connect() as second:
            second.recv(NONCE)
            second.sendall(said)
            assert second.recv(1) == b""
    assert listener.admitted == []


def test_garbage_and_half_open_callers_keep_nobody_out(rng: random.Random) -> None:
    with Listener("n1") as listener:
        silent = [listener.connect() for _ in range(2 * MOST_CALLERS)]
        for _ in range(200):
            with listener.connect() as caller:
                caller.sendall(rng.randbytes(rng.randrange(200)))
        connection, *_ = call(["127.0.0.1"], listener.port, SECRET, "n1", 10)
        listener.wait_for(listener.admitted)
        assert listener.admitted == ["n1"]
        assert len(listener.reception.callers) <= MOST_CALLERS
        connection.close()
        for it in silent:
            it.close()


@pytest.mark.parametrize("at", [0, 3, 4, 19, 20, 30, -1])
def test_a_byte_that_was_changed_on_the_way_ends_the_link(at: int) -> None:
    with Listener("n1") as listener:
        connection = listener.connect()
        up, _ = greet(connection, SECRET, b"n1")
        body = b'{"cmd": "word"}\nsome data'
        frame = bytearray(len(body).to_bytes(4, "big") + Link.proof_of(up, 0, body) + body)
        frame[at] ^= 1
        connection.sendall(frame + b"x" * 70000)
        connection.shutdown(socket.SHUT_WR)
        listener.wait_for(listener.lost)
        assert listener.frames == []
        connection.close()


def test_a_frame_that_comes_twice_ends_the_link() -> None:
    with Listener("n1") as listener:
        connection = listener.connect()
        up, _ = greet(connection, SECRET, b"n1")
        body = b'{"cmd": "word"}\n'
        frame = len(body).to_bytes(4, "big") + Link.proof_of(up, 0, body) + body
        connection.sendall(frame + frame)
        listener.wait_for(listener.lost)
        assert len(listener.frames) == 1
        assert listener.lost == ["what came from there is not its own"]
        connection.close()
