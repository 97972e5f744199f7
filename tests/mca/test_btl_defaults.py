"""What a transport has that overrides `add_procs`, `send` and `progress` alone."""

from __future__ import annotations

import pytest

from ompy.core.errors import ERR_NO_SPACE, ERR_PROC_FAILED, MPIError
from ompy.core.proc import Proc
from ompy.mca.btl import BACK_PRESSURE, TAKEN, Btl, Descriptor, Endpoint

TAG = 20


class Fickle(Btl):
    """Completes what it takes with the given statuses, at once or from `progress`."""

    def __init__(self, at_once: list[int] | None = None, later: list[int] | None = None) -> None:
        self.name = "fickle"
        self.at_once = at_once or []
        self.later = later or []
        self.under_way: list[Descriptor] = []

    def send(self, endpoint: Endpoint, descriptor: Descriptor, tag: int) -> int:
        if self.at_once:
            descriptor.complete(self.at_once.pop(0))
        elif self.later:
            self.under_way.append(descriptor)
        else:
            return BACK_PRESSURE
        return TAKEN

    def progress(self) -> int:
        while self.under_way:
            self.under_way.pop(0).complete(self.later.pop(0))
        return 0


@pytest.fixture
def proc() -> Proc:
    return Proc(1, 1, "job", "here", 1, False, True, {})


def test_bytes_sent_at_once_whose_send_fails_are_an_error_of_its_class(proc: Proc) -> None:
    btl = Fickle(at_once=[ERR_NO_SPACE, 0])
    endpoint = Endpoint(btl, proc)
    with pytest.raises(MPIError, match="btl fickle could not deliver a message to rank 1 of job") as raised:
        btl.post(endpoint, b"bytes", TAG)
    assert raised.value.code == ERR_NO_SPACE
    assert btl.post(endpoint, b"bytes", TAG) == TAKEN


@pytest.mark.parametrize("header_size", [6, 1 << 31, 1 << 62])
def test_a_header_longer_than_the_data_is_refused_and_nothing_is_sent(proc: Proc, header_size: int) -> None:
    btl = Fickle(at_once=[0])
    with pytest.raises(ValueError, match=f"header_size: 5 bytes of data have no header of {header_size}"):
        btl.post(Endpoint(btl, proc), b"bytes", TAG, header_size)
    assert btl.post(Endpoint(btl, proc), b"bytes", TAG, 5) == TAKEN


def test_a_failure_after_bytes_were_sent_at_once_is_reported_as_a_lost_peer(proc: Proc) -> None:
    btl = Fickle(later=[0, ERR_PROC_FAILED])
    reported: list[tuple[Proc, MPIError]] = []
    btl.register_error(lambda btl, proc, error: reported.append((proc, error)))
    endpoint = Endpoint(btl, proc)
    assert [btl.post(endpoint, b"bytes", TAG) for _ in range(2)] == [TAKEN, TAKEN]
    btl.progress()
    ((told, error),) = reported
    assert told is proc
    assert error.code == ERR_PROC_FAILED
    assert "rank 1 of job" in str(error)


def test_bytes_that_were_refused_leave_nothing_behind(proc: Proc) -> None:
    btl = Fickle()
    endpoint = Endpoint(btl, proc)
    assert btl.post(endpoint, b"bytes", TAG) == BACK_PRESSURE
    descriptor = btl.alloc(endpoint, 5)
    assert descriptor.context is None
    descriptor.in_flight = True
    descriptor.complete(ERR_NO_SPACE)
