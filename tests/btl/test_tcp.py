"""btl/tcp between processes: what is sent arrives, once and in order, and nothing is left behind."""

from __future__ import annotations

import errno
import os
import random
import resource
import select
import signal
import socket
import struct
import threading
import time
from ctypes import CDLL, Structure, byref, c_char_p, c_ushort, create_string_buffer
from ipaddress import ip_interface

import pytest
from network_ranks import is_outlived_by_its_child
from ompy_btl_tcp.call import Call
from ompy_btl_tcp.card import Address, Card, Way, candidates, pack, unpack
from ompy_btl_tcp.handshake import name_of
from ompy_btl_tcp.interfaces import choose
from tcp_ranks import TAG, Rank, open_btl, run

from ompy.core.congestion import INSTEAD, PACED, algorithm_of
from ompy.core.errors import ERR_PROC_FAILED, MPIError
from ompy.core.memory import address_of
from ompy.mca.btl import BACK_PRESSURE, TAKEN, Descriptor

pytestmark = pytest.mark.usefixtures("protection")


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("security", ["secret", "tls", "none"])
def test_messages_arrive_once_and_in_order_with_security_and_without(security: str) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    sizes = random.Random(seed).choices([0, 1, 7, 8, 100, 5000, 70000, 131000], k=300)
    messages = [index.to_bytes(4, "little") + bytes([index % 251]) * size for index, size in enumerate(sizes)]

    def body(rank: Rank) -> None:
        for message in messages:
            rank.post(1 - rank.rank, message)
        rank.wait_for(len(messages))
        assert rank.inbox.messages == messages
        # A call that is made again, and found to be one too many before it has said a word, counts as a stranger's.
        assert rank.btl.statistics()["connections_rejected"] <= (security == "tls")
        assert rank.btl.statistics()["connections"] == 1
        rank.meet()

    run(body, security=security)


def test_all_pairs_that_call_each_other_at_once_end_with_one_connection_each() -> None:
    def body(rank: Rank) -> None:
        for turn in range(3):
            rank.gather()
            for peer in range(4):
                if peer != rank.rank:
                    rank.post(peer, bytes([turn, rank.rank]))
        rank.wait_for(9)
        rank.gather()
        for _ in range(50):
            rank.btl.progress()
        assert sorted(rank.inbox.messages) == [bytes([t, peer]) for t in range(3) for peer in range(4) if peer != rank.rank]
        assert rank.btl.statistics()["connections"] == 3
        assert not rank.errors
        rank.gather()

    for _ in range(5):
        run(body, size=4)


def test_what_many_peers_have_said_at_once_is_taken_to_the_last_message() -> None:
    count, peers = 300, 6

    def body(rank: Rank) -> None:
        if rank.rank:
            rank.post(0, b"connected")
        else:
            rank.wait_for(peers)
        rank.gather()
        if rank.rank:
            for turn in range(count):
                rank.post(0, turn.to_bytes(8, "little"))
        rank.gather()
        if rank.rank == 0:
            rank.wait_for(peers * (count + 1))
        rank.gather()

    run(body, size=peers + 1)


def test_a_peer_that_says_little_is_heard_beside_one_that_says_much() -> None:
    count = 5000

    def body(rank: Rank) -> None:
        if rank.rank:
            rank.post(0, b"connected")
        else:
            rank.wait_for(2)
        rank.gather()
        if rank.rank == 1:
            for _ in range(count):
                rank.post(0, b"much")
        rank.gather()
        if rank.rank == 0:
            rank.btl.progress()
            assert b"much" in rank.inbox.messages, "the other one would be the only one anyway"
        rank.gather()
        if rank.rank == 2:
            rank.post(0, b"little")
        rank.gather()
        if rank.rank == 0:
            rank.wait_for(count + 3)
            assert rank.inbox.messages.index(b"little") < count // 10
        rank.gather()

    run(body, size=3)


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


def test_nothing_is_connected_before_the_first_message() -> None:
    def body(rank: Rank) -> int:
        before = descriptors()
        rank.gather()
        for _ in range(100):
            rank.btl.progress()
        assert descriptors() == before
        rank.gather()
        if rank.rank == 0:
            rank.post(1, b"now")
        if rank.rank == 1:
            rank.wait_for(1)
        rank.gather()
        return int(rank.btl.statistics()["calls_made"])

    assert run(body, size=3) == [1, 0, 0]


def test_a_peer_that_does_not_read_holds_its_sender_back_without_blocking_or_losing() -> None:
    message = bytes(100_000)

    def body(rank: Rank) -> None:
        if rank.rank == 0:
            rank.post(1, b"connected")
            taken = 0
            while (outcome := rank.btl.post(rank.endpoints[1], taken.to_bytes(4, "little") + message, TAG)) == TAKEN:
                taken += 1
                assert taken < 400, "never held back"
            assert outcome == BACK_PRESSURE
            assert rank.btl.statistics()["sends_held_back"] > 0
            rank.gather()
            for index in range(taken, 400):
                rank.post(1, index.to_bytes(4, "little") + message)
        else:
            rank.wait_for(1)
            rank.gather()
            rank.wait_for(401)
            assert [int.from_bytes(data[:4], "little") for data in rank.inbox.messages[1:]] == list(range(400))
        rank.meet()

    run(body, send_queue=200_000, sndbuf=65536, rcvbuf=65536)


def test_a_sender_that_was_held_back_is_woken_when_there_is_room() -> None:
    message = bytes(100_000)

    def body(rank: Rank) -> None:
        if rank.rank == 0:
            rank.post(1, b"connected")
            while rank.btl.post(rank.endpoints[1], message, TAG) == TAKEN:
                pass
            rank.gather()
            rank.progress_until(lambda: rank.btl.post(rank.endpoints[1], message, TAG) == TAKEN)
            rank.post(1, b"last")
            rank.progress_until(lambda: bool(rank.inbox.messages))
        else:
            rank.wait_for(1)
            rank.gather()
            rank.progress_until(lambda: rank.inbox.messages[-1:] == [b"last"])
            rank.post(0, b"there")
        rank.gather()

    run(body)


def put(rank: Rank, peer: int, memory: object, remote: int, handle: bytes, size: int) -> list[int]:
    """Begin a put; the list has its status once it is over."""
    over: list[int] = []
    descriptor = Descriptor(rank.btl, 0)
    descriptor.local_address, descriptor.size = address_of(memory), size
    descriptor.remote_address, descriptor.remote_handle = remote, handle
    descriptor.context = lambda _, status: over.append(status)
    descriptor.in_flight = True
    while rank.btl.put(rank.endpoints[peer], descriptor) == BACK_PRESSURE:
        rank.btl.progress()
    return over


def test_a_put_writes_what_was_registered_and_nothing_beside_it() -> None:
    size = 100_001

    def body(rank: Rank) -> None:
        memory = bytearray(b"." * (size + 200))
        address = address_of(memory)
        handle = rank.btl.hold_mem(rank.endpoints[1 - rank.rank], address + 100, size)
        (_, _), (remote, theirs) = sorted(rank.gather((address + 100, handle)), key=lambda it: it[0] == address + 100)[::-1]
        if rank.rank == 0:
            data = create_string_buffer(random.Random(1).randbytes(size), size)
            within = put(rank, 1, data, remote, theirs, size)
            beyond = put(rank, 1, data, remote + 1, theirs, size)
            before = put(rank, 1, data, remote - 8, theirs, 16)
            unknown = put(rank, 1, data, remote, bytes(8), 16)
            rank.post(1, b"after")
            rank.progress_until(lambda: all((within, beyond, before, unknown)))
            assert within == [0]
        else:
            rank.wait_for(1)
            assert memory[100 : 100 + size] == random.Random(1).randbytes(size)
            assert memory[:100] == memory[100 + size :] == b"." * 100
        rank.gather()
        rank.btl.release_mem(handle)

    run(body)


def test_memory_given_back_in_the_middle_of_a_put_is_not_written_any_more() -> None:
    size = 16 << 20

    def body(rank: Rank) -> None:
        memory = bytearray(size)
        address = address_of(memory)
        handle = rank.btl.hold_mem(rank.endpoints[1 - rank.rank], address, size)
        shown = rank.gather((address, handle))
        if rank.rank == 0:
            data = create_string_buffer(b"x" * size, size)
            over = put(rank, 1, data, *shown[1], size)
            rank.post(1, b"after")
            rank.progress_until(lambda: bool(over))
        else:
            rank.progress_until(lambda: memory[0] != 0)
            rank.btl.release_mem(handle)
            written = memory.rfind(b"x") + 1
            assert 0 < written < size, "it was over at once: make it longer"
            memory[:] = bytes(size)
            rank.wait_for(1)
            assert rank.inbox.messages == [b"after"]
            assert memory == bytes(size)
        rank.gather()

    run(body)


def test_flush_waits_for_puts_to_be_there() -> None:
    def body(rank: Rank) -> None:
        memory = bytearray(8)
        handle = rank.btl.hold_mem(rank.endpoints[1 - rank.rank], address_of(memory), 8)
        shown = rank.gather((address_of(memory), handle))
        if rank.rank == 0:
            rank.post(1, b"connected")
            over = put(rank, 1, create_string_buffer(b"12345678", 8), *shown[1], 8)
            rank.progress_until(lambda: bool(over))
            assert rank.btl.flush(rank.endpoints[1]) == BACK_PRESSURE
            rank.gather()
            rank.progress_until(lambda: rank.btl.flush(rank.endpoints[1]) == TAKEN)
            rank.post(1, b"flushed")
        else:
            rank.wait_for(1)
            rank.gather()
            rank.wait_for(2)
            assert bytes(memory) == b"12345678"
        rank.gather()

    run(body)


def test_a_killed_peer_is_reported_and_sends_to_it_fail() -> None:
    def body(rank: Rank) -> None:
        rank.post(1 - rank.rank, b"hello")
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

    run(is_outlived_by_its_child, expect_killed=(1,))


class Filter(Structure):
    """`struct sock_fprog`, for a filter of system calls."""

    _fields_ = (("count", c_ushort), ("instructions", c_char_p))


def post_without_sending(rank: Rank, data: bytes, error: int) -> int:
    """Post to rank 1 from a thread in which the system fails each call that sends with `error`; the verdict."""
    sendto, sendmsg = {"x86_64": (44, 46), "aarch64": (206, 211)}[os.uname().machine]
    instruction = struct.Struct("=HBBI").pack
    program = (
        instruction(0x20, 0, 0, 0)  # load the call's number
        + instruction(0x15, 1, 0, sendto)  # skip one if it is this
        + instruction(0x15, 0, 1, sendmsg)  # skip one unless it is this
        + instruction(0x06, 0, 0, 0x00050000 | error)  # SECCOMP_RET_ERRNO
        + instruction(0x06, 0, 0, 0x7FFF0000)  # SECCOMP_RET_ALLOW
    )
    prctl = CDLL(None).prctl
    verdicts: list[int] = []

    def post() -> None:
        assert prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
        assert prctl(22, 2, byref(Filter(len(program) // 8, program))) == 0  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
        verdicts.append(rank.btl.post(rank.endpoints[1], data, TAG))

    thread = threading.Thread(target=post)
    thread.start()
    thread.join()
    [verdict] = verdicts
    return verdict


@pytest.mark.parametrize("links", [1, 2])
@pytest.mark.parametrize("error", [errno.ENOBUFS, errno.ENOMEM])
def test_what_the_system_has_no_memory_for_at_the_moment_is_sent_later(error: int, links: int) -> None:
    def body(rank: Rank) -> None:
        if rank.rank == 0:
            rank.post(1, b"first")
            assert post_without_sending(rank, b"second", error) == TAKEN
            rank.post(1, b"third")
        else:
            rank.wait_for(3)
            assert rank.inbox.messages == [b"first", b"second", b"third"]
        rank.meet()
        assert not rank.errors

    run(body, links=links)


def connections_of(rank: Rank, before: set[int]) -> list[socket.socket]:
    return [socket.socket(fileno=os.dup(number)) for number in set(rank.btl.descriptors()) - before]


@pytest.mark.parametrize("links", [1, 2])
def test_both_ends_of_a_connection_hold_as_much_as_they_are_told(links: int) -> None:
    def body(rank: Rank) -> None:
        before = set(rank.btl.descriptors())
        rank.post(1 - rank.rank, b"hello")
        rank.wait_for(1)
        rank.gather()
        for link in connections_of(rank, before):
            with link:  # Linux doubles what it is told, for its own use
                assert link.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == 2 * 40_000
                assert link.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == 2 * 50_000
        rank.gather()

    run(body, sndbuf=40_000, rcvbuf=50_000, links=links)


@pytest.mark.parametrize("links", [1, 2])
@pytest.mark.parametrize("wanted", ["auto", "system", "reno"])
def test_both_ends_of_a_connection_send_by_the_algorithm_that_is_wanted(wanted: str, links: int) -> None:
    with socket.socket() as link:
        system = algorithm_of(link)

    def body(rank: Rank) -> None:
        before = set(rank.btl.descriptors())
        rank.post(1 - rank.rank, b"hello")
        rank.wait_for(1)
        rank.gather()
        connections = connections_of(rank, before)
        assert connections
        for link in connections:
            with link:
                if wanted == "auto" and system.startswith(PACED):
                    assert algorithm_of(link) in INSTEAD
                else:
                    assert algorithm_of(link) == (wanted if wanted == "reno" else system)
        rank.gather()

    run(body, congestion_control=wanted, links=links)


def test_an_algorithm_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(OSError, match=r"btl_tcp_congestion_control tortoise: .*auto, system, .*reno"):
        open_btl(0, 2, congestion_control="tortoise")


def test_what_the_system_does_not_send_at_all_ends_contact_at_both_ends() -> None:
    def body(rank: Rank) -> None:
        if rank.rank == 0:
            rank.post(1, b"first")
            assert post_without_sending(rank, b"second", errno.EFAULT) == BACK_PRESSURE
        else:
            rank.wait_for(1)
        rank.progress_until(lambda: bool(rank.errors))
        rank.gather()

    run(body)


def test_a_socket_that_the_program_has_closed_is_a_lost_peer_that_says_so() -> None:
    def body(rank: Rank) -> None:
        before = set(rank.btl.descriptors())
        # In turns: two that connect at once have two connections for a while.
        if rank.rank == 0:
            rank.post(1, b"hello")
            rank.wait_for(1)
        else:
            rank.wait_for(1)
            rank.post(0, b"hello")
        rank.gather()
        if rank.rank == 0:
            [connected] = set(rank.btl.descriptors()) - before
            os.close(connected)
        rank.progress_until(lambda: bool(rank.errors))
        [(lost, error)] = rank.errors
        assert lost == 1 - rank.rank
        assert ("the program has closed the socket" in str(error)) is (rank.rank == 0), str(error)

    run(body)


def test_a_closed_socket_that_nothing_has_come_by_lately_is_noticed_when_something_is_sent() -> None:
    size = 7

    def body(rank: Rank) -> None:
        if rank.rank == 0:
            before = set(rank.btl.descriptors())
            rank.gather()
            rank.wait_for(1)
            [connected] = set(rank.btl.descriptors()) - before
            for peer in range(2, size):
                rank.gather()
                rank.wait_for(peer)
            os.close(connected)
            assert rank.btl.post(rank.endpoints[1], b"hello", TAG) == BACK_PRESSURE
            rank.progress_until(lambda: bool(rank.errors))
            [(lost, error)] = rank.errors
            assert lost == 1
            assert "the program has closed the socket" in str(error)
        else:
            for peer in range(1, size):
                rank.gather()
                if peer == rank.rank:
                    rank.post(0, b"hello")
        rank.gather()

    run(body, size)


def test_what_waits_for_a_killed_peer_completes_once_with_an_error() -> None:
    def body(rank: Rank) -> None:
        rank.post(1 - rank.rank, b"hello")
        rank.wait_for(1)
        pids = rank.gather(os.getpid())
        if rank.rank == 1:
            signal.pause()
        statuses: list[list[int]] = []
        while True:
            descriptor = rank.btl.alloc(rank.endpoints[1], 100_000)
            over: list[int] = []
            descriptor.context = lambda _, status, over=over: over.append(status)
            descriptor.in_flight = True
            if rank.btl.send(rank.endpoints[1], descriptor, TAG) != TAKEN:
                descriptor.in_flight = False
                rank.btl.free(descriptor)
                break
            statuses.append(over)
        os.kill(pids[1], signal.SIGKILL)
        rank.progress_until(lambda: bool(rank.errors))
        rank.progress_until(lambda: all(statuses))
        rank.btl.progress()
        assert all(len(over) == 1 for over in statuses)
        assert statuses[0] == [0]
        assert statuses[-1] == [ERR_PROC_FAILED]

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
            rank.progress_until(lambda: not rank.endpoints[1].is_connected)
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

    run(body, linger=20000)


def test_a_rank_that_computes_for_longer_than_the_handshake_may_take_gets_its_messages_all_the_same() -> None:
    def body(rank: Rank) -> None:
        if rank.rank == 0:
            end = time.monotonic() + 1.0
            while rank.btl.post(rank.endpoints[1], b"hello", TAG) == BACK_PRESSURE and time.monotonic() < end:
                rank.btl.progress()
            rank.gather()
            rank.post(1, b"hello")
        else:
            rank.gather()
            rank.wait_for(1)
            assert rank.inbox.messages == [b"hello"]
        rank.gather()
        assert not rank.errors

    run(body, handshake_timeout=200)


def test_a_caller_that_computes_until_it_is_hung_up_on_calls_again() -> None:
    def body(rank: Rank) -> None:
        if rank.rank == 0:
            assert rank.btl.post(rank.endpoints[1], b"hello", TAG) == BACK_PRESSURE
            rank.gather()
            rank.post(1, b"hello")
            assert not rank.errors
        else:
            rank.progress_until(lambda: rank.btl.statistics()["connections_rejected"] == 1)
            rank.gather()
            rank.wait_for(1)
        rank.gather()

    run(body, handshake_timeout=200, connect_timeout=50)


def test_a_call_that_was_answered_while_nobody_looked_is_not_given_up() -> None:
    links: list[socket.socket] = []

    def open_link(family: int) -> socket.socket:
        links.append(socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK))
        return links[-1]

    with socket.create_server(("127.0.0.1", 0)) as server:
        address = Address(ip_interface("127.0.0.1/8"), server.getsockname()[1])
        it = Call(open_link, lambda link: link.close(), [Way("", address)], b"", name_of("test", 0), name_of("test", 1), 1.0)
        answered, _ = server.accept()
        with answered:
            assert not it.look_at_clock(it.deadline + 1)
            assert it.failure == ""
            assert not it.advance()
            assert it.is_talking
            it.hang_up()
    assert len(links) == 1


def test_an_address_where_nobody_answers_is_named_and_another_one_is_tried() -> None:
    def body(rank: Rank) -> None:
        peer = rank.endpoints[1 - rank.rank]
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            closed = Address(peer.addresses[0].interface, probe.getsockname()[1])
            [proc] = [peer.proc]
            rank.btl.del_procs([peer])
            card = unpack(proc.card["tcp"])
            proc.card["tcp"] = pack(card._replace(addresses=(closed, *(card.addresses if rank.rank == 0 else ()))))
            rank.endpoints[1 - rank.rank] = rank.btl.add_procs([proc])[0]
            if rank.rank == 1:
                with pytest.raises(MPIError, match=str(closed)):
                    rank.post(0, b"nobody hears")
                assert [lost for lost, _ in rank.errors] == [0]
            rank.gather()
            if rank.rank == 0:
                rank.post(1, b"by the second address")
            else:
                rank.wait_for(1)
            rank.gather()

    run(body)


def test_a_child_made_by_fork_keeps_no_connection_open() -> None:
    run(is_outlived_by_its_child, expect_killed=(1,))


def test_finalize_leaves_no_descriptor_and_the_transport_opens_again() -> None:
    before = descriptors()
    for _ in range(3):
        btl = open_btl()
        btl.progress()
        btl.finalize()
        btl.finalize()
    assert descriptors() == before


def leave_no_descriptor() -> tuple[int, int]:
    """This process can't open any; the limits that it had."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    os.close(lowest_free := os.dup(0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, limits[1]))
    return limits


def test_where_there_is_no_descriptor_for_a_caller_it_waits_until_there_is_one() -> None:
    def body(rank: Rank) -> None:
        if rank.rank == 0:
            limits = leave_no_descriptor()
            rank.gather()
            end = time.monotonic() + 0.3
            rank.progress_until(lambda: time.monotonic() > end)
            assert not rank.inbox.messages
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            rank.wait_for(1)
        else:
            rank.gather()
            rank.post(0, b"at last")
        rank.gather()

    run(body)


def test_where_there_is_no_descriptor_for_a_call_it_is_made_once_there_is_one() -> None:
    def body(rank: Rank) -> None:
        if rank.rank == 0:
            limits = leave_no_descriptor()
            assert rank.btl.post(rank.endpoints[1], b"too early", TAG) == BACK_PRESSURE
            rank.btl.progress()
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            rank.post(1, b"at last")
        else:
            rank.wait_for(1)
            assert rank.inbox.messages == [b"at last"]
        rank.gather()

    run(body)


def test_a_peer_for_whom_no_descriptor_is_left_in_time_is_reported() -> None:
    def body(rank: Rank) -> None:
        if rank.rank == 0:
            leave_no_descriptor()
            assert rank.btl.post(rank.endpoints[1], b"never", TAG) == BACK_PRESSURE
            rank.progress_until(lambda: bool(rank.errors))
            assert "Too many open files (btl_tcp_connect_timeout" in str(rank.errors[0][1])
        rank.gather()

    run(body, connect_timeout=300)


def test_a_caller_that_resets_its_connection_as_soon_as_it_is_let_in_is_no_error_and_may_call_again() -> None:
    btl = open_btl()
    before = descriptors()
    with socket.create_server(("127.0.0.1", 0)) as server:
        caller = socket.create_connection(server.getsockname(), timeout=30)
        link, _ = server.accept()
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        caller.close()
        waiter = select.poll()
        waiter.register(link, select.POLLHUP)
        assert waiter.poll(30_000)
        assert btl.establish(link, name_of("test", 1), None) == 0
    assert btl.statistics()["connections"] == 0
    assert descriptors() == before
    btl.finalize()


def test_a_card_survives_packing_and_addresses_on_a_common_subnet_come_first() -> None:
    theirs = ["172.17.0.1/16", "10.0.0.5/24", "192.168.7.5/24", "fd00::5/64"]
    from ipaddress import ip_interface

    card = Card("secret", 131072, tuple(Address(ip_interface(it), 4000 + at) for at, it in enumerate(theirs)))
    assert unpack(pack(card)) == card
    ours = [ip_interface("172.17.0.1/16"), ip_interface("192.168.7.9/24")]
    assert [str(it) for it in candidates(card, ours, False)] == ["192.168.7.5:4002", "10.0.0.5:4001", "[fd00::5]:4003"]
    for spoilt in (b"", b"secret", b"secret 1 10.0.0.1/24", b"secret 1 10.0.0.1/24 0", b"secret x 10.0.0.1/24 1", b"\xff"):
        with pytest.raises(ValueError, match=r"\w"):
            unpack(spoilt)


def test_interfaces_are_chosen_by_name_address_and_subnet() -> None:
    assert [str(it) for it in choose("", "", True)] == ["127.0.0.1/8"]
    for entry in ("lo", "127.0.0.1", "127.0.0.0/8"):
        assert "127.0.0.1/8" in [str(it) for it in choose(entry, "", False)]
    with pytest.raises(OSError, match=r"btl_tcp_if_include.*'wlan77'.*lo \(127\.0\.0\.1/8"):
        choose("wlan77", "", False)
    with pytest.raises(OSError, match="no address of this host is left"):
        choose("lo", "lo", False)


def test_a_port_in_use_names_the_parameters_and_the_remedy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match="btl_tcp_port_min") as caught:
            open_btl(port_min=port, port_range=1)
    assert f"every port from {port} to {port} of " in str(caught.value)
