"""Each protocol of mtl/portals, as figures 3 to 7 of "MPI on portals" have them, and what it adds: credit, contexts."""

from __future__ import annotations

import random

import pytest
from wire import BYTE, LIMITS, SYNCHRONOUS, Pair, Side, WireBtl, cm, payload, wires

from ompy.core.communicator import Communicator
from ompy.core.errors import ERR_OTHER, MPIError
from ompy.core.group import make_group, set_this_process
from ompy.core.proc import process_table
from ompy.mca.btl import GET, IN_ORDER, NEEDS_REGISTRATION, SEND

READY = 3
SHORT, LONG = 100, 5000


def settle(pair: Pair) -> None:
    while pair.step():
        pass


def counts(side: Side) -> dict[str, int]:
    return side.pml.mtl.statistics()


def portals(flags: int = SEND, **options: int) -> Pair:
    return Pair(wires(flags | IN_ORDER), cm, **options)


@pytest.mark.parametrize("flags", [SEND, SEND | GET])
@pytest.mark.parametrize("size", [0, 1, SHORT, 168, 169, 255, LONG, 100_000])
@pytest.mark.parametrize("receive_first", [True, False])
def test_a_message_arrives_whichever_side_is_first(flags, size, receive_first):
    pair = portals(flags)
    left, right = pair.sides
    sent, received = payload(size), bytearray(size)
    if receive_first:
        receive = right.irecv(received, 5)
        settle(pair)
    send = left.isend(sent, 5)
    if not receive_first:
        settle(pair)
        assert send.complete == (size <= 168)  # figure 3: the kernel has it; figure 5: it waits to be read
        receive = right.irecv(received, 5)
    pair.run(send, receive)
    assert received == sent
    assert receive.result == (0, 5, 0, False, size)
    assert counts(right)["unexpected"] == (not receive_first)
    assert counts(right)["pulled"] == (not receive_first and size > 168)
    assert counts(right)["heap_used"] == counts(right)["heap_letters"] == 0
    assert all(side.pml.mtl.engine.owners(portal) == [] for side in pair.sides for portal in (0, 1, 2))


@pytest.mark.parametrize("flags", [SEND, SEND | GET])
def test_an_expected_long_message_is_moved_once_and_an_unexpected_one_only_when_it_is_asked_for(flags):
    for receive_first in (True, False):
        pair = portals(flags)
        left, right = pair.sides
        kernel = right.pml.mtl.engine.kernel
        received = bytearray(LONG)
        receives = [right.irecv(received, 1)] if receive_first else []
        send = left.isend(payload(LONG), 1)
        settle(pair)
        moved = kernel.statistics
        whole = LONG if receive_first else 0
        assert (moved["bytes_fetched"], moved["bytes_copied"]) == ((whole, 0) if flags & GET else (0, whole))
        receives = receives or [right.irecv(received, 1)]
        pair.run(send, *receives)
        moved = kernel.statistics
        assert moved["bytes_fetched"] + moved["bytes_copied"] == LONG
        assert received == payload(LONG)


@pytest.mark.parametrize("size", [SHORT, LONG])
@pytest.mark.parametrize("receive_first", [True, False])
def test_a_synchronous_message_is_acknowledged_once_it_is_matched(size, receive_first):
    pair = portals()
    left, right = pair.sides
    received = bytearray(size)
    if receive_first:
        receive = right.irecv(received, 2)
    send = left.isend(payload(size), 2, SYNCHRONOUS)
    if not receive_first:
        settle(pair)
        assert not send.complete
        receive = right.irecv(received, 2)
    assert not send.complete
    pair.run(send, receive)
    assert received == payload(size)


@pytest.mark.parametrize("flags", [SEND, SEND | GET])
@pytest.mark.parametrize("size", [SHORT, LONG])
@pytest.mark.parametrize("mode", [0, SYNCHRONOUS])
@pytest.mark.parametrize("receive_first", [True, False])
def test_a_sender_has_its_answers_and_its_credit_back_whenever_the_receive_is_abandoned(flags, size, mode, receive_first):
    pair = portals(flags, heap=16384)
    left, right = pair.sides
    taken = 0
    for steps in range(40):
        received = bytearray(size)
        if receive_first:
            receive = right.irecv(received, 5)
        send = left.isend(payload(size), 5, mode)
        if not receive_first:
            settle(pair)
            receive = right.irecv(received, 5)
        for _ in range(steps):
            pair.step()
        receive.abandon(received)
        before = bytes(received)
        if receive.result[3]:  # it was taken back before any message had come
            pair.run(right.irecv(bytearray(size), 5))
        else:
            taken += 1
        pair.run(send, receive)
        assert send.error is None
        assert received == before
    assert taken
    assert counts(right)["heap_used"] == counts(right)["heap_letters"] == 0
    assert all(side.pml.mtl.engine.owners(portal) == [] for side in pair.sides for portal in (0, 1, 2))
    sends = [left.isend(payload(SHORT), 4) for _ in range(10)]
    settle(pair)
    assert all(send.complete for send in sends)


@pytest.mark.parametrize("size", [SHORT, LONG])
@pytest.mark.parametrize("mode", [0, SYNCHRONOUS])
@pytest.mark.parametrize("receive_first", [True, False])
def test_a_message_arrives_as_it_was_whenever_its_send_is_abandoned(size, mode, receive_first):
    pair = portals()
    left, right = pair.sides
    for steps in range(40):
        sent, received = payload(size), bytearray(size)
        if receive_first:
            receive = right.irecv(received, 5)
        send = left.isend(sent, 5, mode)
        for _ in range(steps):
            pair.step()
        send.abandon(sent)
        sent[:] = bytes(size)
        if not receive_first:
            receive = right.irecv(received, 5)
        pair.run(send, receive)
        assert received == payload(size)
    assert all(side.pml.mtl.engine.owners(portal) == [] for side in pair.sides for portal in (0, 1, 2))


@pytest.mark.parametrize("size", [SHORT, LONG])
def test_a_ready_message_is_received_where_a_receive_is_posted(size):
    pair = portals()
    left, right = pair.sides
    received = bytearray(size)
    posted = [right.irecv(received, 2), right.pml.irecv_object(bytearray, 0, 3, right.comm)]
    pair.run(left.isend(payload(size), 2, READY), left.isend(payload(size), 3, READY), *posted)
    assert received == posted[1].buffer == payload(size)


def test_a_ready_message_without_a_receive_is_discarded_and_a_sender_that_waits_is_told():
    pair = portals()
    left, right = pair.sides
    short, long = left.isend(payload(SHORT), 2, READY), left.isend(payload(LONG), 2, READY)
    pair.run(short, long)
    assert short.error is None
    assert isinstance(long.error, MPIError)
    assert "a ready send of 5000 bytes to rank 1 with tag 2, but no receive was posted there" in str(long.error)
    assert counts(right)["ready_discarded"] == 2
    assert not right.pml.mtl.dump(right.comm)["unexpected"]


def test_short_and_long_unexpected_messages_are_received_in_the_order_in_which_they_were_sent():
    pair = portals()
    left, right = pair.sides
    sizes = [SHORT, LONG, 0, LONG, SHORT, LONG]
    sends = [left.isend(payload(size, number), 7) for number, size in enumerate(sizes)]
    settle(pair)
    assert right.pml.dump(right.comm)["unexpected"] == [(0, 7, size) for size in sizes]
    received = [bytearray(LONG) for _ in sizes]
    receives = [right.irecv(memory, 7) for memory in received]
    pair.run(*sends, *receives)
    assert [receive.result[4] for receive in receives] == sizes
    assert [bytes(memory[:size]) for memory, size in zip(received, sizes, strict=True)] == [
        bytes(payload(size, number)) for number, size in enumerate(sizes)
    ]


def test_a_message_longer_than_an_object_receive_expects_keeps_its_place_in_the_order():
    pair = portals()
    left, right = pair.sides
    receives = [right.pml.irecv_object(bytearray, 0, 1, right.comm) for _ in range(4)]
    sends = [left.isend(payload(size, size), 1) for size in (SHORT, LONG, 0, SHORT + 1)]
    pair.run(*sends, *receives)
    assert [len(receive.buffer) for receive in receives] == [SHORT, LONG, 0, SHORT + 1]
    assert counts(right)["unexpected"] == 0


def test_any_tag_takes_no_message_of_the_librarys_own():
    pair = portals()
    left, right = pair.sides
    receive = right.irecv(bytearray(8), -1)
    pair.run(left.isend(payload(8), -20))
    assert not receive.complete
    assert right.pml.dump(right.comm) == {"posted": [(0, -1)], "unexpected": [(0, -20, 8)]}
    pair.run(left.isend(payload(8), 0), receive)
    assert receive.result[1] == 0


@pytest.mark.parametrize("tag", [0, 1, 2**31 - 1, -(2**30)])
def test_every_tag_survives_its_32_bits(tag):
    pair = portals()
    left, right = pair.sides
    receive = right.irecv(bytearray(4), tag)
    pair.run(left.isend(payload(4), tag), receive)
    assert receive.result[:2] == (0, tag)


# -- flow control


def test_a_flood_waits_with_its_sender_and_the_heap_never_holds_more_than_it_may():
    heap = 32768
    pair = portals(heap=heap)
    left, right = pair.sides
    sends = [left.isend(payload(SHORT, number), 1) for number in range(2000)]
    settle(pair)
    assert 0 < sum(send.complete for send in sends) < 200
    assert counts(left)["stalled"]
    received = [bytearray(SHORT) for _ in sends]
    for number, memory in enumerate(received):
        pair.run(right.irecv(memory, 1))
        assert memory == payload(SHORT, number)
    pair.run(*sends)
    assert 0 < counts(right)["heap_most_used"] <= heap
    assert counts(right)["ready_discarded"] == 0


def test_the_librarys_messages_do_not_wait_behind_the_programs():
    pair = portals(heap=32768)
    left, right = pair.sides
    flood = [left.isend(payload(SHORT), 1) for _ in range(1000)]
    settle(pair)
    assert not all(send.complete for send in flood)
    pair.run(left.isend(payload(SHORT), -30), right.irecv(bytearray(SHORT), -30))


def test_credit_comes_back_for_messages_of_every_kind():
    seed = random.randrange(1 << 30)
    print("seed", seed)
    generator = random.Random(seed)
    pair = portals(heap=16384)
    left, right = pair.sides
    for _ in range(40):
        size, mode = generator.choice([0, 1, SHORT, 168, LONG]), generator.choice([0, SYNCHRONOUS])
        early = generator.random() < 0.5
        how = generator.choice(["memory", "object", "truncated", "probe"])
        count = generator.randrange(1, 12)
        sends, receives = [], []
        for step in (1, 0) if early else (0, 1):
            if step == 0:
                sends = [left.isend(payload(size), 4, mode) for _ in range(count)]
                if how == "probe":
                    settle(pair)
            elif how == "object":
                receives = [right.pml.irecv_object(bytearray, 0, 4, right.comm) for _ in range(count)]
            elif how == "probe" and not early:
                for _ in range(count):
                    message = right.pml.improbe(0, 4, right.comm)
                    while message is None:
                        pair.step()
                        message = right.pml.improbe(0, 4, right.comm)
                    receives.append(right.pml.imrecv_object(bytearray, message))
            else:
                length = size // 2 if how == "truncated" else size
                receives = [right.irecv(bytearray(length), 4) for _ in range(count)]
        pair.run(*sends, *receives)
    assert counts(right)["heap_used"] == 0
    sends = [left.isend(payload(SHORT), 4) for _ in range(10)]
    settle(pair)
    assert all(send.complete for send in sends)


def test_a_heap_too_small_for_its_senders_is_refused_with_a_number_that_would_do():
    with pytest.raises(MPIError, match=r"mtl_portals_heap: 1024 bytes among 2 processes are \d+ for each, and at least \d+"):
        portals(heap=1024)


def test_requests_beyond_the_table_are_an_error_that_says_what_to_set():
    pair = portals(requests=4)
    right = pair.sides[1]
    for _ in range(12):
        right.irecv(bytearray(1), 1)
    with pytest.raises(MPIError, match="mtl_portals_requests"):
        right.irecv(bytearray(1), 1)


# -- contexts


def late(pair: Pair, context: int) -> list[Communicator]:
    made = []
    for side in pair.sides:
        set_this_process(side.rank)
        made.append(Communicator(context, make_group([0, 1]), None, "late"))
    return made


def test_a_message_waits_until_the_receiver_has_numbered_its_communicator():
    pair = portals()
    left, right = pair.sides
    ours, theirs = late(pair, 99)
    left.pml.add_comm(ours)
    for number in range(3):  # so that the two sides count differently
        right.pml.add_comm(late(pair, 1000 + number)[1])
    left.comm = ours
    sends = [left.isend(payload(size), 1) for size in (20, LONG)]
    settle(pair)
    assert not any(send.complete for send in sends)
    right.pml.add_comm(theirs)
    right.comm = theirs
    received = [bytearray(20), bytearray(LONG)]
    pair.run(*sends, *[right.irecv(memory, 1) for memory in received])
    assert received == [payload(20), payload(LONG)]
    assert ours.pml.number != theirs.pml.number


def test_a_number_is_used_again_only_after_all_others_and_with_nothing_left_of_its_communicator():
    pair = portals()
    right = pair.sides[1]
    set_this_process(1)
    numbers = []
    for context in range(100, 100 + 8300):
        comm = Communicator(context, make_group([0, 1]), None, "short-lived")
        right.pml.add_comm(comm)
        numbers.append(comm.pml.number)
        right.pml.del_comm(comm)
    assert len(set(numbers[:8188])) == 8188
    assert numbers[8188:] == numbers[:112]


def test_a_process_with_more_communicators_than_13_bits_can_name_is_told_so():
    pair = portals()
    right = pair.sides[1]
    set_this_process(1)
    # Three numbers are never handed out, and the pair has a communicator already.
    for context in range(100, 100 + 8192 - 3 - 1):
        right.pml.add_comm(Communicator(context, make_group([0, 1]), None, ""))
    with pytest.raises(MPIError, match="13 bits for a communicator: this process has 8191"):
        right.pml.add_comm(Communicator(99, make_group([0, 1]), None, ""))


def test_what_was_not_received_goes_with_its_communicator():
    pair = portals()
    left, right = pair.sides
    pair.run(*[left.isend(payload(SHORT), 1) for _ in range(5)])
    assert counts(right)["heap_letters"] == 5
    right.pml.del_comm(right.comm)
    assert counts(right)["heap_letters"] == counts(right)["heap_used"] == 0


def test_a_wire_without_order_is_refused_with_words():
    pair = Pair(lambda: [WireBtl("loose", flags=SEND, **LIMITS)], cm)
    with pytest.raises(MPIError, match="portals need a btl that keeps messages in order") as caught:
        pair.sides[0].isend(payload(5), 1)
    assert caught.value.code == ERR_OTHER


def test_typed_memory_is_read_from_a_packed_copy_as_well():
    vector = BYTE.create_vector(100, 30, 70)
    pair = portals(GET | SEND)
    left, right = pair.sides
    memory = payload(vector.extent)
    send = left.isend(memory, 1, typemap=vector, count=1)
    settle(pair)
    spread = bytearray(len(memory))
    pair.run(send, right.irecv(spread, 1, typemap=vector, count=1))
    assert all(spread[at : at + 30] == memory[at : at + 30] for at in range(0, 7000, 70))
    assert not any(spread[at + 30 : at + 70] != bytes(len(spread[at + 30 : at + 70])) for at in range(0, 7000, 70))


class RaisingBtl(WireBtl):
    """One of whose packets raises."""

    def __init__(self, number: int) -> None:
        super().__init__("raising", **LIMITS)
        self.flags = SEND | IN_ORDER
        self.left = number

    def send(self, endpoint, descriptor, tag):
        self.left -= 1
        if self.left == 0:
            raise ZeroDivisionError("this packet was to raise")
        return super().send(endpoint, descriptor, tag)


@pytest.mark.parametrize("number", range(1, 16))
@pytest.mark.parametrize("size", [SHORT, LONG])
@pytest.mark.parametrize("receive_first", [True, False])
def test_a_packet_for_which_a_transport_raises_ends_contact(number, size, receive_first):
    """Its place in the order stays empty: whatever came after it would be taken for something else."""
    ends = iter([RaisingBtl(number), RaisingBtl(0)])
    pair = Pair(lambda: [next(ends)], cm)
    left, right = pair.sides
    memory = [bytearray(size) for _ in range(4)]
    receives = [left.irecv(memory[0], 1), left.irecv(memory[1], 1)]
    theirs = [right.isend(payload(size, 1), 1)]
    if receive_first:
        theirs += [right.irecv(memory[2], 2), right.irecv(memory[3], 2)]
        settle(pair)
    sends = []
    for seed in (2, 3):
        try:
            sends.append(left.isend(payload(size, seed), 2, SYNCHRONOUS))
        except MPIError:
            assert receives[1].error is not None  # it is over already
    settle(pair)
    if not receive_first:
        theirs += [right.irecv(memory[2], 2), right.irecv(memory[3], 2)]
        settle(pair)
    raised = left.btls[0].left <= 0
    # The second receive is for what nobody has sent.
    assert all(request.complete for request in (*sends, receives[0]))
    assert receives[1].complete == raised
    if not raised:
        assert memory == [payload(size, 1), bytearray(size), payload(size, 2), payload(size, 3)]
        return
    for seed, send, received in zip((2, 3), sends, memory[2:], strict=False):
        assert received == payload(size, seed) or send.error is not None
    assert memory[0] == payload(size, 1) or receives[0].error is not None
    with pytest.raises(MPIError, match=r"contact with node 1 is over: .*raising raised ZeroDivisionError for one: this packet"):
        raise receives[1].error
    with pytest.raises(MPIError, match="contact with node 1 is over"):
        left.isend(payload(size), 3)
    right.pml.peer_lost(process_table().get(0), "it has ended")
    settle(pair)
    assert all(request.complete for request in theirs)


class UnreadableBtl(WireBtl):
    """One that reads peers' memory, until it raises."""

    def get(self, endpoint, descriptor):
        raise ZeroDivisionError("this get was to raise")


@pytest.mark.parametrize("lacks", ["registrations", "gets"])
@pytest.mark.parametrize("receive_first", [True, False])
def test_a_body_that_can_t_be_offered_or_read_is_sent(lacks, receive_first):
    def end() -> list[WireBtl]:
        kind, most = (WireBtl, 0) if lacks == "registrations" else (UnreadableBtl, 1 << 30)
        btl = kind("reading", most_registered=most, **LIMITS)
        btl.flags = SEND | IN_ORDER | GET | NEEDS_REGISTRATION
        return [btl]

    pair = Pair(end, cm)
    left, right = pair.sides
    received = bytearray(LONG)
    receive = right.irecv(received, 5) if receive_first else None
    send = left.isend(payload(LONG), 5)
    settle(pair)
    receive = receive or right.irecv(received, 5)
    pair.run(send, receive)
    assert received == payload(LONG)
    assert not any(side.btls[0].registered for side in pair.sides)
