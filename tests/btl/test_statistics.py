"""What transports count."""

from __future__ import annotations

import pytest
import tcp_ranks
import zmq_ranks
from ompy_btl_self.module import SelfBtl
from ompy_btl_sm.module import SmBtl


@pytest.mark.parametrize("make", [SelfBtl, SmBtl, tcp_ranks.open_btl, zmq_ranks.open_btl], ids=["self", "sm", "tcp", "zmq"])
def test_all_counts_begin_at_zero(make):
    btl = make()
    counts = btl.statistics()
    btl.finalize()
    assert counts
    assert {name: count for name, count in counts.items() if count} == {}
