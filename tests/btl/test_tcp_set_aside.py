"""Connections with steady traffic, of which epoll is not to tell: whoever sleeps is woken all the same."""

from __future__ import annotations

import random
import select
import socket
import threading
import time
from pathlib import Path

import pytest
from tcp_ranks import Rank, run

from ompy import MPI
from ompy.core import progress

either_way = pytest.mark.usefixtures("protection")

BY_TCP = {"btl": "self,tcp"}
STEADY = 300  # messages there and back, many more than it takes


def sockets_in_epoll(rank: Rank) -> int:
    """How many, of those that listen and those that are connected."""
    return Path(f"/proc/self/fdinfo/{rank.btl.descriptor()}").read_text().count("tfd:")


def exchange(rank: Rank, turns: int, sleep: bool = False) -> None:
    for turn in range(turns):
        if rank.rank == 0:
            rank.post(1, b"%d" % turn)
        rank.progress_until(lambda: bool(rank.inbox.messages), sleep)
        assert rank.inbox.messages.pop() == b"%d" % turn
        if rank.rank == 1:
            rank.post(0, b"%d" % turn)


@either_way
def test_a_connection_with_steady_traffic_leaves_epoll_until_somebody_sleeps() -> None:
    def body(rank: Rank) -> None:
        exchange(rank, 1)
        before = sockets_in_epoll(rank)
        exchange(rank, STEADY)
        assert sockets_in_epoll(rank) == before - 1
        rank.btl.may_sleep()
        assert sockets_in_epoll(rank) == before
        rank.gather()

    run(body)


@either_way
def test_who_sleeps_after_steady_traffic_is_woken_by_the_next_message() -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")

    def body(rank: Rank) -> None:
        dice = random.Random(seed)
        for _ in range(30):
            exchange(rank, dice.randrange(2 * STEADY))
            exchange(rank, dice.randrange(3), sleep=True)
            # The descriptor alone tells of it.
            if rank.rank == 1:
                assert rank.btl.may_sleep()
            rank.gather()
            if rank.rank == 0:
                rank.post(1, b"wake up")
                rank.progress_until(lambda: bool(rank.inbox.messages), sleep=False)
                assert rank.inbox.messages.pop() == b"awake"
            else:
                waiter = select.poll()
                waiter.register(rank.btl.descriptor(), select.POLLIN)
                assert waiter.poll(30_000)
                rank.progress_until(lambda: bool(rank.inbox.messages), sleep=False)
                assert rank.inbox.messages.pop() == b"wake up"
                rank.post(0, b"awake")
        rank.gather()

    run(body)


@either_way
def test_room_is_told_of_after_steady_traffic() -> None:
    """Rank 0 sends more than the system holds, and sleeps until the rest can leave; rank 1 looks late."""
    message = bytes(100_000)

    def body(rank: Rank) -> None:
        for _ in range(5):
            exchange(rank, STEADY)
            if rank.rank == 0:
                for _ in range(20):
                    rank.progress_until(lambda: rank.btl.post(rank.endpoints[1], message, 17) == 0)
                rank.progress_until(lambda: bool(rank.inbox.messages))
                rank.inbox.messages.clear()
            else:
                rank.wait_for(20)
                assert all(len(it) == len(message) for it in rank.inbox.messages)
                rank.inbox.messages.clear()
                rank.post(0, b"all")
            rank.gather()

    run(body, sndbuf=16384, rcvbuf=16384, send_queue=150_000)


@either_way
def test_an_end_after_steady_traffic_is_seen_by_who_sleeps() -> None:
    def body(rank: Rank) -> None:
        exchange(rank, STEADY)
        if rank.rank == 0:
            number = next(it for it in rank.btl.descriptors() if is_connected(it))
            rank.gather()
            rank.progress_until(lambda: bool(rank.errors))
            assert not is_connected(number)
        else:
            rank.gather()
            number = next(it for it in rank.btl.descriptors() if is_connected(it))
            with socket.socket(fileno=number) as link:
                link.shutdown(socket.SHUT_RDWR)
                link.detach()
            rank.progress_until(lambda: bool(rank.errors))

    run(body)


def is_connected(number: int) -> bool:
    try:
        link = socket.socket(fileno=number)
    except OSError:
        return False
    try:
        link.getpeername()
    except OSError:
        return False
    else:
        return True
    finally:
        link.detach()


def echo(comm: MPI.Intracomm, turns: int) -> None:
    """There and back, without a wait."""
    word = bytearray(8)
    for _ in range(turns):
        if comm.rank == 0:
            comm.Send(word, 1, 1)
        while not comm.Iprobe(tag=1):
            pass
        comm.Recv(word, tag=1)
        if comm.rank == 1:
            comm.Send(word, 0, 1)


@pytest.mark.ompy(2, mca=BY_TCP)
def test_a_wait_that_never_sleeps_sees_what_comes_long_after_steady_traffic(comm: MPI.Intracomm) -> None:
    progress.configure(spin_us=0, watch_us=1e9)
    for _ in range(3):
        echo(comm, STEADY)
        if comm.rank == 1:
            end = time.monotonic() + 0.1  # some ten thousand looks of rank 0's
            while time.monotonic() < end:
                pass
            comm.Send(b"late", 0, 2)
        else:
            comm.Recv(bytearray(4), 1, 2)
    progress.configure()


@pytest.mark.ompy(2, mca=BY_TCP)
def test_a_thread_that_sleeps_while_another_one_has_steady_traffic_is_woken(comm: MPI.Intracomm) -> None:
    """It waits on another communicator, and the other one never sleeps; the back-stop is longer than the test."""
    progress.configure(spin_us=0, watch_us=0, yield_us=0, backstop_ms=600_000)
    apart = comm.Dup()
    for turn in range(20):
        waiter = threading.Thread(target=apart.Recv, args=(bytearray(4), 1, 3))
        if comm.rank == 0:
            if turn % 2:
                waiter.start()
            echo(comm, 2 * STEADY)
            if not turn % 2:
                waiter.start()
            comm.Send(b"", 1, 4)
            waiter.join()
        else:
            echo(comm, 2 * STEADY)
            while not comm.Iprobe(tag=4):
                pass
            comm.Recv(bytearray(0), 0, 4)
            apart.Send(b"wake", 0, 3)
    progress.configure()
    apart.Free()


@pytest.mark.ompy(2, mca=BY_TCP | {"mpi_async_progress": 1})
def test_the_progress_thread_is_woken_by_what_comes_after_traffic_that_the_program_has_looked_at(
    comm: MPI.Intracomm, tmp_path: Path
) -> None:
    """The program looks without a wait, and then computes; the back-stop is longer than the test."""
    progress.configure(spin_us=0, watch_us=0, yield_us=0, backstop_ms=600_000)
    folder = comm.bcast(str(tmp_path))
    data = bytearray(1 << 20)
    for turn in range(5):
        over = Path(folder, f"over {turn}")
        if comm.rank == 0:
            receive = comm.Irecv(data, 1, 3)
            echo(comm, STEADY)
            while not over.exists():
                pass
            receive.Wait()
        else:
            echo(comm, STEADY)
            comm.Ssend(data, 0, 3)
            over.touch()
    progress.configure()
