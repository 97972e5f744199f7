"""What every PML promises, over transports that have just what it needs."""

from __future__ import annotations

import random

import pytest
from wire import BYTE, SYNCHRONOUS, Pair, cm, exchange, ob1, payload, wires

from ompy.core.errors import ERR_TRUNCATE
from ompy.core.memory import address_of
from ompy.mca.btl import GET, IN_ORDER, PUT, SEND


@pytest.fixture(params=[ob1, cm], ids=["ob1", "cm"])
def pml(request):
    return request.param


@pytest.mark.parametrize("size", [0, 10, 300, 3000])
def test_a_synchronous_send_completes_only_after_the_match(pml, size):
    pair = Pair(wires(), pml)
    left, right = pair.sides
    send = left.isend(payload(size), 3, SYNCHRONOUS)
    while pair.step():
        pass
    assert not send.complete
    receive = right.irecv(bytearray(size), 3)
    pair.run(send, receive)


@pytest.mark.parametrize("flags", [SEND, SEND | GET, SEND | PUT])
@pytest.mark.parametrize("size", [100, 500, 5000])
def test_a_longer_message_fills_the_buffer_and_is_an_error(pml, flags, size):
    pair = Pair(wires(flags | IN_ORDER), pml)
    left, right = pair.sides
    received = bytearray(64)
    receive = right.irecv(received, 1)
    sent = payload(size)
    send = left.isend(sent, 1)
    pair.run(send, receive)
    assert received == sent[:64]
    assert receive.error.code == ERR_TRUNCATE
    assert f"message of {size} bytes" in str(receive.error)
    assert "holds 64 bytes" in str(receive.error)
    exchange(pair, size)


@pytest.mark.parametrize("flags", [SEND, SEND | GET, SEND | PUT])
def test_a_full_transport_is_tried_again_and_nothing_is_lost(pml, flags):
    pair = Pair(wires(flags | IN_ORDER, room=2), pml)
    left, right = pair.sides
    sizes = [random.Random(9).choice([0, 5, 200, 600, 3000]) for _ in range(60)]
    sent = [payload(size, seed) for seed, size in enumerate(sizes)]
    sends = [left.isend(data, tag % 3) for tag, data in enumerate(sent)]
    received = [bytearray(size) for size in sizes]
    receives = [right.irecv(data, tag % 3) for tag, data in enumerate(received)]
    pair.run(*sends, *receives)
    assert received == sent


@pytest.mark.parametrize("flags", [SEND, SEND | GET, SEND | PUT])
@pytest.mark.parametrize("count", [1, 10, 400])
def test_typed_memory_on_either_side_crosses_every_protocol(pml, flags, count):
    vector = BYTE.create_vector(2, 3, 7)
    pair = Pair(wires(flags | IN_ORDER), pml)
    left, right = pair.sides
    size = vector.size * count
    memory = payload(vector.extent * count + 16)
    packed = bytearray(size)
    pair.run(left.isend(memory, 1, typemap=vector, count=count), right.irecv(packed, 1))
    spread = bytearray(len(memory))
    pair.run(left.isend(packed, 2), right.irecv(spread, 2, typemap=vector, count=count))
    again = bytearray(size)
    pair.run(left.isend(spread, 3, typemap=vector, count=count), right.irecv(again, 3))
    assert again == packed
    expected = b"".join(
        bytes(memory[i * vector.extent + j * 7 : i * vector.extent + j * 7 + 3]) for i in range(count) for j in range(2)
    )
    assert packed == expected


def test_a_lost_peer_fails_what_involves_it_and_names_it(pml):
    pair = Pair(wires(), pml)
    left = pair.sides[0]
    receive = left.irecv(bytearray(10), 1)
    send = left.isend(payload(5000), 1)
    proc = left.comm.group.member(1)
    left.btls[0].report_error(proc, ConnectionError("connection reset"))
    for request in (receive, send):
        assert request.complete
        assert "rank 1 of pair (host here, pid 1) is gone: connection reset" in str(request.error)
    with pytest.raises(Exception, match="rank 1 of pair"):
        left.isend(payload(5), 1)


@pytest.mark.parametrize("size", [50, 5000])
def test_a_detached_message_is_received_by_its_handle_alone(pml, size):
    pair = Pair(wires(), pml)
    left, right = pair.sides
    sends = [left.isend(payload(size, number), 1) for number in range(2)]
    while pair.step():
        pass
    message = right.pml.improbe(0, 1, right.comm)
    second = bytearray(size)
    receive = right.irecv(second, 1)
    pair.run(receive)
    assert second == payload(size, 1)
    first = bytearray(size)
    pair.run(right.pml.imrecv(address_of(first), size, BYTE, message), *sends)
    assert first == payload(size, 0)


def test_memory_for_a_message_of_unknown_size_is_made_at_the_match(pml):
    pair = Pair(wires(), pml)
    left, right = pair.sides
    receive = right.pml.irecv_object(bytearray, 0, 1, right.comm)
    pair.run(left.isend(payload(3333), 1), receive)
    assert receive.buffer == payload(3333)


def test_a_receive_is_cancelled_only_while_nothing_matched_it(pml):
    pair = Pair(wires(), pml)
    left, right = pair.sides
    receive = right.irecv(bytearray(10), 1)
    receive.cancel()
    assert receive.complete
    assert receive.result[3]
    exchange(pair, 10)
    send = left.isend(payload(10), 9)
    pair.run(send)
    matched = right.irecv(bytearray(10), 9)
    matched.cancel()
    assert not matched.result[3]
