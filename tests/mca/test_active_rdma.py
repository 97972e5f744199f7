"""Remote memory access over the active messages of a BTL: what its target answers, and to whom."""

from __future__ import annotations

import struct

import pytest

from ompy.core.errors import ERR_OTHER, ERR_PROC_FAILED, MPIError
from ompy.core.proc import Proc
from ompy.mca.active_rdma import ActiveRdma
from ompy.mca.btl import BACK_PRESSURE, Btl, Descriptor, Endpoint

TAG_OSC = 2
# A get of 8 bytes of a region that there is none of (`active_rdma.pxd`, Order).
ORDER = struct.pack("iiiiQQQqq", 2, 0, 0, 8, 1, 999, 0, 0, 0)


class Cut(Btl):
    """Whose sends end as they are told to."""

    def __init__(self, error: int) -> None:
        self.name = "cut"
        self.max_send_size = 4096
        self.error = error
        self.refuses = False
        self.asked = 0

    def send(self, endpoint: Endpoint, descriptor: Descriptor, tag: int) -> int:
        self.asked += 1
        if self.refuses:
            return BACK_PRESSURE
        raise MPIError(self.error, "the peer has gone")


def made(error: int) -> tuple[Cut, ActiveRdma, Endpoint]:
    btl = Cut(error)
    return btl, ActiveRdma(btl), Endpoint(btl, Proc(1, 1, "job", "here", 1, False, True, {}))


def test_an_answer_to_who_has_died_is_nobody_s_error_at_once_or_later() -> None:
    btl, layer, endpoint = made(ERR_PROC_FAILED)
    btl.deliver_view(TAG_OSC, endpoint, ORDER)
    btl.refuses = True
    btl.deliver_view(TAG_OSC, endpoint, ORDER)
    btl.refuses = False
    assert layer.progress() == 1
    assert btl.asked == 3
    assert layer.progress() == 0


def test_an_answer_that_fails_otherwise_is_an_error() -> None:
    btl, _, endpoint = made(ERR_OTHER)
    with pytest.raises(MPIError, match="the peer has gone"):
        btl.deliver_view(TAG_OSC, endpoint, ORDER)
