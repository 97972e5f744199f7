"""btl/tcp with `btl_tcp_security tls`: nothing is to be read or changed on the way, and nobody gets in between."""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import select
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from ctypes import create_string_buffer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import tcp_ranks
from ompy_btl_tcp.card import Address, pack, unpack
from ompy_btl_tcp.channel import AegisChannel, Channel, context
from ompy_btl_tcp.handshake import NONCE_SIZE, VERDICT, WELCOME, Answerer, Caller, Ended
from ompy_btl_tcp.libcrypto import load, mapped
from ompy_btl_tcp.traffic import SUITES, TrafficSecret
from tcp_ranks import ME, PEER, SECRET, TAG, Rank, binding_of, call, door, exactly, hello, introduced, open_btl, proof, run
from test_tcp import put

from ompy.core.errors import MPIError
from ompy.core.memory import address_of
from ompy.core.proc import Proc

RECORD = 16384
PATIENCE = 60000


@pytest.fixture(autouse=True, params=["auto", "aes"])
def cipher(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Of the ranks; where the other end is OpenSSL's, its own."""
    monkeypatch.setattr(tcp_ranks, "security", "tls")
    monkeypatch.setattr(tcp_ranks, "cipher", request.param)
    return str(request.param)


class Between:
    """Somebody through whom rank 1's connections to rank 0 go: sees all, and may change it.

    Parameters:
        door: where rank 0 listens.
        passed: `passed(data, is_from_caller)`: what of it goes on, and whether the connection does behind it.
    """

    def __init__(self, door: tuple[str, int], passed: Callable[[bytes, bool], tuple[bytes, bool]]) -> None:
        self.door = door
        self.passed = passed
        self.seen: list[tuple[bool, bytes]] = []
        self.listening = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        while True:
            caller, _ = self.listening.accept()
            try:
                answerer = socket.create_connection(self.door)
            except OSError:  # rank 0 has ended
                self.listening.close()
                caller.close()
                return
            threading.Thread(target=self.relay, args=(caller, answerer), daemon=True).start()

    def relay(self, caller: socket.socket, answerer: socket.socket) -> None:
        with caller, answerer, contextlib.suppress(OSError):
            self.carry(caller, answerer)

    def carry(self, caller: socket.socket, answerer: socket.socket) -> None:
        while True:
            for source in select.select([caller, answerer], [], [])[0]:
                data = source.recv(1 << 16)
                self.seen.append((source is caller, data))
                changed, goes_on = self.passed(data, source is caller)
                (answerer if source is caller else caller).sendall(changed)
                if not data or not goes_on:
                    return


class ManInTheMiddle(Between):
    """One who speaks TLS to both, and passes on what he reads."""

    def carry(self, caller: socket.socket, answerer: socket.socket) -> None:
        ours = context(True).wrap_socket(caller, server_side=True)
        theirs = context(False).wrap_socket(answerer)
        while True:
            for source, target in ((ours, theirs), (theirs, ours)):
                source.settimeout(0.05)
                with contextlib.suppress(TimeoutError):
                    data = source.recv(1 << 16)
                    if not data:
                        return
                    self.seen.append((source is ours, data))
                    target.sendall(data)


def reroute(rank: Rank, port: int) -> None:
    """Rank 1 takes this port for rank 0's."""
    endpoint = rank.endpoints[0]
    proc = endpoint.proc
    card = unpack(proc.card["tcp"])
    rank.btl.del_procs([endpoint])
    proc.card["tcp"] = pack(card._replace(addresses=(Address(card.addresses[0].interface, port),)))
    [rank.endpoints[0]] = rank.btl.add_procs([proc])


def unchanged(data: bytes, is_from_caller: bool) -> tuple[bytes, bool]:
    return data, True


def between(rank: Rank, passed: Callable[[bytes, bool], tuple[bytes, bool]] = unchanged, kind: type = Between) -> Any:
    """On rank 1, somebody between it and rank 0; None on rank 0."""
    where = door(rank)
    if rank.rank == 0:
        return None
    made = kind(where, passed)
    reroute(rank, made.listening.getsockname()[1])
    return made


def sizes_about_records() -> Iterator[int]:
    for header in (0, 16, 24, 40):
        for records in (1, 2, 4, 8, 9):
            for step in (-1, 0, 1):
                yield records * RECORD - header + step


def test_messages_of_every_size_about_the_limits_of_records_arrive_both_ways_at_once() -> None:
    sizes = [0, 1, 7, 8, 9, *sizes_about_records()]
    messages = [random.Random(size).randbytes(size) for size in sizes if size <= 131000]

    def body(rank: Rank) -> None:
        for message in messages:
            for peer in range(3):
                if peer != rank.rank:
                    rank.post(peer, bytes([rank.rank]) + message)
        rank.wait_for(2 * len(messages))
        for peer in range(3):
            if peer != rank.rank:
                assert [it[1:] for it in rank.inbox.messages if it[0] == peer] == messages
        rank.meet()

    run(body, size=3)


@pytest.mark.parametrize("kind", [{}, {"links": 3, "failover_timeout": PATIENCE}], ids=["one connection", "three links"])
def test_puts_of_every_size_about_the_limits_of_records_arrive_both_ways_at_once(kind: dict[str, int]) -> None:
    sizes = [1, *sizes_about_records(), 64 * RECORD, 64 * RECORD + 1, (5 << 20) + 3]

    def body(rank: Rank) -> None:
        memory = bytearray(max(sizes) + 2)
        source = [create_string_buffer(random.Random(size).randbytes(size), size) for size in sizes]
        handle = rank.btl.hold_mem(rank.endpoints[1 - rank.rank], address_of(memory), len(memory))
        remote, theirs = rank.gather((address_of(memory), handle))[1 - rank.rank]
        for data, size in zip(source, sizes, strict=True):
            over = put(rank, 1 - rank.rank, data, remote + 1, theirs, size)
            rank.post(1 - rank.rank, b"")
            rank.progress_until(lambda over=over: bool(over))
            assert over == [0]
            rank.meet()
            rank.progress_until(lambda: rank.btl.flush(rank.endpoints[1 - rank.rank]) == 0)
            rank.meet()
            assert memory[1 : size + 1] == bytes(data)
            assert memory[0] == memory[size + 1] == 0
            memory[1 : size + 1] = bytes(size)
            rank.gather()
        rank.btl.release_mem(handle)

    run(body, sndbuf=40000, rcvbuf=40000, **kind)


def test_seventy_thousand_messages_are_as_many_records_and_arrive_in_order() -> None:
    count = 70_000

    def body(rank: Rank) -> None:
        for turn in range(count):
            rank.post(1 - rank.rank, turn.to_bytes(4, "little"))
        rank.wait_for(count)
        assert rank.inbox.messages == [turn.to_bytes(4, "little") for turn in range(count)]
        rank.meet()

    run(body)


def test_nothing_is_to_be_read_on_the_wire() -> None:
    words = b"the quick brown fox jumps over the lazy dog" * 4

    def body(rank: Rank) -> None:
        wire = between(rank)
        if rank.rank == 0:
            rank.wait_for(1)
            assert rank.inbox.messages == [words]
            rank.post(1, words)
        else:
            rank.post(0, words)
            rank.wait_for(1)
            seen = b"".join(data for _, data in wire.seen)
            assert len(seen) > 2 * len(words)
            for told in (b"quick brown", b"ompy tcp", SECRET[:8], ME[:8], PEER[:8]):
                assert told not in seen
        rank.meet()

    run(body)


def test_who_terminates_tls_on_both_sides_is_refused_by_both() -> None:
    def body(rank: Rank) -> None:
        wire = between(rank, kind=ManInTheMiddle)
        if rank.rank == 0:
            rank.progress_until(lambda: rank.btl.statistics()["connections_rejected"] > 0)
            rank.gather()
            assert not rank.inbox.messages
            assert rank.btl.statistics()["connections"] == 0
        else:
            with pytest.raises(MPIError, match=r"refused our credentials.*somebody is between"):
                rank.post(0, b"for rank 0 alone")
            rank.gather()
            assert any(data.startswith(b"ompy tcp") for _, data in wire.seen), "he has read nothing"
            assert not any(b"for rank 0 alone" in data for _, data in wire.seen)
        rank.gather()

    run(body)


def test_who_answers_for_a_rank_and_takes_every_proof_is_told_nothing() -> None:
    caller_end, answerer_end = socket.socketpair()
    with caller_end, answerer_end:
        caller_end.setblocking(False)
        caller = Caller(caller_end, SECRET, PEER, Channel)
        caller.begin(ME)
        theirs: list[Any] = []

        def answer() -> None:
            with contextlib.suppress(OSError):
                channel = context(True).wrap_socket(answerer_end, server_side=True)
                exactly(channel, len(hello(bytes(NONCE_SIZE))))
                channel.sendall(bytes(NONCE_SIZE))
                theirs.append(exactly(channel, 32))
                channel.sendall(VERDICT.pack(WELCOME, theirs[0]))

        thread = threading.Thread(target=answer)
        thread.start()

        def finish() -> None:
            while not caller.advance():
                select.select([caller_end], [], [], 30)

        with pytest.raises(Ended, match="does not know the secret"):
            finish()
        thread.join()
        assert theirs


def test_a_recording_of_a_connection_opens_nothing() -> None:
    def body(rank: Rank) -> None:
        where = door(rank)
        if rank.rank == 0:
            rank.gather()
            rank.wait_for(1)
            rank.gather()
            rank.progress_until(lambda: rank.btl.statistics()["connections_rejected"] == 1)
            rank.gather()
            assert rank.inbox.messages == [b"once"]
        else:
            wire = Between(where, unchanged)
            reroute(rank, wire.listening.getsockname()[1])
            rank.gather()
            rank.post(0, b"once")
            rank.gather()
            with socket.create_connection(where, timeout=30) as replaying, contextlib.suppress(ConnectionError):
                for is_from_caller, data in list(wire.seen):
                    if is_from_caller:
                        replaying.sendall(data)
                while replaying.recv(1000):
                    pass
            rank.gather()
        rank.meet()

    run(body, handshake_timeout=1000)


def test_a_proof_for_another_channel_opens_nothing() -> None:
    def body(rank: Rank) -> None:
        where = door(rank)
        if rank.rank == 0:
            rank.progress_until(lambda: rank.btl.statistics()["connections_rejected"] == 2)
        else:
            for binding in (b"", os.urandom(48)):
                with call(where) as caller:
                    nonce = os.urandom(NONCE_SIZE)
                    caller.sendall(hello(nonce))
                    challenge = exactly(caller, NONCE_SIZE)
                    assert binding_of(caller) != binding
                    caller.sendall(proof(SECRET, nonce, challenge, binding=binding))
                    assert exactly(caller, VERDICT.size)[0] != WELCOME
        rank.gather()

    run(body)


def test_who_knows_the_secret_and_speaks_in_clear_is_not_heard() -> None:
    def body(rank: Rank) -> None:
        where = door(rank)
        if rank.rank == 0:
            rank.progress_until(lambda: rank.btl.statistics()["connections_rejected"] == 1)
        else:
            tcp_ranks.security = "secret"
            with call(where) as caller, contextlib.suppress(ConnectionError):
                assert introduced(caller, SECRET)[:1] != bytes([WELCOME])
        rank.gather()
        assert not rank.inbox.messages

    run(body)


@pytest.mark.parametrize("change", ["a bit", "a kind", "a version", "an extra byte", "cut off"])
def test_what_is_changed_on_its_way_is_a_lost_peer_and_never_a_message(change: str) -> None:
    message = bytes(100_000)

    def body(rank: Rank) -> None:
        armed = threading.Event()

        def meddle(data: bytes, is_from_caller: bool) -> tuple[bytes, bool]:
            if not armed.is_set() or not is_from_caller or len(data) < 1000:
                return data, True
            middle = len(data) // 2
            if change == "cut off":
                return data[:middle], False
            if change in ("a kind", "a version"):  # in the first record's header
                armed.clear()
                place = 0 if change == "a kind" else 2
                return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :], True
            extra = b"\0" if change == "an extra byte" else bytes([data[middle] ^ 1])
            return data[:middle] + extra + data[middle + (change == "a bit") :], True

        between(rank, meddle)
        if rank.rank == 0:
            rank.wait_for(1)
            rank.gather()
            rank.progress_until(lambda: bool(rank.errors))
            assert [lost for lost, _ in rank.errors] == [1]
            assert ("closed" if change == "cut off" else "damaged or forged") in str(rank.errors[0][1])
            assert not set(rank.inbox.messages) - {b"well", message}
        else:
            rank.post(0, b"well")
            rank.gather()
            armed.set()
            # More and more, as a record may have become longer by the change.
            with contextlib.suppress(MPIError):
                while not rank.errors:
                    rank.post(0, message)
        rank.gather()

    run(body)


def test_what_is_changed_on_its_way_is_sent_again_where_connections_are_made_again() -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    messages = [random.Random(seed + turn).randbytes(random.Random(turn).choice((10, 3000, 20000))) for turn in range(400)]

    def body(rank: Rank) -> None:
        rng = random.Random(seed)

        def meddle(data: bytes, is_from_caller: bool) -> tuple[bytes, bool]:
            if not data or rng.random() > 0.01:
                return data, True
            # Behind it comes the end: else a record that has become longer would be waited for.
            place = rng.randrange(len(data))
            return data[:place] + bytes([data[place] ^ (1 << rng.randrange(8))]) + data[place + 1 :], False

        between(rank, meddle)
        if rank.rank == 1:
            rank.post(0, b"")
            rank.wait_for(1)
        else:
            rank.wait_for(1)
            rank.post(1, b"")
        for message in messages:
            rank.post(1 - rank.rank, message)
        rank.wait_for(len(messages) + 1)
        assert rank.inbox.messages == [b"", *messages]
        assert not rank.errors
        rank.meet()

    run(body, failover_timeout=PATIENCE, linger=30000)


def test_ranks_of_different_settings_are_told_which_rank_and_which_parameter(cipher: str) -> None:
    ours, theirs = open_btl(rank=0, security="tls"), open_btl(rank=1, security="secret")
    try:
        by = ", AEGIS-128L" if cipher == "auto" else ""
        assert (ours.remark(), theirs.remark()) == (f"encrypted by TLS 1.3{by}", "")
        for here, there, rank in ((ours, theirs, 1), (theirs, ours, 0)):
            proc = Proc(rank, rank, "test", "here", os.getpid(), False, True, {"tcp": there.address()})
            [reason] = here.add_procs([proc])
            assert reason.startswith("btl_tcp_security is ")
            assert f"on rank {rank}" in reason
            assert {"secret", "tls"} <= set(reason.split())
    finally:
        ours.finalize()
        theirs.finalize()


def test_a_conversation_that_stops_at_any_byte_leads_nowhere_and_blocks_nobody() -> None:
    """Both ends of one, of which each message is cut at a random place and the rest comes later, or never."""
    rng = random.Random(seed := random.randrange(1 << 32))
    print(f"seed {seed}")
    for turn in range(60):
        never = rng.randrange(1200) if turn % 2 else 1 << 30
        (one, far_one), (other, far_other) = socket.socketpair(), socket.socketpair()
        for link in (one, far_one, other, far_other):
            link.setblocking(False)
        with one, far_one, other, far_other:
            caller = Caller(one, SECRET, PEER, Channel)
            answerer = Answerer(other, {ME: SECRET}, lambda _: WELCOME, Channel)
            caller.begin(ME)
            through = 0
            done: set[Any] = set()
            for _ in range(4000):
                for end in {caller, answerer} - done:
                    if end.advance():
                        done.add(end)
                for source, target in ((far_one, far_other), (far_other, far_one)):
                    with contextlib.suppress(BlockingIOError):
                        piece = source.recv(min(rng.randrange(1, 200), max(never - through, 0)) or 1)
                        through += len(piece)
                        if through <= never:
                            target.send(piece)
                if len(done) == 2:
                    break
            assert (len(done) == 2) == (never == 1 << 30), f"turn {turn}: stopped after {never} of {through}"
            if len(done) == 2:
                assert caller.channel is not None
                assert answerer.channel is not None
                assert caller.channel.binding == answerer.channel.binding


def test_the_first_frames_may_come_with_the_last_words_of_the_conversation() -> None:
    def body(rank: Rank) -> None:
        where = door(rank)
        if rank.rank == 0:
            rank.wait_for(1)
            assert rank.inbox.messages == [b"data"]
        else:
            frame = (4).to_bytes(4, "little") + bytes(4) + bytes([1, TAG]) + bytes(6) + b"data" + bytes(4)
            with call(where) as caller:
                nonce = os.urandom(NONCE_SIZE)
                caller.sendall(hello(nonce))
                challenge = exactly(caller, NONCE_SIZE)
                caller.sendall(proof(SECRET, nonce, challenge, binding=binding_of(caller)) + frame)
                assert exactly(caller, VERDICT.size)[0] == WELCOME
                rank.gather()
                return
        rank.gather()

    run(body)


@pytest.mark.parametrize(
    ("secret", "key", "iv"),
    [
        (
            "9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5",
            "17422dda596ed5d9acd890e3c63f5051",
            "5b78923dee08579033e523d9",
        ),
        (
            "a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643",
            "9f02283b6c9c07efc26bb9f2ac92e356",
            "cf782b88dd83549aadf1e984",
        ),
    ],
    ids=["client", "server"],
)
def test_keys_are_those_of_rfc_8448(secret: str, key: str, iv: str) -> None:
    """Section 3 there: the keys of the application's data."""
    made = TrafficSecret("TLS_AES_128_GCM_SHA256", bytes.fromhex(secret))
    assert (made.key.hex(), made.iv.hex()) == (key, iv)


@pytest.fixture
def short_lived_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, suite in SUITES.items():
        monkeypatch.setitem(SUITES, name, suite._replace(most_records=3))


@pytest.mark.usefixtures("short_lived_keys")
def test_new_keys_between_any_two_records_lose_nothing() -> None:
    messages = [random.Random(turn).randbytes(random.Random(turn).choice((0, 1, 9, 1000, 40_000))) for turn in range(300)]

    def body(rank: Rank) -> None:
        size = (1 << 20) + 7
        memory = bytearray(size)
        handle = rank.btl.hold_mem(rank.endpoints[1 - rank.rank], address_of(memory), size)
        remote, theirs = rank.gather((address_of(memory), handle))[1 - rank.rank]
        data = create_string_buffer(random.Random(1).randbytes(size), size)
        for message in messages[:150]:
            rank.post(1 - rank.rank, message)
        over = put(rank, 1 - rank.rank, data, remote, theirs, size)
        for message in messages[150:]:
            rank.post(1 - rank.rank, message)
        rank.wait_for(len(messages))
        rank.progress_until(lambda: bool(over))
        assert rank.inbox.messages == messages
        rank.meet()
        rank.progress_until(lambda: rank.btl.flush(rank.endpoints[1 - rank.rank]) == 0)
        rank.meet()
        assert memory == bytes(data)
        rank.btl.release_mem(handle)

    run(body, sndbuf=40000, rcvbuf=40000)


def talk_with_openssl(count: int) -> None:
    """Frames both ways between a rank and a peer whose records OpenSSL makes and opens."""
    payload = bytes(range(256)) * 4
    frame = len(payload).to_bytes(4, "little")
    kinds = bytes([1, TAG]) + bytes(6)

    def body(rank: Rank) -> None:
        where = door(rank)
        if rank.rank == 0:
            rank.wait_for(count)
            assert rank.inbox.messages == [payload] * count
            for _ in range(count):
                rank.post(1, payload)
        else:
            with call(where) as caller:
                assert introduced(caller, SECRET)[0] == WELCOME
                for sequence in range(count):
                    caller.sendall(frame + sequence.to_bytes(4, "little") + kinds + payload)
                for sequence in range(count):
                    got = exactly(caller, 16 + len(payload))
                    assert got == frame + sequence.to_bytes(4, "little") + kinds + payload
                rank.gather()
                return
        rank.gather()

    run(body)


def test_records_are_those_of_openssl() -> None:
    talk_with_openssl(200)


@pytest.mark.usefixtures("short_lived_keys")
def test_openssl_follows_to_new_keys() -> None:
    talk_with_openssl(50)


@pytest.mark.parametrize("suite", [name for name in SUITES if name.startswith("TLS")])
def test_records_are_those_of_openssl_in_every_suite(suite: str, tmp_path: Path) -> None:
    settings = tmp_path / "openssl.cnf"
    settings.write_text(
        f"openssl_conf = all\n[all]\nssl_conf = ssl\n[ssl]\nsystem_default = suites\n[suites]\nCiphersuites = {suite}\n"
    )
    program = (
        "import tcp_ranks, test_tcp_tls; from ompy_btl_tcp.channel import context;"
        f"assert {suite!r} in [it['name'] for it in context(False).get_ciphers()][:1];"
        "tcp_ranks.security = 'tls'; test_tcp_tls.talk_with_openssl(20)"
    )
    environment = os.environ | {"OPENSSL_CONF": str(settings), "PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr


def records_of(wire: Between) -> list[bytes]:
    """Those that a caller has sent, whole."""
    data = b"".join(data for is_from_caller, data in wire.seen if is_from_caller)
    found = []
    while data:
        size = 5 + int.from_bytes(data[3:5], "big")
        found.append(data[:size])
        data = data[size:]
    return found


@pytest.mark.parametrize("both", [True, False], ids=["both", "one"])
def test_ranks_that_both_have_aegis_use_it(cipher: str, both: bool) -> None:
    message = bytes(1000)

    def body(rank: Rank) -> None:
        wire = between(rank)
        if rank.rank == 0:
            rank.wait_for(1)
        else:
            if not both:
                AegisChannel.ciphers = ()
            rank.post(0, message)
            rank.progress_until(lambda: len(records_of(wire)[-1]) > len(message))
            extra = 32 if cipher == "auto" and both else 1 + 16
            assert len(records_of(wire)[-1]) == 5 + 16 + len(message) + extra
        rank.meet()

    run(body)


def opened(record: bytes, secret: TrafficSecret, number: int) -> bytes | None:
    """Content of a record under AEGIS-128L, by libsodium itself; None for one that is none."""
    found = find_spec("zmq")
    assert found is not None
    assert found.origin is not None
    [path] = (Path(found.origin).parent.parent / "pyzmq.libs").glob("libsodium*")
    library = ctypes.CDLL(str(path))
    nonce = (int.from_bytes(secret.iv, "big") ^ number).to_bytes(len(secret.iv), "big")
    content, size = record[5:-32], ctypes.c_ulonglong(len(record) - 37)
    got = create_string_buffer(len(content))
    wrong = library.crypto_aead_aegis128l_decrypt_detached(
        got, None, content, size, record[-32:], record[:5], ctypes.c_ulonglong(5), nonce, secret.key
    )
    return None if wrong else got.raw


def test_records_under_aegis_have_a_nonce_each_and_a_key_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    message, count = b"the same again", 5
    monkeypatch.setattr(tcp_ranks, "cipher", "aegis")
    secrets = []
    original = TrafficSecret.for_aegis

    def seen(secret: TrafficSecret) -> TrafficSecret:
        secrets.append((secret, original(secret)))
        return secrets[-1][1]

    monkeypatch.setattr(TrafficSecret, "for_aegis", seen)

    def body(rank: Rank) -> None:
        wire = between(rank)
        if rank.rank == 0:
            rank.wait_for(count)
        else:
            for _ in range(count):
                rank.post(0, message)
                rank.btl.progress()
            rank.meet()
            (tls, own), _ = secrets
            assert tls.key != own.key
            records = records_of(wire)[-count:]
            assert len(set(records)) == count
            [first] = [number for number in range(20) if opened(records[0], own, number)]
            for number, record in enumerate(records, first):
                content = opened(record, own, number)
                assert content is not None
                assert message in content
                assert record[0] == 23
            return
        rank.meet()

    run(body)


SAYS_WHICH_LIBCRYPTO = """
from mpi4py import MPI
world = MPI.COMM_WORLD
assert world.allreduce(bytes(100_000)) == bytes(200_000)
with open("/proc/self/maps") as maps:
    print(*sorted({line.split()[-1] for line in maps if "crypto" in line}), flush=True)
"""


def with_library(name: str, path: str) -> subprocess.CompletedProcess[str]:
    """Two ranks whose records are made by that one."""
    options = ["--mpi4py", "--mca", "btl", "self,tcp", "--mca", "btl_tcp_security", "tls", "--mca", f"btl_tcp_{name}", path]
    command = [sys.executable, "-m", "ompy.cli.ompyrun", "-n", "2", *options, sys.executable, "-c", SAYS_WHICH_LIBCRYPTO]
    return subprocess.run(command, capture_output=True, text=True, timeout=100)


def test_records_are_made_by_the_libcrypto_that_is_named(tmp_path: Path) -> None:
    load("")
    (own, *_) = mapped()
    copied = tmp_path / "libcrypto-another.so"
    shutil.copy(own, copied)
    done = with_library("libcrypto", str(copied))
    assert done.returncode == 0, done.stderr
    assert [str(copied) in line.split() for line in done.stdout.splitlines()] == [True, True]


def test_a_libcrypto_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    missing, pipe = str(tmp_path / "nowhere.so"), str(tmp_path / "pipe")
    os.mkfifo(pipe)
    for path, reason in (
        (pipe, "is no regular file"),
        (missing, "nowhere.so: cannot open shared object file"),
        ("libm.so.6", "libm.so.6 has no EVP_"),
    ):
        done = with_library("libcrypto", path)
        assert done.returncode != 0
        assert reason in done.stderr
        assert "btl_tcp_libcrypto" in done.stderr


def test_a_libsodium_that_cannot_be_used_is_named() -> None:
    for path, reason in (("/nowhere.so", "cannot open shared object file"), ("libm.so.6", "libm.so.6 has no AEGIS-128L")):
        done = with_library("libsodium", path)
        assert done.returncode != 0
        assert reason in done.stderr
        assert "btl_tcp_libsodium" in done.stderr


def test_a_peer_that_closes_as_tls_does_is_lost_as_any_other() -> None:
    def body(rank: Rank) -> None:
        where = door(rank)
        if rank.rank == 0:
            rank.progress_until(lambda: bool(rank.errors))
            assert "the connection was closed" in str(rank.errors[0][1])
        else:
            with call(where) as caller:
                assert introduced(caller, SECRET)[0] == WELCOME
                with contextlib.suppress(OSError):
                    caller.unwrap()  # type: ignore[attr-defined]
                rank.gather()
                return
        rank.gather()

    run(body)


def test_the_log_of_keys_lasts_as_long_as_a_step() -> None:
    channel = Channel(socket.socket(), False)  # no connection
    with channel.link:
        before = len(os.listdir("/proc/self/fd"))
        with pytest.raises(BrokenPipeError):
            channel.shake_hands()
        assert len(os.listdir("/proc/self/fd")) == before
    assert context(False).keylog_filename is None
