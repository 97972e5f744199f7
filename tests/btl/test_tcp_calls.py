"""Calls of btl/tcp: callers heard late, sockets that the program has closed, and peers that are given up meanwhile."""

from __future__ import annotations

import fcntl
import os
import select
import socket
import time
from ipaddress import ip_interface
from typing import Any

import pytest
from ompy_btl_tcp.card import Address, pack, unpack
from ompy_btl_tcp.handshake import Caller
from tcp_ranks import ME, PEER, SECRET, TAG, Rank, open_btl, protecting, run

from ompy.core.proc import Proc
from ompy.mca.btl import BACK_PRESSURE

pytestmark = pytest.mark.usefixtures("protection")


def compute(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def begin_to_call(rank: Rank) -> int:
    """Rank 1; the descriptor of the call's socket."""
    before = set(rank.btl.descriptors())
    assert rank.btl.post(rank.endpoints[1], b"hello", TAG) == BACK_PRESSURE
    [calling] = set(rank.btl.descriptors()) - before
    return int(calling)


def test_a_caller_gets_in_though_each_of_its_words_is_heard_after_longer_than_the_handshake_may_take() -> None:
    btl = open_btl(handshake_timeout=5)
    [address] = unpack(btl.address()).addresses
    with socket.create_connection((str(address.interface.ip), address.port)) as link:
        link.setblocking(False)
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        caller = Caller(link, SECRET, PEER, protecting())
        caller.begin(ME)
        stands = False
        while not stands:
            compute(0.006)
            btl.progress()
            stands = caller.advance()
        assert btl.statistics()["connections_rejected"] == 0
        assert btl.statistics()["connections"] == 1
    btl.finalize()


def test_the_socket_of_a_call_is_kept_alive_and_delays_nothing_from_the_start() -> None:
    def body(rank: Rank) -> None:
        if rank.rank == 0:
            with socket.socket(fileno=os.dup(begin_to_call(rank))) as link:
                assert link.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
                assert link.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 10
                assert link.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL) == 5
                assert link.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
        rank.gather()

    run(body)


@pytest.mark.parametrize("links", [1, 2])
def test_both_ends_of_a_connection_delay_nothing(links: int) -> None:
    def body(rank: Rank) -> None:
        before = set(rank.btl.descriptors())
        if rank.rank == 0:
            rank.post(1, b"hello")
        else:
            rank.wait_for(1)
        connected = set(rank.btl.descriptors()) - before
        assert connected
        for number in connected:
            with socket.socket(fileno=os.dup(number)) as link:
                assert link.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
        rank.meet()

    run(body, links=links)


def test_a_call_whose_socket_the_program_has_closed_fails_and_says_so() -> None:
    def body(rank: Rank) -> None:
        if rank.rank == 0:
            os.close(begin_to_call(rank))
            rank.progress_until(lambda: bool(rank.errors))
            assert "the program has closed the socket" in str(rank.errors[0][1])
        rank.gather()

    run(body, connect_timeout=300)


def test_a_call_whose_socket_the_program_has_closed_and_another_process_has_still_is_made_again() -> None:
    def body(rank: Rank) -> None:
        if rank.rank == 0:
            calling = begin_to_call(rank)
            kept = os.dup(calling)  # as a child's: epoll tells of it on
            os.close(calling)
            rank.post(1, b"hello")
            os.close(kept)
        else:
            rank.wait_for(1)
        rank.gather()

    run(body)


def test_a_call_that_was_answered_and_whose_socket_the_program_has_closed_does_not_wait_for_ever() -> None:
    def body(rank: Rank) -> None:
        if rank.rank == 0:
            calling = begin_to_call(rank)
            waiter = select.poll()
            waiter.register(calling, select.POLLOUT)
            assert waiter.poll(30_000)
            rank.btl.progress()  # says who calls
            os.close(calling)
            rank.progress_until(lambda: bool(rank.errors))
            assert "the program has closed the socket" in str(rank.errors[0][1])
        rank.gather()

    run(body, connect_timeout=300)


def test_whoever_is_told_of_a_failed_call_may_end_contact_with_others_that_are_being_called() -> None:
    btl = open_btl(size=3, connect_timeout=1, linger=1)
    [address] = unpack(btl.address()).addresses
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        procs = []
        for peer, server in ((1, one), (2, other)):
            there = Address(ip_interface("127.0.0.1/8"), server.getsockname()[1])
            card = pack(unpack(btl.address())._replace(addresses=(there,)))
            procs.append(Proc(peer, peer, "test", "here", 0, False, True, {"tcp": card}))
        endpoints = btl.add_procs(procs)
        failed: list[int] = []

        def end_contact(btl: Any, proc: Any, error: Exception) -> None:
            failed.append(proc.rank)
            btl.del_procs(endpoints)

        btl.register_error(end_contact)
        before = set(btl.descriptors())
        for endpoint in endpoints:
            assert btl.post(endpoint, b"hello", TAG) == BACK_PRESSURE
        for number in set(btl.descriptors()) - before:
            os.close(number)  # so that both are given up at one look
        compute(0.002)
        for _ in range(3):
            btl.progress()
        assert failed == [1]
        assert set(btl.descriptors()) == before
        # Who is let in gets the number that a call had.
        with socket.create_connection((str(address.interface.ip), address.port)) as low:
            link = socket.socket(fileno=fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, 500))
        with link:
            link.setblocking(False)
            caller = Caller(link, SECRET, PEER, protecting())
            caller.begin(ME)
            while not caller.advance():
                btl.progress()
    btl.finalize()
