"""Each protocol of ob1, over transports that have just what it needs."""

from __future__ import annotations

import random

import pytest
from wire import (
    ACK,
    BYTE,
    FIN,
    FRAG,
    LIMITS,
    MATCH,
    NAMES,
    PUT_KIND,
    RGET,
    RNDV,
    SYNCHRONOUS,
    Pair,
    WireBtl,
    exchange,
    payload,
    wires,
)

from ompy.core.communicator import Communicator
from ompy.core.errors import ERR_OTHER, ERR_RMA_RANGE
from ompy.core.group import make_group, set_this_process
from ompy.core.proc import process_table
from ompy.mca.btl import BACK_PRESSURE, GET, IN_ORDER, NEEDS_REGISTRATION, PUT, SEND


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


@pytest.mark.parametrize(("size", "parts"), [(30_000, 2), (65_536, 4), (200_000, 4), (400_000, 7)])
def test_what_is_packed_goes_in_parts_that_are_unpacked_meanwhile(size, parts):
    """As many as there are, where each is 16 KiB at least and has room in a fragment; what lies together goes in the fewest."""
    pair = Pair(wires(SEND | IN_ORDER, max_send_size=64_000))
    left, right = pair.sides
    packed, received = payload(size), bytearray(size)
    spread = bytearray(2 * size)
    spread[::2] = packed
    pair.run(left.isend(spread, 5, typemap=BYTE.create_vector(size, 1, 2), count=1), right.irecv(received, 5))
    assert received == packed
    assert parts <= left.btls[0].kinds.count(FRAG) <= parts + 1
    left.btls[0].kinds.clear()
    exchange(pair, size)
    assert left.btls[0].kinds.count(FRAG) == -(-size // 64_000)


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


@pytest.mark.parametrize(("flags", "fails"), [(SEND | GET, "get"), (SEND | PUT, "put")])
def test_data_goes_as_fragments_when_remote_access_fails(flags, fails):
    pair = Pair(wires(flags, fails=fails))
    exchange(pair, 5000)
    assert FRAG in pair.kinds()
    assert any(fails in btl.done for side in pair.sides for btl in side.btls)


@pytest.mark.parametrize("flags", [SEND, SEND | PUT])
def test_a_send_is_complete_when_all_of_it_has_left(flags):
    pair = Pair(wires(flags, put_limit=700))
    left, right = pair.sides
    receive, send = right.irecv(bytearray(5000), 5), left.isend(payload(5000), 5)
    while not send.complete:
        assert pair.step()
    assert not left.btls[0].unfinished
    pair.run(receive)


# What the other side waits for: the receiver's word that it has read, or has matched; the sender's that it has written.
LAST_WORDS = [(SEND | GET, 5000, 0, FIN), (SEND, 50, SYNCHRONOUS, ACK), (SEND | PUT, 1500, 0, FIN)]


@pytest.mark.parametrize("ends", ["leaves", "raises", "the peer fails"])
@pytest.mark.parametrize(("flags", "size", "mode", "word"), LAST_WORDS)
def test_who_owes_the_last_word_is_complete_when_it_has_left(flags, size, mode, word, ends):
    pair = Pair(wires(flags, failing={0}))
    left, right = pair.sides
    sent, received = payload(size), bytearray(size)
    for side in pair.sides:
        side.btls[0].refuses = {word}
    receive, send = right.irecv(received, 5), left.isend(sent, 5, mode)
    while pair.step():
        pass
    assert received == sent
    assert not receive.complete
    assert not send.complete
    debtor, other, side = (send, receive, left) if flags & PUT else (receive, send, right)
    if ends == "leaves":
        side.btls[0].refuses = ()
        pair.run(debtor, other)
        assert other.error is None
    elif ends == "raises":
        side.btls[0].refuses, side.btls[0].breaks = (), NAMES[word]
        pair.run(debtor)
    else:
        side.btls[0].report_error(side.comm.group.member(1 - side.rank), ConnectionError("connection reset"))
        side.poll()
    assert debtor.complete
    assert debtor.error is None or flags & PUT
    assert not side.pml.engine.transfers()


@pytest.mark.parametrize("flags", [SEND | GET, SEND | PUT])
def test_pieces_that_are_complete_at_once_follow_one_another_without_end(flags):
    pair = Pair(wires(flags, at_once=True, get_limit=16, put_limit=16))
    exchange(pair, 50_000)
    assert flags & PUT or FRAG not in pair.kinds()
    assert not any(side.pml.engine.transfers() for side in pair.sides)


@pytest.mark.parametrize("failing", [{0}, {1}, {0, 1}, {1, 2}, {7}])
@pytest.mark.parametrize(("error", "count"), [(ERR_OTHER, 1), (ERR_OTHER, 2), (ERR_RMA_RANGE, 1)])
def test_a_message_of_which_some_pieces_cant_be_read_is_sent_as_fragments(error, count, failing):
    pair = Pair(wires(SEND | GET, count=count, fails="get", failing=failing, error=error, get_limit=700))
    exchange(pair, 5000)
    assert FRAG in pair.kinds()
    assert not pair.sides[1].pml.engine.transfers()


@pytest.mark.parametrize("flags", [SEND | GET, SEND | PUT])
@pytest.mark.parametrize("most", [0, 1, 2, 5])
def test_what_cant_be_registered_is_sent_as_fragments(flags, most):
    pair = Pair(wires(flags | NEEDS_REGISTRATION, most_registered=most, get_limit=700))
    left, right = pair.sides
    sent = [payload(5000, number) for number in range(4)]
    received = [bytearray(5000) for _ in sent]
    receives = [right.irecv(data, tag) for tag, data in enumerate(received)]
    pair.run(*(left.isend(data, tag) for tag, data in enumerate(sent)), *receives)
    assert received == sent
    assert (FRAG in pair.kinds()) or most > 0
    assert not any(side.pml.engine.transfers() for side in pair.sides)
    for side in pair.sides:
        for btl in side.btls:
            btl.release_registrations()
            assert not btl.registered


@pytest.mark.parametrize(("flags", "lacks"), [(SEND | GET, "get"), (SEND | PUT, "put")])
def test_data_goes_as_fragments_when_there_is_no_memory_for_remote_access(flags, lacks):
    pair = Pair(wires(flags | NEEDS_REGISTRATION, lacks=lacks))
    exchange(pair, 5000)
    assert FRAG in pair.kinds()
    assert not pair.sides[1].pml.engine.transfers()


# Where most is put, one fragment goes before.
TROUBLES = [
    *((SEND, {kind: "fragment"}, number) for kind in ("fails", "breaks") for number in (0, 1, 3)),
    *((SEND | PUT, {kind: "fragment"}, 0) for kind in ("fails", "breaks")),
    *((SEND, {kind: "answer"}, 0) for kind in ("fails", "breaks")),
    *((SEND | PUT, {"breaks": "put"}, number) for number in (0, 1, 3)),
    *((SEND | GET, {"breaks": "get"}, number) for number in (0, 1, 3)),
]


@pytest.mark.parametrize(("flags", "trouble", "number"), TROUBLES)
@pytest.mark.parametrize("count", [1, 2])
def test_a_message_that_a_transport_breaks_off_is_an_error_on_both_sides_and_of_nobody_else(flags, trouble, number, count):
    pair = Pair(wires(flags, count=count, failing={number}, get_limit=700, **trouble))
    left, right = pair.sides
    sent, received = payload(9000), bytearray(9000)
    short, arrived = payload(30), bytearray(30)
    receives = [right.irecv(received, 5), right.irecv(arrived, 6)]
    sends = [left.isend(sent, 5), left.isend(short, 6)]
    pair.run(*sends, *receives)
    for request in (sends[0], receives[0]):
        assert request.error is not None, f"the other side says: {sends[0].error}, {receives[0].error}"
    assert arrived == short
    assert not any(side.pml.engine.transfers() for side in pair.sides)
    # Each transport has met its own by now, or has it before it.
    for btl in (btl for side in pair.sides for btl in side.btls):
        btl.fails = btl.breaks = ""
    exchange(pair, 9000)


def test_a_synchronous_send_whose_receipt_can_t_be_sent_is_an_error_on_both_sides():
    pair = Pair(wires(SEND, fails="answer"))
    left, right = pair.sides
    receive = right.irecv(bytearray(50), 5)
    send = left.isend(payload(50), 5, SYNCHRONOUS)
    pair.run(send, receive)
    assert (send.error.code, receive.error.code) == (ERR_OTHER, ERR_OTHER)


def test_a_receiver_is_told_of_an_error_once_nothing_more_can_be_written_to_its_memory():
    pair = Pair(wires(SEND | PUT, breaks="put", failing={2}, lazy=True))
    left, right = pair.sides
    received = bytearray(9000)
    receive = right.irecv(received, 5)
    left.isend(payload(9000), 5)
    while not receive.complete:
        assert pair.step(), "nothing moves"
    assert receive.error is not None
    at_once = bytes(received)
    assert any(at_once)
    while pair.step():
        pass
    assert bytes(received) == at_once


def test_a_put_that_fails_at_once_and_whose_receiver_can_t_be_asked_for_another_way_is_an_error_on_both_sides():
    pair = Pair(wires(SEND | PUT, fails="put", breaks="ending", failing={0}))
    left, right = pair.sides
    receive = right.irecv(bytearray(9000), 5)
    send = left.isend(payload(9000), 5)
    pair.run(send, receive)
    assert send.error is not None
    assert receive.error is not None
    assert not any(side.pml.engine.transfers() for side in pair.sides)


def whatever(rounds: int, **troubles: list[str]):
    """Random messages over random transports: the two sides, (sent, received) of each message, (send, receive) of each."""
    seed = random.randrange(1 << 30)
    print("seed", seed)
    generator = random.Random(seed)
    draw = generator.choice
    for _ in range(rounds):
        remote = {"get": draw([0, GET]), "put": draw([0, PUT])}
        pair = Pair(
            wires(
                SEND | NEEDS_REGISTRATION | remote["get"] | remote["put"] | draw([0, IN_ORDER]),
                count=draw([1, 1, 2]),
                most_registered=draw([0, 1, 2, 3, 7]),
                registration_budget=draw([0, 1 << 20]),
                get_limit=draw([0, 300, 700]),
                at_once=draw([False, True]),
                room=draw([1, 3, 1 << 20]),
                failing={generator.randrange(4)},
                **{trouble: draw(kinds) for trouble, kinds in troubles.items()},
            )
        )
        sent = [payload(draw([0, 50, 400, 900, 5000, 9000]), number) for number in range(draw([1, 4, 8]))]
        received = [bytearray(len(data)) for data in sent]
        calls = []
        for tag, (data, memory) in enumerate(zip(sent, received, strict=True)):
            sender, receiver = generator.sample(pair.sides, 2)
            calls += [(sender.isend, data, (tag, 0)), (receiver.irecv, memory, (tag, 1))]
        generator.shuffle(calls)
        requests = {}
        for call, memory, place in calls:
            requests[place] = call(memory, place[0])
            if draw([False, True]):
                pair.step()
        pair.run(*requests.values())
        assert not any(side.pml.engine.transfers() for side in pair.sides)
        for btl in (btl for side in pair.sides for btl in side.btls):
            btl.release_registrations()
            assert not btl.registered
        yield zip(sent, received, strict=True), [(requests[tag, 0], requests[tag, 1]) for tag in range(len(sent))]


def test_messages_arrive_whatever_transports_lack_refuse_or_fail_at():
    for data, requests in whatever(400, lacks=["", "", "get", "put"], fails=["", "", "get", "put"]):
        assert all(sent == received for sent, received in data)
        assert not any(request.error for pair in requests for request in pair)


def test_both_sides_agree_on_which_messages_arrive_whatever_transports_break_off():
    broken = 0
    troubles = ["", "get", "put", "fragment", "answer"]
    for data, requests in whatever(400, fails=troubles, breaks=troubles):
        for (sent, received), (send, receive) in zip(data, requests, strict=True):
            assert (send.error is None) == (receive.error is None), f"{send.error}; {receive.error}"
            assert receive.error is not None or received == sent
            broken += receive.error is not None
    assert broken


def test_puts_find_a_transport_with_a_long_name():
    pair = Pair(lambda: [WireBtl("wire with a name of many words", flags=SEND | PUT, **LIMITS)])
    exchange(pair, 5000)
    assert any("put" in btl.done for side in pair.sides for btl in side.btls)


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


def test_a_message_for_a_communicator_that_is_not_made_yet_waits_for_it():
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


def test_a_receive_from_any_source_ends_once_nobody_is_left_who_could_send():
    pair = Pair(wires())
    left = pair.sides[0]
    before = left.irecv(bytearray(10), 1, source=-1)
    left.btls[0].report_error(left.comm.group.member(1), ConnectionError("connection reset"))
    for request in (before, left.irecv(bytearray(10), 1, source=-1)):
        assert request.complete
        assert "rank 1 of pair (host here, pid 1) is gone: connection reset" in str(request.error)


class Interrupted(WireBtl):
    """Refuses one send, while which somebody else, as another thread might, sends as well."""

    between = None

    def send(self, endpoint, descriptor, tag):
        if self.between is not None:
            between, self.between = self.between, None
            between()
            return BACK_PRESSURE
        return super().send(endpoint, descriptor, tag)


@pytest.mark.parametrize("disorder", [None, 5])
def test_a_send_that_is_refused_while_another_goes_through_keeps_its_place(disorder):
    pair = Pair(lambda: [Interrupted("wire", disorder=random.Random(disorder) if disorder else None, **LIMITS)])
    left, right = pair.sides
    pair.run(left.isend(payload(1), 9), right.irecv(bytearray(1), 9))
    sends = []
    left.btls[0].between = lambda: sends.append(left.isend(bytearray(b"second"), 1))
    sends.append(left.isend(bytearray(b"first "), 1))
    sends.append(left.isend(bytearray(b"third "), 1))
    received = [bytearray(6) for _ in range(3)]
    pair.run(*sends, *(right.irecv(block, 1) for block in received))
    assert received == [b"first ", b"second", b"third "]


@pytest.mark.parametrize("flags", [SEND, SEND | GET, SEND | PUT])
def test_a_long_message_that_comes_when_its_sender_is_lost_is_an_error_of_its_receive(flags):
    """Somebody else might send what is received from anybody, so that it waits on."""
    pair = Pair(wires(flags))
    third = process_table().extend(1)
    for side in pair.sides:
        set_this_process(side.rank)
        side.comm = Communicator(99, make_group([0, 1, third]), None, "three")
        side.pml.add_comm(side.comm)
    left, right = pair.sides
    receive = right.irecv(bytearray(5000), 5, source=-1)
    left.isend(payload(5000), 5)
    right.pml.peer_lost(right.comm.group.member(0), ConnectionError("connection reset"))
    assert not receive.complete
    right.btls[0].progress()
    assert receive.complete
    assert receive.error is not None
    assert "connection reset" in str(receive.error)
    assert not right.pml.engine.transfers()
