"""Bodies longer than a packet: in pieces, or fetched by the receiving kernel."""

from __future__ import annotations

from mmap import mmap

import pytest
from ompy_puma.application import Application, Queued
from ompy_puma.capability import GroupCapability
from ompy_puma.descriptor import ACKNOWLEDGE, READ, SAVE_BODY, SAVE_HEADER, SENDER_OFFSET, TRUNCATE, WRITE
from ompy_puma.heap import LETTER_ARRIVING, LETTER_LOST, LETTER_WHOLE
from puma_machine import OWN, Machine, drops, kinds

from ompy.core.errors import ERR_PROC_FAILED, MPIError

BODY = bytes(range(251)) * 80  # 20,080 bytes
WAYS = {
    "in pieces": {},
    "fetched": {"can_fetch": True},
    "in pieces after a fetch failed": {"can_fetch": True, "fail_fetches": True},
    "in pieces over a wire that is often full": {"capacity": 1},
}


@pytest.fixture(params=WAYS.values(), ids=WAYS.keys())
def machine(request) -> Machine:
    return Machine(packet_size=1000, eager_size=500, **request.param)


def test_a_long_body_reaches_a_single_block(machine, sender, receiver):
    memory = bytearray(len(BODY))
    receiver.attach(0, receiver.single(memory))
    verdict = machine.send(0, BODY)
    assert memory == BODY
    assert kinds(receiver) == ["MATCHED", "DEPOSITED"]
    assert not isinstance(verdict, Queued) or verdict.status == 0


def test_a_long_body_flows_over_buffers(machine, receiver):
    memories = [bytearray(size) for size in (1, 700, 0, 3000, 16379)]
    receiver.attach(0, receiver.combined(memories))
    machine.send(0, BODY)
    assert b"".join(memories) == BODY


def test_a_long_body_is_kept_in_a_heap_in_its_place_in_the_order(machine, sender, receiver, heap):
    block = receiver.dynamic(heap)
    receiver.attach(0, block)
    sender.send(OWN, 1, 0, b"before")
    sender.send(OWN, 1, 0, BODY)
    sender.send(OWN, 1, 0, b"after")
    machine.run()
    assert [letter.body for letter in receiver.letters(block)] == [b"before", BODY, b"after"]
    assert [letter.state for letter in receiver.letters(block)] == [LETTER_WHOLE] * 3


def test_of_a_long_message_the_header_alone_may_be_saved(machine, sender, receiver, heap):
    block = receiver.dynamic(heap, SAVE_HEADER)
    receiver.attach(0, block)
    verdict = machine.send(0, BODY)
    assert receiver.letters(block)[0].message.length == len(BODY)
    assert kinds(receiver) == ["DEPOSITED"]
    assert not isinstance(verdict, Queued) or verdict.status == 0


def test_a_dropped_long_message_does_not_keep_its_sender(machine, sender, receiver):
    verdict = machine.send(5, BODY)
    assert drops(receiver) == ["EMPTY_PORTAL"]
    assert not isinstance(verdict, Queued) or verdict.status == 0
    memory = bytearray(4)
    receiver.attach(0, receiver.single(memory))
    machine.send(0, b"next")
    assert memory == b"next"


def test_a_long_body_may_be_cut_off(machine, receiver):
    memory = bytearray(1500)
    receiver.attach(0, receiver.single(memory, WRITE, SAVE_BODY, TRUNCATE))
    machine.send(0, BODY)
    assert memory == BODY[:1500]
    assert receiver.events[-1].length == 1500


def test_a_long_message_is_acknowledged_when_it_is_whole(machine, sender, receiver):
    sender.attach(9, sender.single(bytearray(0)))
    receiver.attach(0, receiver.single(bytearray(len(BODY)), WRITE, SAVE_BODY, ACKNOWLEDGE))
    machine.send(0, BODY, answer=9)
    assert sender.events[-1].message.return_length == len(BODY)


def test_long_stretches_of_memory_are_read(machine, sender, receiver):
    inbox = bytearray(len(BODY))
    sender.attach(9, sender.single(inbox, options=SENDER_OFFSET))
    receiver.attach(0, receiver.single(BODY, READ, 0, SENDER_OFFSET))
    machine.send(0, offset=100, answer=9, answer_length=15000, answer_offset=50)
    assert inbox[50:15050] == BODY[100:15100]
    assert kinds(receiver) == ["READ"]


def test_long_stretches_are_gathered(machine, sender, receiver):
    inbox = bytearray(len(BODY))
    sender.attach(9, sender.single(inbox))
    receiver.attach(0, receiver.combined([BODY[:7000], BODY[7000:7001], BODY[7001:]], READ))
    machine.send(0, answer=9, answer_length=len(BODY))
    assert inbox == BODY
    assert kinds(receiver) == ["READ"]


def test_short_messages_behind_a_long_one_do_not_overtake_it(machine, sender, receiver):
    memories = [bytearray(len(BODY)), bytearray(1), bytearray(1)]
    block = receiver.independent(memories)
    receiver.attach(0, block)
    for body in (BODY, b"1", b"2"):
        sender.send(OWN, 1, 0, body)
    machine.run()
    assert memories == [BODY, b"1", b"2"]


def test_memory_that_was_abandoned_is_not_written_any_more(machine, sender, receiver):
    memory = bytearray(len(BODY))
    block = receiver.single(memory)
    receiver.attach(0, block)
    receiver.watcher = lambda happening: receiver.discard(block) if happening.kind.name == "EVENT_MATCHED" else None
    verdict = machine.send(0, BODY)
    assert memory == bytes(len(BODY))
    assert kinds(receiver) == ["MATCHED", "LOST"]
    assert machine.kernels[1].statistics["incoming"] == 0
    assert not isinstance(verdict, Queued) or verdict.status == 0


def test_messages_of_many_senders_arrive_at_once():
    machine = Machine(5, packet_size=1000)
    receiver = machine.processes[0]
    memories = [bytearray(len(BODY)) for _ in range(4)]
    for rank, memory in enumerate(memories, 1):
        receiver.append(0, receiver.entry(receiver.single(memory), source_rank=rank))
        machine.processes[rank].send(OWN, 0, 0, BODY[rank:] + BODY[:rank])
    machine.run()
    assert memories == [BODY[rank:] + BODY[:rank] for rank in range(1, 5)]


def test_a_body_that_is_fetched_is_copied_once():
    machine = Machine(can_fetch=True)
    receiver = machine.processes[1]
    receiver.attach(0, receiver.single(bytearray(len(BODY))))
    machine.send(0, BODY)
    statistics = machine.kernels[1].statistics
    assert (statistics["bytes_fetched"], statistics["bytes_copied"]) == (len(BODY), 0)
    assert machine.network.carried == 2  # the offer, and the word that it was fetched


def test_nothing_is_moved_of_a_long_message_that_is_dropped():
    machine = Machine(can_fetch=True)
    machine.send(0, BODY)
    statistics = machine.kernels[1].statistics
    assert (statistics["bytes_fetched"], statistics["bytes_copied"]) == (0, 0)


def half_arrived() -> tuple[Machine, Application, Application, int, Queued]:
    """A long message of which the header and two pieces have arrived in a heap."""
    machine = Machine(packet_size=1000, capacity=3)
    sender, receiver = machine.processes
    block = receiver.dynamic(mmap(-1, 1 << 16))
    receiver.attach(0, block)
    verdict = sender.send(OWN, 1, 0, BODY)
    for _ in range(3):
        machine.network.step()
    assert receiver.letters(block)[0].state == LETTER_ARRIVING
    return machine, sender, receiver, block, verdict


def test_when_the_sender_is_lost_the_half_message_is_told_as_lost():
    machine, _, receiver, block, _ = half_arrived()
    machine.kernels[1].peer_lost(0, MPIError(ERR_PROC_FAILED, "node 0 is gone"))
    assert kinds(receiver) == ["MATCHED", "LOST"]
    assert receiver.letters(block)[0].state == LETTER_LOST
    assert machine.kernels[1].statistics["incoming"] == 0


def test_when_the_receiver_is_lost_the_sender_is_told_and_further_sends_fail():
    machine, sender, _, _, verdict = half_arrived()
    machine.kernels[0].peer_lost(1, MPIError(ERR_PROC_FAILED, "node 1 is gone"))
    assert verdict.status == ERR_PROC_FAILED
    assert machine.kernels[0].settled()
    with pytest.raises(MPIError, match="node 1 is gone"):
        sender.send(OWN, 1, 0, b"x")


def test_when_a_process_ends_what_still_comes_for_it_is_thrown_away():
    machine, _, receiver, _, verdict = half_arrived()
    machine.kernels[1].delete_context(receiver)
    machine.run()
    assert machine.kernels[1].statistics["incoming"] == 0
    assert verdict.status == 0


def test_an_answer_to_a_node_that_does_not_exist_is_told(machine, receiver):
    """A trusted kernel would not say so; one that errs harms nobody."""
    far = Machine(3)
    stranger = far.processes[2]
    stranger.grant(GroupCapability(1, [(0, 1), (1, 1), (2, 1)]))
    receiver.attach(0, receiver.single(BODY, READ))
    stranger.send(OWN, 1, 0, answer=9, answer_length=10)
    [(_, _, packet)] = far.network.packets()
    machine.kernels[1].receive_packet(packet)
    machine.run()
    assert drops(receiver) == ["NO_REPLY"]
