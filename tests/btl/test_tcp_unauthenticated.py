"""Strangers at a rank's port: they deliver nothing, disturb nothing, leave nothing behind, and are counted."""

from __future__ import annotations

import contextlib
import os
import random
import socket
import time

import pytest
import tcp_ranks
from ompy_btl_tcp.channel import Channel
from ompy_btl_tcp.handshake import (
    NONCE_SIZE,
    OVER,
    REFUSED,
    TWICE,
    VERDICT,
    WELCOME,
    Answerer,
    Caller,
    Conversation,
    Ended,
    name_of,
)
from tcp_ranks import (
    ME,
    PEER,
    SECRET,
    TAG,
    Rank,
    binding_of,
    call,
    door,
    exactly,
    greeting,
    hello,
    introduced,
    proof,
    protecting,
    run,
)

pytestmark = pytest.mark.usefixtures("protection")


def pair() -> tuple[socket.socket, socket.socket]:
    ends = socket.socketpair()
    for end in ends:
        end.setblocking(False)
    return ends


def talk(caller_secret: bytes, answerer_secret: bytes, verdict: int = WELCOME, called: bytes = ME) -> tuple[str, str]:
    """What becomes of a conversation at both ends: the reason for its end, or "" where it led to a connection."""
    ours, theirs = pair()
    caller = Caller(ours, caller_secret, PEER, protecting())
    answerer = Answerer(theirs, {ME: answerer_secret}, lambda _: verdict, protecting())
    outcomes: dict[Conversation, str] = {}
    caller.begin(called)
    while len(outcomes) < 2:
        for end in (answerer, caller):
            if end in outcomes:
                continue
            try:
                if end.advance():
                    outcomes[end] = ""
            except Ended as ended:
                outcomes[end] = str(ended)
    return outcomes[caller], outcomes[answerer]


def test_those_who_share_a_secret_meet_and_others_do_not() -> None:
    assert talk(SECRET, SECRET) == ("", "")
    assert talk(b"", b"") == ("", "")
    for caller, answerer in ((b"other", SECRET), (SECRET, b"other"), (b"", SECRET)):
        refused, unknown = talk(caller, answerer)
        assert "refused our credentials" in refused
        assert "does not know the secret" in unknown
    assert "refused our credentials" in talk(SECRET, SECRET, called=name_of("test", 2))[0]
    assert "calling too" in talk(SECRET, SECRET, TWICE)[0]
    assert "given up contact" in talk(SECRET, SECRET, OVER)[0]


def test_an_answerer_who_does_not_know_the_secret_is_told_nothing() -> None:
    for verdict in (WELCOME, TWICE, OVER):
        ours, theirs = pair()
        caller = Caller(ours, SECRET, PEER, protecting())
        caller.begin(ME)
        answerer = Conversation(theirs, b"", ME, protecting())
        if answerer.channel is not None:
            answerer.channel = Channel(theirs, True)
            while not answerer.channel.binding:
                caller.advance()
                with contextlib.suppress(BlockingIOError):
                    answerer.channel.shake_hands()
        answerer.say(os.urandom(NONCE_SIZE) + VERDICT.pack(verdict, os.urandom(32)))
        with pytest.raises(Ended, match="does not know the secret"):
            caller.advance()


def test_a_conversation_that_was_overheard_opens_nothing() -> None:
    def body(rank: Rank) -> None:
        where = door(rank)
        if rank.rank == 0:
            rank.progress_until(lambda: rank.btl.statistics()["connections_rejected"] == 1)
            rank.gather()
        else:
            said: list[bytes] = []
            with call(where) as caller:
                nonce = os.urandom(NONCE_SIZE)
                said.append(hello(nonce))
                caller.sendall(said[0])
                challenge = exactly(caller, NONCE_SIZE)
                said.append(proof(SECRET, nonce, challenge, binding=binding_of(caller)))
                caller.sendall(said[1])
                assert exactly(caller, VERDICT.size)[0] == WELCOME
                with call(where) as replaying:
                    replaying.sendall(said[0])
                    assert exactly(replaying, NONCE_SIZE) != challenge
                    replaying.sendall(said[1])
                    assert exactly(replaying, VERDICT.size)[0] == REFUSED
                    assert replaying.recv(1) == b""
            rank.gather()
        assert not rank.inbox.messages

    run(body)


def stranger(where: tuple[str, int], number: int, rng: random.Random) -> None:
    """Scan the port, say something random, half of a greeting or all but the proof, hang up."""
    whole = greeting(rng.randbytes(NONCE_SIZE))
    openings = (
        b"",
        b"GET / HTTP/1.1\r\n\r\n",
        whole[: rng.randrange(1, len(whole))],
        whole,
        rng.randbytes(rng.randrange(1, 300)),
    )
    if number % 50 == 3:
        with call(where, 30) as caller, contextlib.suppress(OSError):
            caller.sendall(hello(rng.randbytes(NONCE_SIZE)))
            exactly(caller, NONCE_SIZE)
            caller.sendall(rng.randbytes(32))
            assert exactly(caller, VERDICT.size)[:1] in (bytes([REFUSED]), b"")
        return
    with socket.create_connection(where, timeout=30) as caller, contextlib.suppress(ConnectionError):
        caller.sendall(openings[number % len(openings)])


def test_ten_thousand_strangers_deliver_nothing_and_keep_nobody_out() -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    attempts = 10_000

    def body(rank: Rank) -> None:
        where = door(rank)
        if rank.rank == 2:
            rng = random.Random(seed)
            for number in range(attempts):
                stranger(where, number, rng)
            rank.post(0, b"that was all")
            rank.gather()
            return
        files = len(os.listdir("/proc/self/fd")) + 2
        turn = -1
        expected: list[bytes] = []
        while rank.inbox.messages[-1:] != [b"end"]:
            turn += 1
            is_over = b"that was all" in rank.inbox.messages
            rank.post(1 - rank.rank, b"end" if is_over else turn.to_bytes(4, "little"))
            if is_over:
                break
            expected.append(turn.to_bytes(4, "little"))
            rank.progress_until(lambda turn=turn: len(set(rank.inbox.messages) - {b"that was all"}) > turn)
        rank.gather()
        assert [it for it in rank.inbox.messages if len(it) == 4][: len(expected) - 1] == expected[:-1]
        assert not set(rank.inbox.messages) - {*expected, b"end", b"that was all", turn.to_bytes(4, "little")}
        assert not rank.errors
        if rank.rank == 0:
            assert rank.btl.statistics()["connections_rejected"] > attempts // 2
            rank.progress_until(lambda: len(os.listdir("/proc/self/fd")) <= files)

    run(body, size=3)


def test_callers_that_say_nothing_are_closed_in_time_and_the_oldest_first_when_there_are_many() -> None:
    def body(rank: Rank) -> None:
        where = door(rank)
        if rank.rank == 0:
            rank.progress_until(lambda: rank.btl.statistics()["connections_rejected"] >= 30)
            rank.gather()
            rank.wait_for(1)
            rank.progress_until(lambda: rank.btl.statistics()["connections_rejected"] == 50)
        else:
            silent = [socket.create_connection(where, timeout=30) for _ in range(50)]
            assert silent[0].recv(1) == b""
            rank.gather()
            rank.post(0, b"through the crowd")
            for caller in silent:
                assert caller.recv(1) == b""
        rank.gather()

    run(body, handshakes=20, handshake_timeout=2000)


def test_a_slow_drip_is_cut_off_by_the_deadline() -> None:
    def body(rank: Rank) -> None:
        where = door(rank)
        if rank.rank == 0:
            rank.progress_until(lambda: rank.btl.statistics()["connections_rejected"] == 1)
        else:
            with socket.create_connection(where, timeout=30) as caller, contextlib.suppress(ConnectionError):
                end = time.monotonic() + 30
                for byte in greeting(bytes(NONCE_SIZE)):
                    caller.sendall(bytes([byte]))
                    caller.settimeout(0.05)
                    with contextlib.suppress(TimeoutError):
                        if caller.recv(1) == b"":
                            break
                    assert time.monotonic() < end
        rank.gather()

    run(body, handshake_timeout=500)


@pytest.mark.parametrize(
    "forged",
    [
        (1 << 31).to_bytes(4, "little") + bytes(4) + b"\x01" + bytes(7),  # longer than any message
        bytes(8) + b"\x09" + bytes(7),  # of no kind
        bytes(4) + (7).to_bytes(4, "little") + b"\x01" + bytes(7),  # out of turn
        (8).to_bytes(4, "little") + bytes(4) + b"\x05" + bytes(7),  # a goodbye with something in it
    ],
)
def test_what_is_no_frame_ends_the_connection_and_names_the_peer(forged: bytes) -> None:
    def body(rank: Rank) -> None:
        where = door(rank)
        if rank.rank == 0:
            rank.progress_until(lambda: bool(rank.errors))
            assert [lost for lost, _ in rank.errors] == [1]
            assert "rank 1" in str(rank.errors[0][1])
            assert not rank.inbox.messages
        else:
            with call(where) as caller:
                assert introduced(caller, SECRET)[0] == WELCOME
                caller.sendall(forged)
                with contextlib.suppress(ConnectionError):
                    assert caller.recv(1) == b""
        rank.gather()

    run(body)


def test_without_security_a_caller_needs_no_secret_but_an_introduction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp_ranks, "security", "none")

    def body(rank: Rank) -> None:
        where = door(rank)
        frame = (4).to_bytes(4, "little") + bytes(4) + bytes([1, TAG]) + bytes(6) + b"data" + bytes(4)
        if rank.rank == 0:
            rank.wait_for(1)
            assert rank.inbox.messages == [b"data"]
        else:
            # Too short for an introduction: it is cut off when the time for one is over.
            with socket.create_connection(where, timeout=60) as caller:
                caller.sendall(frame)
                assert exactly(caller, 1) == b""
            with socket.create_connection(where, timeout=10) as caller:
                assert introduced(caller, b"")[0] == WELCOME
                caller.sendall(frame)
                rank.gather()
                return
        rank.gather()

    run(body, handshake_timeout=3000)
