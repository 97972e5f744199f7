"""A peer whose process is gone is reported once, and what is sent to it fails."""

from __future__ import annotations

import time

import pytest
from ompy_btl_udp.component import COMPONENT
from ompy_btl_udp.module import UdpBtl

from ompy.core.errors import ERR_PROC_FAILED, MPIError
from ompy.core.proc import Proc
from ompy.mca.btl import BACK_PRESSURE, TAKEN, Receiver
from ompy.mca.rte import Rte

TAG = 77


class Inbox(Receiver):
    def __init__(self) -> None:
        self.got: list[bytes] = []

    def receive(self, btl, endpoint, data) -> int:
        self.got.append(bytes(data))
        return 0


def transport(rank: int) -> UdpBtl:
    rte = Rte()
    rte.rank, rte.size, rte.local_size, rte.job, rte.secret = rank, 2, 2, "job", b"secret"
    values = {parameter.name: parameter.default for parameter in COMPONENT.parameters}
    return UdpBtl(rte, values.__getitem__)


def run(*btls: UdpBtl, until) -> None:
    limit = time.monotonic() + 20
    while not until():
        for btl in btls:
            btl.progress()
        assert time.monotonic() < limit


@pytest.fixture
def pair():
    left, right = transport(0), transport(1)
    inboxes = []
    for btl in (left, right):
        inboxes.append(Inbox())
        btl.register(TAG, inboxes[-1])
    [to_right] = left.add_procs([Proc(1, 1, "job", "here", 4711, False, True, {"udp": right.address()})])
    yield left, right, to_right, inboxes
    left.finalize()
    right.finalize()


def test_the_receiver_need_not_know_the_sender(pair) -> None:
    left, right, to_right, (_, inbox) = pair
    messages = [bytes([number]) * 20_000 for number in range(30)]
    for message in messages:
        while left.post(to_right, message, TAG) == BACK_PRESSURE:
            left.progress()
            right.progress()
    run(left, right, until=lambda: len(inbox.got) == len(messages))
    assert inbox.got == messages


def test_it_is_reported_once_and_what_is_sent_then_fails(pair) -> None:
    left, right, to_right, (_, inbox) = pair
    told = []
    left.register_error(lambda btl, proc, error: told.append((proc.rank, error)))
    assert left.post(to_right, b"before", TAG) == TAKEN
    run(left, right, until=lambda: inbox.got)
    right.finalize()
    run(left, until=lambda: told)
    with pytest.raises(MPIError, match="could not deliver a message to rank 1") as failed:
        left.post(to_right, b"after", TAG)
    assert failed.value.code == ERR_PROC_FAILED
    for _ in range(100):
        left.progress()
    [(rank, error)] = told
    assert rank == 1
    assert error.code == ERR_PROC_FAILED
    assert "pid 4711" in str(error)
