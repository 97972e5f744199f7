"""Memory that its owner wants back while messages out of it, or into it, are under way."""

from __future__ import annotations

import pytest
from ompy_puma.application import Application, Queued
from ompy_puma.descriptor import READ, SENDER_OFFSET
from puma_machine import OWN, Machine, drops, kinds

from ompy.core.errors import ERR_PROC_FAILED, MPIError

SHORT = bytes(range(250))
LONG = bytes(range(251)) * 80
PIECES = LONG[:1500]
FULL = {"packet_size": 1000, "eager_size": 500, "capacity": 1}
# How far a message is: (network, body, whether another one is in its way)
STAGES = {
    "whole, in the queue": (FULL, SHORT, True),
    "in pieces, in the queue": (FULL, LONG, True),
    "in pieces, some of them out": ({"packet_size": 1000, "capacity": 3}, LONG, False),
    "an offer, in the queue": ({**FULL, "can_fetch": True}, LONG, True),
    "an offer that nobody has answered": ({"can_fetch": True}, LONG, False),
}


def stages(function):
    return pytest.mark.parametrize(("network", "body", "blocked"), STAGES.values(), ids=STAGES.keys())(function)


def called_back(machine: Machine, node: int) -> list:
    return machine.kernels[node].wire.called_back


def overwrite(memory: bytearray) -> None:
    memory[:] = b"\xee" * len(memory)


@stages
def test_a_message_that_is_set_aside_arrives_as_it_was(network, body, blocked):
    machine = Machine(**network)
    sender, receiver = machine.processes
    inbox = bytearray(len(body))
    receiver.attach(0, receiver.single(bytearray(5)))
    receiver.attach(1, receiver.single(inbox))
    if blocked:
        sender.send(OWN, 1, 0, b"first")
    memory = bytearray(body)
    verdict = sender.send(OWN, 1, 1, memory)
    assert isinstance(verdict, Queued)
    assert sender.set_aside(1, memory)
    overwrite(memory)
    machine.run()
    assert inbox == body
    assert verdict.status == 0
    assert called_back(machine, 0) == []
    assert machine.kernels[0].settled()


@stages
@pytest.mark.parametrize("gathered", [False, True])
def test_a_reply_that_is_set_aside_arrives_as_it_was(network, body, blocked, gathered):
    machine = Machine(**network)
    asker, owner = machine.processes
    inbox = bytearray(len(body))
    memory = bytearray(body)
    parts = [memoryview(memory)[:77], memoryview(memory)[77:]]
    asker.attach(0, asker.single(bytearray(5)))
    asker.attach(1, asker.single(inbox))
    owner.attach(0, owner.combined(parts, READ) if gathered else owner.single(memory, READ))
    asker.send(OWN, 1, 0, answer=1, answer_length=len(body))
    if blocked:
        owner.send(OWN, 0, 0, b"first")
    machine.network.step()
    assert owner.set_aside(0, memory)
    overwrite(memory)
    machine.run()
    assert inbox == body
    assert kinds(owner) == ["READ"]
    assert called_back(machine, 1) == []


def test_an_offer_is_called_back_only_until_its_message_is_over():
    machine = Machine(can_fetch=True)
    sender, receiver = machine.processes
    memory = bytearray(LONG)
    receiver.attach(0, receiver.single(bytearray(len(LONG))))
    sender.send(OWN, 1, 0, memory)
    assert sender.set_aside(1, memory)
    assert len(called_back(machine, 0)) == 1
    machine.run()
    machine.send(0, memory)
    statistics = machine.kernels[1].statistics
    assert (statistics["bytes_copied"], statistics["bytes_fetched"]) == (len(LONG), 0)  # the second one did not fit
    receiver.attach(1, receiver.single(bytearray(len(LONG))))
    machine.send(1, memory)
    assert machine.kernels[1].statistics["bytes_fetched"] == len(LONG)


def test_when_the_receiver_is_lost_a_message_that_was_set_aside_fails_and_gives_its_memory_back():
    machine = Machine(can_fetch=True)
    sender = machine.processes[0]
    memory = bytearray(LONG)
    verdict = sender.send(OWN, 1, 0, memory)
    assert sender.set_aside(1, memory)
    machine.kernels[0].peer_lost(1, MPIError(ERR_PROC_FAILED, "node 1 is gone"))
    assert verdict.status == ERR_PROC_FAILED
    assert called_back(machine, 0) == []


def test_a_wire_that_cannot_call_back_an_offer_says_so():
    machine = Machine(can_fetch=True, calls_back=False)
    sender = machine.processes[0]
    memory = bytearray(LONG)
    sender.send(OWN, 1, 0, memory)
    assert not sender.set_aside(1, memory)
    assert sender.set_aside(1, bytearray(8))  # of other memory it needs not


def test_only_what_goes_to_that_node_out_of_that_memory_is_set_aside():
    machine = Machine(3, **FULL)
    sender, near, far = machine.processes
    memory, other = bytearray(LONG), bytearray(LONG)
    inboxes = [bytearray(len(LONG)) for _ in range(3)]
    near.attach(0, near.single(bytearray(5)))
    far.attach(0, far.single(bytearray(5)))
    near.attach(1, near.single(inboxes[0]))
    near.attach(2, near.single(inboxes[1]))
    far.attach(1, far.single(inboxes[2]))
    for target, portal, body in ((1, 0, b"first"), (2, 0, b"first"), (1, 1, memory), (1, 2, other), (2, 1, memory)):
        sender.send(OWN, target, portal, body)
    assert sender.set_aside(1, memory)
    overwrite(memory)
    overwrite(other)
    machine.run()
    assert inboxes == [LONG, other, memory]


# -- memory that a node may not touch


@pytest.fixture
def three() -> Machine:
    return Machine(3, packet_size=1000, capacity=3)


def exposed(owner: Application, memory: bytearray) -> None:
    """To be written at portal 0 and read at portal 1."""
    owner.append(0, owner.entry(owner.single(memory, options=SENDER_OFFSET), mask=0))
    owner.append(1, owner.entry(owner.single(memory, READ, 0, SENDER_OFFSET), mask=0))


def test_memory_that_was_taken_back_from_a_node_is_neither_written_nor_read_by_it(three):
    asker, owner, other = three.processes
    memory, inbox, others = bytearray(LONG), bytearray(100), bytearray(100)
    exposed(owner, memory)
    asker.attach(9, asker.single(inbox, options=SENDER_OFFSET))
    other.attach(9, other.single(others, options=SENDER_OFFSET))
    stretch = memoryview(memory)[1000:1200]
    assert owner.take_back(0, stretch)
    three.send(0, b"w", offset=1000)
    three.send(0, b"w" * 500, offset=501)
    three.send(1, offset=1199, answer=9, answer_length=100)
    assert drops(owner) == ["INVALID"] * 3
    assert memory == LONG
    assert inbox == bytes(100)
    three.send(0, b"w" * 10, offset=990)  # beside it
    three.send(1, offset=1200, answer=9, answer_length=100)
    three.send(1, source=2, offset=1050, answer=9, answer_length=100)  # another node
    assert memory[990:1000] == b"w" * 10
    assert inbox == LONG[1200:1300]
    assert others == LONG[1050:1150]
    owner.give_back(0, stretch)
    three.send(0, b"again", offset=1000)
    assert memory[1000:1005] == b"again"


def test_what_was_on_its_way_into_memory_that_was_taken_back_is_thrown_away(three):
    sender, owner, _ = three.processes
    memory = bytearray(len(LONG))
    exposed(owner, memory)
    sender.send(OWN, 1, 0, LONG)
    three.network.step()
    three.network.step()
    assert owner.take_back(0, memory)
    overwrite(memory)
    three.run()
    assert memory == b"\xee" * len(LONG)
    assert kinds(owner) == ["MATCHED", "LOST"]
    assert three.kernels[1].statistics["incoming"] == 0


def test_an_answer_to_the_owners_own_question_lands_in_memory_that_was_taken_back(three):
    source, owner, _ = three.processes
    memory = bytearray(len(LONG))
    source.attach(0, source.single(LONG, READ))
    owner.attach(0, owner.single(memory))
    assert owner.take_back(0, memory)
    owner.send(OWN, 0, 0, answer=0, answer_length=len(LONG))
    three.run()
    assert memory == LONG


def test_memory_is_taken_back_as_often_as_it_is_given_back(three):
    _, owner, _ = three.processes
    memory = bytearray(10)
    exposed(owner, memory)
    for _ in range(20):
        assert owner.take_back(0, memory)
    for _ in range(19):
        owner.give_back(0, memory)
    three.send(0, b"w")
    assert drops(owner) == ["INVALID"]
    owner.give_back(0, memory)
    three.send(0, b"w")
    assert memory[:1] == b"w"


def test_who_discards_a_descriptor_hears_how_many_replies_out_of_it_are_under_way():
    """One to another node ends before older ones, and their places in the queue are used again."""
    machine = Machine(3, packet_size=1000, capacity=4)
    owner, others = machine.processes[1], (machine.processes[0], machine.processes[2])
    for asker in others:
        asker.attach(9, asker.independent([bytearray(len(LONG)) for _ in range(9)]))
    for turn in range(3):
        blocks = [owner.single(bytearray(body), READ, 0, SENDER_OFFSET) for body in (LONG, PIECES, LONG)]
        for place, block in enumerate(blocks):
            owner.attach(3 * turn + place, block)
        questions = [(0, 0, LONG), (0, 2, LONG), (0, 0, LONG), (1, 1, PIECES)]
        for asker, place, body in questions:
            others[asker].send(OWN, 1, 3 * turn + place, answer=9, answer_length=len(body))
        for _ in questions:
            machine.network.step()
        assert [owner.discard(block) for block in blocks] == [2, 0, 1]
        machine.run()
