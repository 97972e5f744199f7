"""btl/zmq between processes: what is sent arrives, once and in order, and nothing is left behind."""

from __future__ import annotations

import contextlib
import gc
import os
import random
import signal
import time

import pytest
from network_ranks import is_outlived_by_its_child
from ompy_btl_zmq.address import Card, pack, unpack
from zmq_ranks import TAG, Rank, open_btl, run

from ompy.core.errors import ERR_PROC_FAILED, MPIError
from ompy.mca.btl import BACK_PRESSURE, TAKEN


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def sockets() -> int:
    found = 0
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # the folder's own descriptor
            found += os.readlink(f"/proc/self/fd/{name}").startswith("socket:")
    return found


def greet(rank: Rank) -> None:
    """Connections are there once a message has come from each to each."""
    rank.post(1 - rank.rank, b"greeting")
    rank.wait_for(1)
    rank.inbox.messages.clear()
    rank.gather()


@pytest.mark.parametrize("security", ["plain", "curve", "none"])
def test_messages_arrive_once_and_in_order_in_every_security_mode(security: str) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    sizes = [random.Random(seed).choice([0, 1, 7, 100, 5000, 70000]) for _ in range(300)]
    messages = [index.to_bytes(4, "little") + bytes([index % 251]) * size for index, size in enumerate(sizes)]

    def body(rank: Rank) -> None:
        for message in messages:
            rank.post(1 - rank.rank, message)
        rank.wait_for(len(messages))
        rank.gather()
        rank.btl.progress()
        assert rank.inbox.messages == messages
        assert rank.btl.statistics()["connections rejected"] == 0
        assert rank.btl.statistics()["connections made"] == 1

    run(body, security=security)


def test_the_sender_is_named_even_before_an_endpoint_exists_for_it() -> None:
    def body(rank: Rank) -> None:
        peer = rank.endpoints[1 - rank.rank]
        if rank.rank == 0:
            rank.btl.del_procs([peer])
            rank.gather()
            rank.wait_for(1)
            assert rank.inbox.endpoints == [None]
            [again] = rank.btl.add_procs([peer.proc])
            rank.gather()
            rank.wait_for(2)
            assert rank.inbox.endpoints[1] is again
        else:
            rank.gather()
            rank.post(0, b"first")
            rank.gather()
            rank.post(0, b"second")
        rank.gather()

    run(body)


def test_messages_up_to_the_send_limit_arrive_whole() -> None:
    def body(rank: Rank) -> None:
        size = rank.btl.max_send_size
        message = random.Random(rank.rank).randbytes(size)
        rank.post(1 - rank.rank, message)
        rank.wait_for(1)
        assert rank.inbox.messages[0] == random.Random(1 - rank.rank).randbytes(size)
        rank.gather()

    run(body)


def test_nothing_is_connected_before_the_first_message() -> None:
    def body(rank: Rank) -> int:
        before = sockets()
        rank.gather()
        for _ in range(100):
            rank.btl.progress()
        assert sockets() == before
        rank.gather()
        if rank.rank == 0:
            rank.post(1, b"now")
        if rank.rank == 1:
            rank.wait_for(1)
        rank.gather()
        return int(rank.btl.statistics()["connections made"])

    assert run(body, size=3) == [1, 0, 0]


def test_a_peer_that_never_answers_is_given_nothing_and_named() -> None:
    def body(rank: Rank) -> None:
        peer = rank.endpoints[1 - rank.rank]
        if rank.rank == 1:
            rank.btl.finalize()
        rank.gather()
        if rank.rank == 0:
            while not rank.errors:
                assert rank.btl.post(peer, b"to nobody", TAG) == BACK_PRESSURE
                rank.btl.progress()
            ((lost, error),) = rank.errors
            assert lost == 1
            assert isinstance(error, MPIError)
            assert error.code == ERR_PROC_FAILED
        rank.gather()

    run(body, connect_timeout=300)


def test_a_message_to_a_peer_that_has_said_goodbye_fails() -> None:
    def body(rank: Rank) -> None:
        greet(rank)
        if rank.rank == 1:
            rank.btl.finalize()
        rank.gather()
        if rank.rank == 0:
            rank.progress_until(lambda: rank.endpoints[1].departed)
            with pytest.raises(MPIError) as caught:
                rank.post(1, b"too late")
            assert caught.value.code == ERR_PROC_FAILED
            assert not rank.errors
        rank.gather()

    run(body)


def test_a_peer_that_does_not_read_holds_its_sender_back_without_blocking_or_losing() -> None:
    count = 400
    message = bytes(100_000)

    def body(rank: Rank) -> None:
        greet(rank)
        if rank.rank == 0:
            taken = 0
            while (outcome := rank.btl.post(rank.endpoints[1], taken.to_bytes(4, "little") + message, TAG)) == TAKEN:
                taken += 1
                assert taken < count, "never held back"
            assert outcome == BACK_PRESSURE
            assert rank.btl.statistics()["sends held back"] == 1
            rank.gather()
            for index in range(taken, count):
                rank.post(1, index.to_bytes(4, "little") + message)
        else:
            rank.gather()
            rank.wait_for(count)
            assert [int.from_bytes(data[:4], "little") for data in rank.inbox.messages] == list(range(count))
        rank.gather()

    run(body, high_water_mark=8)


def test_a_sender_that_was_held_back_is_woken_when_there_is_room() -> None:
    message = bytes(1_000_000)

    def body(rank: Rank) -> None:
        greet(rank)
        if rank.rank == 0:
            while rank.btl.post(rank.endpoints[1], message, TAG) == TAKEN:
                pass
            rank.gather()
            rank.progress_until(lambda: rank.btl.post(rank.endpoints[1], message, TAG) == TAKEN)
            rank.post(1, b"last")
        else:
            rank.gather()
            rank.progress_until(lambda: rank.inbox.messages[-1:] == [b"last"])
        rank.gather()

    run(body, high_water_mark=4)


def test_a_killed_peer_is_reported_and_sends_to_it_fail() -> None:
    def body(rank: Rank) -> None:
        if rank.rank == 0:
            rank.post(1, b"hello")
            rank.wait_for(1)
        else:
            rank.post(0, b"hello")
            rank.wait_for(1)
        pids = rank.gather(os.getpid())
        if rank.rank == 0:
            os.kill(pids[1], signal.SIGKILL)
            rank.progress_until(lambda: bool(rank.errors))
            [(lost, error)] = rank.errors
            assert lost == 1
            assert f"pid {pids[1]}" in str(error)
            with pytest.raises(MPIError) as raised:
                rank.btl.post(rank.endpoints[1], b"too late", TAG)
            assert raised.value.code == ERR_PROC_FAILED
        else:
            signal.pause()

    run(body, expect_killed=(1,))


def test_a_killed_peer_is_reported_though_a_child_of_its_lives_on() -> None:
    run(is_outlived_by_its_child, expect_killed=(1,))


def test_a_peer_that_finalizes_first_is_not_taken_for_a_failure() -> None:
    def body(rank: Rank) -> None:
        rank.post(1 - rank.rank, b"hello")
        rank.wait_for(1)
        rank.gather()
        if rank.rank == 1:
            rank.btl.finalize()
        rank.gather()
        if rank.rank == 0:
            rank.progress_until(lambda: rank.endpoints[1].departed)
            for _ in range(100):
                rank.btl.progress()
            assert not rank.errors

    run(body)


def test_messages_sent_just_before_finalize_still_arrive() -> None:
    def body(rank: Rank) -> None:
        if rank.rank == 0:
            for index in range(50):
                rank.post(1, bytes([index]) * 50_000)
            rank.btl.finalize()
        else:
            rank.wait_for(50)
            assert [message[0] for message in rank.inbox.messages] == list(range(50))

    run(body, linger=3000)


def test_a_rank_that_computes_for_longer_than_the_handshake_may_take_gets_its_messages_all_the_same() -> None:
    def body(rank: Rank) -> None:
        if rank.rank == 0:
            assert rank.btl.post(rank.endpoints[1], b"asks for the connection", TAG) == BACK_PRESSURE
            end = time.monotonic() + 1.0
            rank.progress_until(lambda: time.monotonic() > end)
            rank.gather()
            rank.post(1, b"hello")
            rank.post(1, b"again")
        else:
            rank.gather()
            rank.wait_for(2)
            assert rank.inbox.messages == [b"hello", b"again"]
        rank.gather()
        assert not rank.errors

    run(body, handshake_timeout=200)


def test_finalize_leaves_no_thread_and_no_descriptor() -> None:
    gc.collect()  # what tests before this one have left is none of this one's
    before = descriptors()
    threads = len(os.listdir("/proc/self/task"))
    for _ in range(3):
        btl = open_btl()
        btl.progress()
        btl.finalize()
        btl.finalize()
    assert descriptors() <= before
    assert len(os.listdir("/proc/self/task")) <= threads


@pytest.mark.parametrize("url", ["tcp://127.0.0.1:0", "tcp://127.0.0.1:65536", "tcp://127.0.0.1:x", "ipc://127.0.0.1:5000"])
def test_a_card_without_an_address_of_tcp_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="is no address of TCP"):
        unpack(pack(Card(url, "none", b"")))


@pytest.mark.parametrize("host", ["localhost", "", "*", "127.0.0.1.1"])
def test_a_card_whose_address_is_no_number_is_refused(host: str) -> None:
    with pytest.raises(ValueError, match="IPv4 or IPv6 address"):
        unpack(pack(Card(f"tcp://{host}:5000", "none", b"")))


def test_a_card_comes_as_it_was() -> None:
    card = Card("tcp://127.0.0.1:65535", "none", b"")
    assert unpack(pack(card)) == card
