"""Each protocol of ob1, over transports that have just what it needs."""

from __future__ import annotations

import random

import pytest
from ob1_wire import ACK, FIN, FRAG, MATCH, PUT_KIND, RGET, RNDV, Pair, WireBtl

from ompy.core.errors import ERR_TRUNCATE
from ompy.core.typemap import predefined
from ompy.mca.btl import GET, IN_ORDER, NEEDS_REGISTRATION, PUT, SEND

BYTE = predefined(1)
LIMITS = {"eager_limit": 256, "rndv_eager_limit": 100, "max_send_size": 512, "rdma_pipeline_send_length": 300,
          "rdma_pipeline_frag_size": 700, "min_rdma_pipeline_size": 600}  # fmt: skip
SYNCHRONOUS = 2


def wires(flags: int = SEND | IN_ORDER, count: int = 1, **options):
    """A maker of `count` like ends."""
    return lambda: [WireBtl(f"wire{number}", flags=flags, **LIMITS, **options) for number in range(count)]


def payload(size: int, seed: int = 1) -> bytearray:
    return bytearray(random.Random(seed).randbytes(size))


def exchange(pair: Pair, size: int, mode: int = 0, receive_first: bool = True) -> None:
    """One message from side 0 to side 1, checked."""
    left, right = pair.sides
    sent, received = payload(size), bytearray(size)
    if receive_first:
        receive = right.irecv(received, 5)
        send = left.isend(sent, 5, mode)
    else:
        send = left.isend(sent, 5, mode)
        while pair.step():
            pass
        receive = right.irecv(received, 5)
    pair.run(send, receive)
    assert received == sent
    assert receive.error is None
    assert receive.result == (0, 5, 0, False, size)


@pytest.mark.parametrize("receive_first", [True, False])
@pytest.mark.parametrize("size", [0, 1, 231, 232, 233, 1000, 5000])
@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (SEND, {RNDV, ACK, FRAG}),
        (SEND | GET, {RGET, FIN}),
        (SEND | PUT, None),
        (SEND | GET | NEEDS_REGISTRATION, {RGET, FIN}),
        (SEND | PUT | NEEDS_REGISTRATION, None),
    ],
)
def test_a_message_takes_the_protocol_that_size_and_transport_ask_for(flags, expected, size, receive_first):
    pair = Pair(wires(flags | IN_ORDER))
    exchange(pair, size, receive_first=receive_first)
    if size <= 232:
        assert pair.kinds() == {MATCH}
    elif expected:
        assert pair.kinds() == expected
    elif size == 5000:
        assert pair.kinds() == {RNDV, ACK, FRAG, PUT_KIND, FIN}
    assert not any(btl.registered for side in pair.sides for btl in side.btls)
    assert not pair.sides[0].pml.engine.transfers()
    assert not pair.sides[1].pml.engine.transfers()


@pytest.mark.parametrize("flags", [SEND | GET, SEND | PUT])
def test_buffers_that_are_sent_again_are_registered_once(flags):
    pair = Pair(wires(flags | NEEDS_REGISTRATION, registration_budget=1 << 20))
    left, right = pair.sides
    sent, received = payload(5000), bytearray(5000)
    counts = []
    for _ in range(5):
        received[:] = bytes(5000)
        pair.run(left.isend(sent, 5), right.irecv(received, 5))
        assert received == sent
        counts.append([btl.registrations for side in pair.sides for btl in side.btls])
    assert all(counts[0])
    assert counts[1:] == [counts[0]] * 4
    for side in pair.sides:
        for btl in side.btls:
            assert btl.statistics()["registrations_reused"] >= 4
            btl.release_registrations()
            assert not btl.registered


@pytest.mark.parametrize("size", [0, 10, 300, 3000])
def test_a_synchronous_send_completes_only_after_the_match(size):
    pair = Pair(wires())
    left, right = pair.sides
    send = left.isend(payload(size), 3, SYNCHRONOUS)
    while pair.step():
        pass
    assert not send.complete
    receive = right.irecv(bytearray(size), 3)
    pair.run(send, receive)


@pytest.mark.parametrize(("flags", "fails"), [(SEND | GET, "get"), (SEND | PUT, "put")])
def test_data_goes_as_fragments_when_remote_access_fails(flags, fails):
    pair = Pair(wires(flags, fails=fails))
    exchange(pair, 5000)
    assert FRAG in pair.kinds()
    assert any(fails in btl.done for side in pair.sides for btl in side.btls)


@pytest.mark.parametrize("flags", [SEND, SEND | GET, SEND | PUT])
@pytest.mark.parametrize("size", [100, 500, 5000])
def test_a_longer_message_fills_the_buffer_and_is_an_error(flags, size):
    pair = Pair(wires(flags))
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
def test_a_full_transport_is_tried_again_and_nothing_is_lost(flags):
    pair = Pair(wires(flags, room=2))
    left, right = pair.sides
    sizes = [random.Random(9).choice([0, 5, 200, 600, 3000]) for _ in range(60)]
    sent = [payload(size, seed) for seed, size in enumerate(sizes)]
    sends = [left.isend(data, tag % 3) for tag, data in enumerate(sent)]
    received = [bytearray(size) for size in sizes]
    receives = [right.irecv(data, tag % 3) for tag, data in enumerate(received)]
    pair.run(*sends, *receives)
    assert received == sent


def test_messages_are_matched_in_order_though_every_fragment_overtakes():
    seed = random.randrange(1 << 30)
    print("seed", seed)
    generator = random.Random(seed)
    pair = Pair(wires(SEND, count=3, disorder=generator))
    left, right = pair.sides
    sent = [payload(generator.choice([0, 7, 200, 900, 4000]), number) for number in range(200)]
    sends = [left.isend(data, 1) for data in sent]
    received = [bytearray(len(data)) for data in sent]
    receives = [
        right.irecv(data, -1 if number % 2 else 1, source=-1 if number % 3 else 0) for number, data in enumerate(received)
    ]
    pair.run(*sends, *receives)
    assert received == sent


def test_a_long_message_is_shared_out_by_bandwidth():
    def make():
        return [WireBtl("wide", flags=SEND, bandwidth=300, **LIMITS), WireBtl("narrow", flags=SEND, bandwidth=100, **LIMITS)]

    pair = Pair(make)
    exchange(pair, 40000)
    wide, narrow = (btl.kinds.count(FRAG) for btl in pair.sides[0].btls)
    assert 2.5 < wide / narrow < 3.5


@pytest.mark.parametrize("flags", [SEND, SEND | GET, SEND | PUT])
@pytest.mark.parametrize("count", [1, 10, 400])
def test_typed_memory_on_either_side_crosses_every_protocol(flags, count):
    vector = BYTE.create_vector(2, 3, 7)
    pair = Pair(wires(flags, disorder=random.Random(4)))
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


def test_a_lost_peer_fails_what_involves_it_and_names_it():
    pair = Pair(wires())
    left = pair.sides[0]
    receive = left.irecv(bytearray(10), 1)
    send = left.isend(payload(5000), 1)
    anyone = left.irecv(bytearray(10), 1, source=-1)
    proc = left.comm.group.member(1)
    left.btls[0].report_error(proc, ConnectionError("connection reset"))
    for request in (receive, send):
        assert request.complete
        assert "rank 1 of pair (host here, pid 1) is gone: connection reset" in str(request.error)
    assert not anyone.complete
    with pytest.raises(Exception, match="rank 1 of pair"):
        left.isend(payload(5), 1)


def test_a_message_for_a_communicator_that_is_not_made_yet_waits_for_it():
    from ompy.core.communicator import Communicator
    from ompy.core.group import make_group, set_this_process

    pair = Pair(wires())
    left, right = pair.sides
    comms = []
    for side in pair.sides:
        set_this_process(side.rank)
        comms.append(Communicator(99, make_group([0, 1]), None, "late"))
    left.pml.add_comm(comms[0])
    left.comm = comms[0]
    send = left.isend(payload(20), 1)
    pair.run(send)
    right.pml.add_comm(comms[1])
    right.comm = comms[1]
    received = bytearray(20)
    pair.run(right.irecv(received, 1))
    assert received == payload(20)


@pytest.mark.parametrize("size", [50, 5000])
def test_a_detached_message_is_received_by_its_handle_alone(size):
    pair = Pair(wires())
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
    from ompy.core.memory import address_of

    pair.run(right.pml.imrecv(address_of(first), size, BYTE, message), *sends)
    assert first == payload(size, 0)


def test_memory_for_a_message_of_unknown_size_is_made_at_the_match():
    pair = Pair(wires())
    left, right = pair.sides
    receive = right.pml.irecv_object(bytearray, 0, 1, right.comm)
    pair.run(left.isend(payload(3333), 1), receive)
    assert receive.buffer == payload(3333)


def test_a_receive_is_cancelled_only_while_nothing_matched_it():
    pair = Pair(wires())
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
