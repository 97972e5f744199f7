"""Capabilities, bounds, and what one process can do to others."""

from __future__ import annotations

import pytest
from ompy_puma.application import Application
from ompy_puma.capability import GroupCapability, PortalCapability
from ompy_puma.descriptor import READ, SENDER_OFFSET
from ompy_puma.transmission import SendVerdict
from puma_machine import GROUP, OWN, Machine, drops


def outsider(machine: Machine, node: int = 0) -> Application:
    """A process of a group of its own, without any capability."""
    process = Application(GROUP + 1, 0)
    machine.kernels[node].create_context(process)
    return process


@pytest.mark.parametrize("capability", [-1, 0, 1, 1 << 20])
def test_a_process_without_the_capability_delivers_nothing(machine, receiver, capability):
    receiver.attach(0, receiver.single(bytearray(4)))
    process = outsider(machine)
    assert process.send(capability, 1, 0, b"x") == SendVerdict.REFUSED
    assert process.send_server(capability, b"x") == SendVerdict.REFUSED
    assert machine.network.packets() == []
    assert process.refused == 2
    assert receiver.events == []


def test_a_group_capability_leads_to_any_portal_of_any_member():
    machine = Machine(3)
    process = outsider(machine)
    group = process.grant(GroupCapability(GROUP, [(node, 1) for node in range(3)]))
    for rank in range(3):
        for portal in (0, 63):
            machine.processes[rank].attach(portal, machine.processes[rank].single(bytearray(1)))
            assert process.send(group, rank, portal, b"x") == SendVerdict.SENT
    machine.run()
    assert [len(member.events) for member in machine.processes] == [2, 2, 2]


def test_a_group_capability_leads_to_no_rank_outside_the_group(machine, sender):
    for rank in (2, 1 << 31, (1 << 32) - 1):
        assert sender.send(OWN, rank, 0, b"x") == SendVerdict.REFUSED


def test_a_portal_capability_leads_to_one_portal_whatever_the_sender_says(machine, receiver):
    memories = [bytearray(4) for _ in range(3)]
    for portal, memory in enumerate(memories):
        receiver.attach(portal, receiver.single(memory))
    process = outsider(machine)
    server = process.grant(PortalCapability(GROUP, 1, 1, 2))
    assert process.send(server, 1, 0, b"x") == SendVerdict.REFUSED
    process.send_server(server, b"ok")
    machine.run()
    assert memories == [bytes(4), bytes(4), b"ok\0\0"]


def test_a_group_capability_is_none_for_a_server(machine, sender):
    assert sender.send_server(OWN, b"x") == SendVerdict.REFUSED


def test_a_capability_that_was_taken_back_is_worth_nothing(machine, sender, receiver):
    receiver.attach(0, receiver.single(bytearray(4)))
    sender.revoke(OWN)
    assert sender.send(OWN, 1, 0, b"x") == SendVerdict.REFUSED


def test_the_right_to_send_is_not_returned(machine, receiver):
    """Only who asked gains the right (Puma, 2): the other group gains none by being sent to."""
    process = outsider(machine)
    process.grant(GroupCapability(GROUP, [(0, 1), (1, 1)]))
    assert receiver.send(OWN + 1, 0, 0, b"x") == SendVerdict.REFUSED


def test_a_process_sends_no_memory_but_its_own(machine):
    memory = bytearray(b"mine alone")
    process = Application(GROUP, 0, memory=())
    machine.kernels[0].delete_context(machine.processes[0])
    machine.kernels[0].create_context(process, 1)
    process.grant(GroupCapability(GROUP, [(0, 1), (1, 1)]))
    assert process.send(OWN, 1, 0, memory) == SendVerdict.REFUSED
    assert process.send(OWN, 1, 0) == SendVerdict.SENT


def test_a_process_bounds_what_it_queues():
    machine = Machine(capacity=4, arrays={"queue_limit": 10})
    sender, receiver = machine.processes
    receiver.attach(0, receiver.single(bytearray(100)))
    verdicts = [sender.send(OWN, 1, 0, b"x") for _ in range(30)]
    assert verdicts[:4] == [SendVerdict.SENT] * 4
    assert verdicts[14:] == [SendVerdict.OUT_OF_RESOURCE] * 16
    machine.run()
    assert len(receiver.events) == 14
    assert sender.send(OWN, 1, 0, b"x") == SendVerdict.SENT


def test_what_one_process_queues_takes_no_room_from_another():
    machine = Machine(capacity=4, arrays={"queue_limit": 10})
    receiver = machine.processes[1]
    receiver.attach(0, receiver.single(bytearray(100)))
    while machine.processes[0].send(OWN, 1, 0, b"x") != SendVerdict.OUT_OF_RESOURCE:
        pass
    neighbour = outsider(machine)
    neighbour.grant(GroupCapability(GROUP, [(0, 1), (1, 1)]))
    assert neighbour.send(OWN, 1, 0, b"y") != SendVerdict.OUT_OF_RESOURCE
    machine.run()
    assert receiver.events[-1].message.source_group == GROUP + 1


def test_replies_that_nobody_takes_are_bounded():
    """A process is asked faster than the wire takes its replies: the rest of the requests is dropped, and it is told."""
    machine = Machine(capacity=4, arrays={"queue_limit": 10})
    sender, receiver = machine.processes
    inbox = bytearray(8)
    sender.attach(9, sender.single(inbox, options=SENDER_OFFSET))
    receiver.attach(0, receiver.single(b"12345678", READ, 0, SENDER_OFFSET))
    sender.send(OWN, 1, 0, answer=9, answer_length=8)
    [(_, _, request)] = machine.network.packets()
    machine.run()
    for _ in range(40):
        machine.kernels[1].receive_packet(request)
    assert drops(receiver) == ["RESOURCES"] * 26
    machine.run()
    assert inbox == b"12345678"
    assert len(sender.events) == 1 + 4 + 10


def test_a_flood_harms_only_the_portals_it_may_send_to(machine, sender, receiver):
    """A client with the right to one portal fills it; others' portals and their messages are as before."""
    flooded, spared = bytearray(50), bytearray(50)
    receiver.attach(0, receiver.single(flooded))
    receiver.attach(1, receiver.single(spared))
    client = outsider(machine)
    server = client.grant(PortalCapability(GROUP, 1, 1, 0))
    for _ in range(1000):
        client.send_server(server, b"flood")
        machine.run()
        sender.send(OWN, 1, 1, b"") if spared[49] else sender.send(OWN, 1, 1, b"s")
        machine.run()
    assert flooded == b"flood" * 10
    assert spared == b"s" * 50
    assert receiver.portal_counters(0) == (10, 990)
    assert receiver.portal_counters(1) == (1000, 0)
    assert all(event.portal == 0 for event in receiver.events if event.reason)
