"""Contact over the network that is made anew (clause 31 of `ompy/mca/btl.pxd`): after a break, before one, by either side."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import stat
import time

import network_ranks
import pytest
from network_ranks import TAG, Rank

from ompy.core.errors import MPIError
from ompy.mca.btl import BACK_PRESSURE

TRANSPORTS = pytest.mark.parametrize("name", ["tcp", "zmq"])
MORE_THAN_THERE_IS_ROOM_FOR = 5000
PAUSE = 0.05  # seconds before the rank that hesitates makes contact anew, too


def kill_connections() -> int:
    """End this process's connections as a reset does; how many there were.  Of the test's own wires, which are no TCP, none."""
    killed = 0
    for number in map(int, os.listdir("/proc/self/fd")):
        with contextlib.suppress(OSError):
            if not stat.S_ISSOCK(os.fstat(number).st_mode):
                continue
            with socket.socket(fileno=os.dup(number)) as link:
                if link.family == socket.AF_INET and link.getpeername():
                    link.shutdown(socket.SHUT_RDWR)
                    killed += 1
    return killed


def talk(rank: Rank, turn: bytes) -> None:
    """Send until both have heard of each other in this turn; contact that breaks meanwhile is made anew."""
    peer = 1 - rank.rank
    heard = number = 0
    again = time.monotonic() + PAUSE * rank.rank
    mine: bool = False
    while True:
        if rank.errors and time.monotonic() >= again:
            rank.errors.clear()
            rank.btl.renew(rank.endpoints[peer])
            again = time.monotonic() + PAUSE * (1 + rank.rank)
        if not rank.errors:
            number += 1
            try:
                rank.btl.post(rank.endpoints[peer], b"%s %d" % (turn, number), TAG)
            except MPIError as error:
                rank.errors.append((peer, error))
        for _ in range(20):
            rank.btl.progress()
        heard += sum(message.startswith(turn) for message in rank.inbox.messages)
        assert len(set(rank.inbox.messages)) == len(rank.inbox.messages), "a message came twice"
        mine = heard > 0
        if all(rank.gather(mine)):
            return


@TRANSPORTS
def test_contact_is_made_anew_by_either_rank_or_both_after_any_break(name: str, seed: int) -> None:
    def body(rank: Rank) -> None:
        rank.post(1 - rank.rank, b"hello")
        rank.wait_for(1)
        generator = random.Random(seed)
        killed = 0
        for turn in range(12):
            what = generator.choice(["break", "renew", "renew both"])
            who = generator.randrange(2)
            rank.gather()
            if what == "break" and who == rank.rank:
                killed += kill_connections()
            elif what == "renew both" or (what == "renew" and who == rank.rank):
                rank.btl.renew(rank.endpoints[1 - rank.rank])
            talk(rank, b"%d." % turn)
        assert sum(rank.gather(killed)) > 0

    network_ranks.run(name, body)


@TRANSPORTS
def test_what_waits_in_lost_contact_does_not_come_between_peers_that_have_made_it_anew(name: str) -> None:
    def body(rank: Rank) -> None:
        rank.post(1 - rank.rank, b"hello")
        rank.wait_for(1)
        for turn in range(3):
            rank.gather()
            if rank.rank == 0:
                kill_connections()
                with contextlib.suppress(MPIError):
                    for number in range(MORE_THAN_THERE_IS_ROOM_FOR):
                        if rank.btl.post(rank.endpoints[1], b"left %d %d" % (turn, number), TAG) == BACK_PRESSURE:
                            break
                rank.btl.renew(rank.endpoints[1])
            # Long enough for whoever calls again by himself to have called.
            for again in range(200):
                talk(rank, b"%d %d." % (turn, again))
                rank.inbox.messages.clear()

    network_ranks.run(name, body)


@TRANSPORTS
def test_contact_is_made_anew_before_there_was_any(name: str) -> None:
    def body(rank: Rank) -> None:
        rank.btl.renew(rank.endpoints[1 - rank.rank])
        talk(rank, b"first")
        rank.gather()

    network_ranks.run(name, body)


@TRANSPORTS
def test_a_dead_peer_is_reported_again_each_time_that_contact_is_made_anew(name: str) -> None:
    def body(rank: Rank) -> None:
        rank.post(1 - rank.rank, b"hello")
        rank.wait_for(1)
        pids = rank.gather(os.getpid())
        if rank.rank == 1:
            signal.pause()
        os.kill(pids[1], signal.SIGKILL)
        for turn in range(3):
            rank.progress_until(lambda turn=turn: len(rank.errors) > turn)
            assert {lost for lost, _ in rank.errors} == {1}
            rank.btl.renew(rank.endpoints[1])
            with contextlib.suppress(MPIError):
                rank.btl.post(rank.endpoints[1], b"anybody there?", TAG)
        rank.progress_until(lambda: len(rank.errors) > 3)

    network_ranks.run(name, body, expect_killed=(1,), connect_timeout=500)


def test_links_of_zmq_are_transports_of_their_own_that_meet_at_the_same_number() -> None:
    from ompy_btl_zmq.component import COMPONENT, made

    from ompy.mca.rte import Rte

    rte = Rte()
    rte.job, rte.rank, rte.size, rte.local_rank, rte.local_size, rte.secret = "test", 0, 2, 0, 2, network_ranks.SECRET
    values = {parameter.name: parameter.default for parameter in COMPONENT.parameters}
    modules = made(rte, (values | {"links": 3, "interface": "127.0.0.1,127.0.0.2"}).__getitem__)
    try:
        assert [module.name for module in modules] == ["zmq", "zmq1", "zmq2"]
        cards = {name: card for module in modules for name, card in module.cards().items()}
        assert [cards[module.name].split(b":")[1] for module in modules] == [b"//127.0.0.1", b"//127.0.0.2", b"//127.0.0.1"]
    finally:
        for module in modules:
            module.finalize()
