"""btl/tcp with several links to a peer, or one that is made again: what is lost with a link is sent again, and taken once."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import stat
from ctypes import create_string_buffer

import pytest
import tcp_ranks
from network_ranks import is_outlived_by_its_child
from ompy_btl_tcp.card import Address, Card, Way, unpack, ways
from ompy_btl_tcp.handshake import OVER, TWICE, WELCOME, Caller
from tcp_ranks import ME, PEER, SECRET, TAG, Rank, call, door, exactly, introduced, open_btl, run
from test_tcp import put

from ompy.core.errors import ERR_PROC_FAILED, MPIError
from ompy.core.memory import address_of
from ompy.mca.btl import BACK_PRESSURE, TAKEN

pytestmark = pytest.mark.usefixtures("protection")

PATIENCE = 60000
KINDS = [{"links": 1, "failover_timeout": PATIENCE}, {"links": 2}, {"links": 3, "failover_timeout": PATIENCE}]
SEVERAL = pytest.mark.parametrize("kind", KINDS, ids=["one that is made again", "two", "three that are made again"])
FIRST = 0xFFFFFF00  # the first sequence, as `bundle.pxd` has it


def kill_connection(rank: Rank, rng: random.Random) -> bool:
    """End one of the rank's connections as a reset does, at both ends; whether there was one."""
    connected = []
    for number in rank.btl.descriptors():
        if stat.S_ISSOCK(os.fstat(number).st_mode):
            with contextlib.suppress(OSError), socket.socket(fileno=os.dup(number)) as link:
                link.getpeername()
                connected.append(number)
    if not connected:
        return False
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(rng.choice(connected))) as link:
        link.shutdown(rng.choice([socket.SHUT_RD, socket.SHUT_WR, socket.SHUT_RDWR]))
        return True
    return False


def statistic(rank: Rank, name: str) -> int:
    return int(rank.btl.statistics()[name])


@SEVERAL
def test_messages_of_all_sizes_arrive_once_and_in_order(kind: dict[str, int]) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    sizes = random.Random(seed).choices([0, 1, 7, 8, 9, 100, 5000, 70000, 131000], k=600)
    messages = [index.to_bytes(4, "little") + bytes([index % 251]) * size for index, size in enumerate(sizes)]

    def body(rank: Rank) -> None:
        for message in messages:
            rank.post(1 - rank.rank, message)
        rank.wait_for(len(messages))
        rank.progress_until(lambda: statistic(rank, "links") == kind["links"])
        rank.meet()
        assert rank.inbox.messages == messages
        assert statistic(rank, "connections") == 1
        # A call that is made again, and found to be one too many before it has said a word, counts as a stranger's.
        assert statistic(rank, "connections_rejected") <= ("failover_timeout" in kind or tcp_ranks.security == "tls")
        assert not rank.errors
        rank.gather()  # who leaves before the other has looked takes the connection away

    run(body, **kind)


@SEVERAL
def test_connections_that_are_killed_lose_repeat_and_reorder_nothing(kind: dict[str, int]) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    sizes = random.Random(seed).choices([0, 1, 8, 100, 5000, 70000, 131000], k=1500)
    messages = [index.to_bytes(4, "little") + bytes([index % 251]) * size for index, size in enumerate(sizes)]
    kind = kind | {"failover_timeout": PATIENCE}

    def body(rank: Rank) -> None:
        rng = random.Random(seed + rank.rank)
        kills = 0
        for message in messages:
            rank.post(1 - rank.rank, message)
            rank.btl.progress()
            if rng.random() < 0.02:
                kills += kill_connection(rank, rng)
        rank.wait_for(len(messages))
        assert rank.inbox.messages == messages
        rank.progress_until(lambda: statistic(rank, "links") == kind["links"])
        rank.meet()
        assert rank.inbox.messages == messages
        assert not rank.errors
        assert kills
        lost, again = zip(*rank.gather((statistic(rank, "links_lost"), statistic(rank, "sent_again"))), strict=True)
        assert all(lost)
        assert any(again)

    run(body, **kind)


@SEVERAL
def test_puts_over_connections_that_are_killed_write_what_they_should_before_they_are_over(kind: dict[str, int]) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    room = 3 << 20
    kind = kind | {"failover_timeout": PATIENCE}
    turns = 20

    def body(rank: Rank) -> None:
        rng = random.Random(seed + rank.rank)
        memory = bytearray(room)
        address = address_of(memory)
        handle = rank.btl.hold_mem(rank.endpoints[1 - rank.rank], address, room)
        shown = rank.gather((address, handle))
        for turn in range(turns):
            size = random.Random(seed + turn).choice([0, 1, 4097, 262143, 262144, room])
            data = random.Random(turn).randbytes(size)
            if rank.rank == 0:
                source = create_string_buffer(data, size + 1)
                over = put(rank, 1, source, *shown[1], size)
                for _ in range(rng.randrange(4)):
                    kill_connection(rank, rng)
                    rank.btl.progress()
                rank.progress_until(lambda over=over: bool(over))
                assert over == [0]
                # It is the program's again: what comes of it later must not be seen.
                source[:size] = b"\xff" * size
                rank.post(1, b"written")
                rank.wait_for(turn + 1)
            else:
                rank.wait_for(turn + 1)
                assert memory[:size] == data
                memory[:] = bytes(room)
                kill_connection(rank, rng)
                rank.post(0, b"seen")
        rank.meet()
        if rank.rank == 1:
            assert not any(memory)
        assert len(rank.inbox.messages) == turns
        assert not rank.errors

    run(body, **kind)


def test_flush_waits_for_puts_that_are_not_acknowledged() -> None:
    def body(rank: Rank) -> None:
        memory = bytearray(8)
        handle = rank.btl.hold_mem(rank.endpoints[1 - rank.rank], address_of(memory), 8)
        shown = rank.gather((address_of(memory), handle))
        if rank.rank == 0:
            rank.post(1, b"connected")
            rank.progress_until(lambda: rank.endpoints[1].is_connected)
            data = create_string_buffer(b"12345678", 8)
            over = put(rank, 1, data, *shown[1], 8)
            for _ in range(100):
                rank.btl.progress()
            assert not over
            assert rank.btl.flush(rank.endpoints[1]) == BACK_PRESSURE
            rank.gather()
            rank.progress_until(lambda: rank.btl.flush(rank.endpoints[1]) == TAKEN)
            rank.progress_until(lambda: over == [0])
            rank.post(1, b"flushed")
        else:
            rank.progress_until(lambda: rank.endpoints[0].is_connected)
            rank.gather()
            rank.wait_for(2)
            assert bytes(memory) == b"12345678"
        rank.gather()

    run(body, failover_timeout=PATIENCE)


def test_memory_given_back_in_the_middle_of_a_put_is_not_written_any_more() -> None:
    size = 16 << 20

    def body(rank: Rank) -> None:
        memory = bytearray(size)
        address = address_of(memory)
        handle = rank.btl.hold_mem(rank.endpoints[1 - rank.rank], address, size)
        shown = rank.gather((address, handle))
        if rank.rank == 0:
            rank.post(1, b"first")
            rank.progress_until(lambda: statistic(rank, "links") == 2)
            data = create_string_buffer(b"x" * size, size)
            over = put(rank, 1, data, *shown[1], size)
            rank.post(1, b"after")
            rank.progress_until(lambda: bool(over))
        else:
            rank.progress_until(lambda: memory[0] != 0)
            rank.btl.release_mem(handle)
            assert 0 < memory.count(b"x") < size, "it was over at once: make it longer"
            memory[:] = bytes(size)
            rank.wait_for(2)
            assert memory == bytes(size)
        rank.meet()

    run(body, links=2)


@SEVERAL
def test_a_peer_that_does_not_read_holds_its_sender_back(kind: dict[str, int]) -> None:
    message = bytes(100_000)
    window = 1 << 20

    def body(rank: Rank) -> None:
        if rank.rank == 0:
            rank.post(1, b"connected")
            rank.gather()
            taken = 0
            while (outcome := rank.btl.post(rank.endpoints[1], taken.to_bytes(4, "little") + message, TAG)) == TAKEN:
                taken += 1
                rank.btl.progress()
                assert taken * len(message) <= window
            assert outcome == BACK_PRESSURE
            assert statistic(rank, "sends_held_back") > 0
            rank.gather()
            for index in range(taken, 200):
                rank.post(1, index.to_bytes(4, "little") + message)
        else:
            rank.wait_for(1)
            rank.gather()
            rank.gather()
            rank.wait_for(201)
            assert [int.from_bytes(data[:4], "little") for data in rank.inbox.messages[1:]] == list(range(200))
        rank.meet()

    run(body, failover_window=window, **kind)


@SEVERAL
def test_what_does_not_fit_beside_a_little_that_nothing_was_asked_about_goes_all_the_same(kind: dict[str, int]) -> None:
    # Answers acknowledge what nothing was asked about, too.
    messages = [bytes(10), bytes(65536), bytes(10), bytes(20), bytes(200_000), bytes(10), bytes(70_000)]

    def body(rank: Rank) -> None:
        for turn, message in enumerate(messages):
            if rank.rank == 0:
                rank.post(1, message)
            else:
                rank.wait_for(turn + 1)
            if turn % 2:
                if rank.rank == 1:
                    rank.post(0, message[:10])
                else:
                    rank.wait_for(turn // 2 + 1)
        if rank.rank == 1:
            assert [len(data) for data in rank.inbox.messages] == [len(message) for message in messages]
        rank.meet()

    run(body, failover_window=65536, max_send_size=1 << 20, **kind)


def test_a_peer_may_keep_65536_messages_unacknowledged_and_no_more() -> None:
    def body(rank: Rank) -> None:
        if rank.rank == 0:
            rank.post(1, b"first")
            rank.gather()
            taken = 1
            while rank.btl.post(rank.endpoints[1], taken.to_bytes(4, "little"), TAG) == TAKEN:
                taken += 1
            # What the peer has read of them it has told.
            assert 1 << 16 <= taken <= (1 << 16) + 1
            rank.gather()
            rank.post(1, b"last")
        else:
            rank.wait_for(1)
            rank.gather()
            rank.gather()
            rank.wait_for((1 << 16) + 1)
            assert rank.inbox.messages == [b"first", *(index.to_bytes(4, "little") for index in range(1, 1 << 16)), b"last"]
        rank.meet()

    run(body, links=2)


@pytest.mark.parametrize("kind", KINDS[:2], ids=["one that is made again", "two"])
def test_a_killed_peer_is_reported_without_waiting_for_the_failover(kind: dict[str, int]) -> None:
    def body(rank: Rank) -> None:
        rank.post(1 - rank.rank, b"hello")
        rank.wait_for(1)
        pids = rank.gather(os.getpid())
        if rank.rank == 1:
            signal.pause()
        memory = create_string_buffer(1 << 20)
        over = put(rank, 1, memory, 0, bytes(8), 1 << 20)
        os.kill(pids[1], signal.SIGKILL)
        rank.progress_until(lambda: bool(rank.errors))
        [(lost, error)] = rank.errors
        assert lost == 1
        assert f"pid {pids[1]}" in str(error)
        rank.progress_until(lambda: bool(over))
        assert over == [ERR_PROC_FAILED]
        with pytest.raises(MPIError) as raised:
            rank.btl.post(rank.endpoints[1], b"too late", TAG)
        assert raised.value.code == ERR_PROC_FAILED
        assert len(rank.errors) == 1

    run(is_outlived_by_its_child, expect_killed=(1,), **kind)


def test_a_peer_out_of_reach_for_longer_than_it_may_be_is_an_error_that_names_it() -> None:
    def body(rank: Rank) -> None:
        rank.post(1 - rank.rank, b"hello")
        rank.wait_for(1)
        peer = rank.endpoints[1 - rank.rank]
        # A socket whose callers nobody accepts answers no more of them than it has room for.
        with socket.create_server(("127.0.0.1", 0), backlog=1) as full, contextlib.ExitStack() as stack:
            for _ in range(4):
                caller = stack.enter_context(socket.socket())
                caller.setblocking(False)
                caller.connect_ex(full.getsockname())
            peer.ways[:] = [Way("", Address(peer.addresses[0].interface, full.getsockname()[1]))]
            rank.gather()
            if rank.rank == 0:
                kill_connection(rank, random.Random(0))
            rank.progress_until(lambda: bool(rank.errors))
        [(lost, error)] = rank.errors
        assert lost == 1 - rank.rank
        assert "btl_tcp_failover_timeout" in str(error)
        rank.gather()

    run(body, failover_timeout=1500)


@SEVERAL
def test_a_peer_that_finalizes_first_is_not_taken_for_a_failure(kind: dict[str, int]) -> None:
    def body(rank: Rank) -> None:
        rank.post(1 - rank.rank, b"hello")
        rank.wait_for(1)
        if rank.rank == 1:
            rank.btl.finalize()
        else:
            rank.progress_until(lambda: not rank.endpoints[1].is_connected)
            assert not rank.errors
        rank.gather()

    run(body, **kind, linger=30000)


@SEVERAL
def test_messages_sent_just_before_finalize_arrive_though_a_connection_is_killed(kind: dict[str, int]) -> None:
    def body(rank: Rank) -> None:
        if rank.rank == 0:
            for index in range(50):
                rank.post(1, bytes([index]) * 50_000)
                if index in (30, 49):
                    kill_connection(rank, random.Random(index))
            rank.btl.finalize()
            rank.gather()
        else:
            rank.wait_for(50)
            assert [message[0] for message in rank.inbox.messages] == list(range(50))
            # The other waits to hear that it may go, perhaps over a link that is still to be made again.
            rank.meet()
        assert not rank.errors

    run(body, **kind | {"failover_timeout": PATIENCE}, linger=30000)


def test_a_socket_that_the_program_has_closed_is_a_link_that_is_made_again() -> None:
    def body(rank: Rank) -> None:
        before = set(rank.btl.descriptors())
        if rank.rank == 0:
            rank.post(1, b"hello")
            rank.progress_until(lambda: rank.endpoints[1].is_connected)
            rank.gather()
        else:
            rank.wait_for(1)
            rank.gather()
        if rank.rank == 0:
            [connected] = set(rank.btl.descriptors()) - before
            os.close(connected)
        rank.post(1 - rank.rank, b"again")
        rank.wait_for(2 if rank.rank else 1)
        rank.meet()
        assert rank.inbox.messages[-1] == b"again"
        assert not rank.errors

    run(body, failover_timeout=PATIENCE)


def test_a_child_made_by_fork_keeps_no_link_open() -> None:
    run(is_outlived_by_its_child, expect_killed=(1,), links=2, failover_timeout=PATIENCE)


def frame(kind: int, sequence: int, data: bytes = b"", acknowledged: int = FIRST, asks: int = 0) -> bytes:
    head = len(data).to_bytes(4, "little") + (sequence % (1 << 32)).to_bytes(4, "little")
    return head + bytes([kind, TAG, asks, 0]) + acknowledged.to_bytes(4, "little") + data + bytes(-len(data) & 7)


def test_what_comes_twice_early_or_by_another_link_is_taken_once_and_in_its_turn() -> None:
    def body(rank: Rank) -> None:
        where = door(rank)
        if rank.rank == 0:
            rank.wait_for(4)
            assert rank.inbox.messages == [b"first", b"second", b"third", b"last"]
            assert statistic(rank, "links") == 2
        else:
            with call(where) as one, call(where) as other:
                assert introduced(one, SECRET)[0] == WELCOME
                assert introduced(other, SECRET, (1, 0))[0] == WELCOME
                one.sendall(frame(1, FIRST + 2, b"third") + frame(1, FIRST, b"first", asks=1) + frame(1, FIRST, b"first"))
                while (answer := exactly(one, 16))[12:] != (FIRST + 1).to_bytes(4, "little"):
                    assert answer[8] == 6
                other.sendall(frame(1, FIRST + 2, b"third") + frame(1, FIRST + 1, b"second") + frame(1, FIRST, b"first"))
                other.sendall(frame(1, FIRST + 3, b"last"))
                rank.gather()
                return
        rank.gather()

    run(body, links=2, failover_timeout=PATIENCE)


def test_a_call_that_does_not_know_of_the_link_that_stands_is_told_so_and_one_that_does_replaces_it() -> None:
    def body(rank: Rank) -> None:
        where = door(rank)
        if rank.rank == 0:
            rank.wait_for(1)
            assert statistic(rank, "links_lost") == 1
            rank.gather()
        else:
            with contextlib.ExitStack() as stack:
                first, late, again = (stack.enter_context(call(where)) for _ in range(3))
                assert introduced(first, SECRET)[0] == WELCOME
                assert introduced(late, SECRET)[0] == TWICE
                assert introduced(again, SECRET, (0, 1))[0] == WELCOME
                with contextlib.suppress(ConnectionError):
                    while first.recv(64):
                        pass
                again.sendall(frame(1, FIRST, b"over the second"))
                rank.gather()

    run(body, failover_timeout=PATIENCE)


def test_a_caller_who_was_not_told_of_a_link_and_has_made_it_again_may_replace_it() -> None:
    btl = open_btl(failover_timeout=PATIENCE, linger=1)
    [address] = unpack(btl.address()).addresses

    def introduce(turn: int) -> socket.socket:
        link = socket.create_connection((str(address.interface.ip), address.port))
        link.setblocking(False)
        caller = Caller(link, SECRET, PEER, tcp_ranks.protecting())
        caller.begin(ME, 0, turn)
        while not caller.advance():
            btl.progress()
        return link

    introduce(0).close()  # let the verdict have been lost
    while btl.statistics()["links"]:
        btl.progress()
    with introduce(0), introduce(1):
        assert btl.statistics()["links_lost"] == 2
        btl.finalize()


def test_who_was_given_up_without_knowing_it_is_told_so_when_it_calls() -> None:
    def body(rank: Rank) -> None:
        where = door(rank)
        if rank.rank == 0:
            rank.wait_for(1)
        else:
            rank.post(0, b"hello")
        rank.meet()
        if rank.rank == 1:
            # In the place of the link that stands, and something that rank 0 gives its peer up for.
            with call(where) as other:
                assert introduced(other, SECRET, (0, 1))[0] == WELCOME
                other.sendall(frame(9, FIRST))
                rank.progress_until(lambda: bool(rank.errors))
            assert "given up contact" in str(rank.errors[0][1])
        else:
            rank.progress_until(lambda: bool(rank.errors))
        rank.meet()

    run(body, failover_timeout=PATIENCE)


@pytest.mark.parametrize(
    "forged",
    [
        frame(1, FIRST, b"x")[:3] + b"\x80" + frame(1, FIRST, b"x")[4:],  # longer than any message
        frame(9, FIRST),
        frame(3, FIRST),  # an ASK
        frame(1, FIRST + (1 << 18)),  # from far ahead
        frame(5, FIRST, b"goodbye"),
    ],
)
def test_what_is_no_frame_ends_contact_and_names_the_peer(forged: bytes) -> None:
    def body(rank: Rank) -> None:
        where = door(rank)
        if rank.rank == 0:
            rank.progress_until(lambda: bool(rank.errors))
            assert [lost for lost, _ in rank.errors] == [1]
            assert not rank.inbox.messages
        else:
            with call(where) as caller:
                assert introduced(caller, SECRET)[0] == WELCOME
                caller.sendall(forged)
                with contextlib.suppress(ConnectionError):
                    while caller.recv(64):
                        pass
                # Who was given up stays out.
                with call(where) as other:
                    assert introduced(other, SECRET, (0, 1))[0] == OVER
        rank.meet()

    run(body, failover_timeout=PATIENCE)


def test_ways_share_as_little_as_can_be_and_both_ends_order_them_alike() -> None:
    from ipaddress import ip_interface

    def card(*listed: str) -> Card:
        return Card("secret", 131072, tuple(Address(ip_interface(it), 4000 + at) for at, it in enumerate(listed)), 1 << 20)

    a = ["10.0.2.1/24", "10.0.1.1/24", "fd00::1/64", "192.168.1.1/24"]
    b = ["10.0.1.2/24", "fd00::2/64", "10.0.2.2/24", "172.16.0.2/16"]
    there = ways(card(*b), [ip_interface(it) for it in a], False)
    back = ways(card(*a), [ip_interface(it) for it in b], False)
    pairs = [("10.0.1.1", "10.0.1.2"), ("10.0.2.1", "10.0.2.2"), ("fd00::1", "fd00::2")]
    assert [(way.source, str(way.address.interface.ip)) for way in there[:3]] == pairs
    assert [(str(way.address.interface.ip), way.source) for way in back[:3]] == pairs
    assert [(way.source, str(way.address.interface.ip)) for way in there[3:]] == [("", "172.16.0.2")]
    two = ways(card("10.0.0.3/24", "10.0.0.4/24"), [ip_interface("10.0.0.2/24"), ip_interface("10.0.0.1/24")], False)
    assert [(way.source, str(way.address.interface.ip)) for way in two] == [("10.0.0.1", "10.0.0.3"), ("10.0.0.2", "10.0.0.4")]
