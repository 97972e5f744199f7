"""What transports count."""

from __future__ import annotations

from ctypes import create_string_buffer

import pytest
import tcp_ranks
import zmq_ranks
from ompy_btl_self.module import SelfBtl
from ompy_btl_sm.module import SmBtl
from tcp_ranks import TAG
from test_tcp import put

from ompy.core.memory import address_of
from ompy.mca.btl import TAKEN


@pytest.mark.parametrize("make", [SelfBtl, SmBtl, tcp_ranks.open_btl, zmq_ranks.open_btl], ids=["self", "sm", "tcp", "zmq"])
def test_all_counts_begin_at_zero(make):
    btl = make()
    counts = btl.statistics()
    btl.finalize()
    assert counts
    assert {name: count for name, count in counts.items() if count} == {}


@pytest.mark.parametrize("links", [1, 2])
def test_of_what_tcp_counts_as_sent_its_peer_counts_each_byte_as_received(links):
    sizes = [0, 1, 8, 5000, 70_000]
    room = 100_000

    def body(rank):
        memory = bytearray(room)
        shown = rank.gather((address_of(memory), rank.btl.hold_mem(rank.endpoints[1 - rank.rank], address_of(memory), room)))
        if rank.rank == 0:
            for size in sizes:
                rank.post(1, bytes(size))
            assert rank.btl.post(rank.endpoints[1], bytes(1000), TAG, 8) == TAKEN
            over = put(rank, 1, create_string_buffer(room), *shown[1], room)
            rank.post(1, b"last")
            rank.progress_until(lambda: bool(over))
        else:
            rank.wait_for(len(sizes) + 2)
        rank.meet()
        counts = rank.gather(rank.btl.statistics())
        assert counts[0]["bytes_sent"] == counts[1]["bytes_received"] > sum(sizes) + room
        assert counts[0]["messages_received"] == 0
        assert counts[1]["messages_received"] == len(sizes) + 2

    tcp_ranks.run(body, links=links)
