"""What an owner is told, and the counters that it can watch instead."""

from __future__ import annotations

import pytest
from ompy_puma.application import Application
from ompy_puma.pct import ProcessControlThread
from puma_machine import Machine, drops, kinds

from ompy.core.errors import MPIError

ARRIVAL, DROP, SENT = 1, 2, 4


def test_counters_of_a_descriptor_are_never_set_back(machine, receiver):
    block = receiver.single(bytearray(4))
    receiver.attach(0, block)
    machine.send(0, b"abc")
    machine.send(0, b"abc")
    receiver.rewind(block)
    machine.send(0, b"ab")
    counters = receiver.counters(block)
    assert (counters["messages"], counters["bytes"], counters["dropped"]) == (2, 5, 1)


def test_an_events_owner_is_the_entrys(machine, receiver):
    receiver.append(0, receiver.entry(receiver.single(bytearray(4)), 7, owner=0xFEDCBA9876543210))
    machine.send(0, b"x", match_bits=7)
    [event] = receiver.events
    assert event.owner == 0xFEDCBA9876543210
    assert (event.portal, event.entry, event.length, event.message.source_rank) == (0, 0, 1, 0)


def test_signals_are_set_by_the_kernel_and_cleared_by_the_process(machine, receiver):
    receiver.attach(0, receiver.single(bytearray(1)))
    machine.send(0, b"x")
    assert receiver.clear_signals() == ARRIVAL
    machine.send(0, b"x")
    assert receiver.clear_signals() == DROP
    assert receiver.clear_signals() == 0


def test_a_drop_is_counted_at_descriptor_portal_and_process(machine, receiver):
    block = receiver.single(bytearray(2))
    receiver.attach(3, block)
    for body in (b"a", b"abc", b"b"):
        machine.send(3, body)
    assert receiver.portal_counters(3) == (2, 1)
    assert receiver.counters(block)["dropped"] == 1
    assert receiver.counters(block)["last_drop"].name == "DROP_TOO_LONG"
    assert sum(receiver.drop_counts.values()) == 1


def test_an_owner_may_send_while_it_is_told(machine, sender, receiver):
    """A ball between two processes, each throw made inside the kernel's call."""
    throws = []

    def throw(process, target):
        def watch(happening):
            throws.append(process.rank)
            if len(throws) < 6:
                process.send(0, target, 0)

        return watch

    for process, target in ((sender, 1), (receiver, 0)):
        process.attach(0, process.single(bytearray(0)))
        process.watcher = throw(process, target)
    machine.send(0)
    assert throws == [1, 0, 1, 0, 1, 0]


def test_an_owner_may_take_the_entry_away_while_it_is_told(machine, receiver):
    memories = [bytearray(1), bytearray(1)]
    for memory in memories:
        receiver.append(0, receiver.entry(receiver.single(memory), mask=0, invalid=-1))
    receiver.watcher = lambda happening: receiver.forget(happening.entry) if happening.entry >= 0 else None
    machine.send(0, b"a")
    machine.send(0, b"b")
    machine.send(0, b"c")
    assert memories == [b"a", b"b"]
    assert drops(receiver)[0] == "NO_MATCH"


def test_what_reaches_no_process_is_told_to_the_nodes_pct():
    machine = Machine()
    pct = ProcessControlThread(machine.kernels[1], [0, 1])
    pct.events, pct.watcher = [], None
    machine.kernels[1].delete_context(machine.processes[1])
    machine.send(0, b"x")
    assert drops(pct) == ["NO_PROCESS"]
    machine.kernels[1].receive_packet(b"nonsense")
    assert drops(pct) == ["NO_PROCESS", "MALFORMED"]
    assert sum(machine.kernels[1].statistics["drops"].values()) == 2


def test_a_message_for_another_group_is_dropped(machine, receiver):
    machine.kernels[1].delete_context(receiver)
    other = Application(99, 1)
    machine.kernels[1].create_context(other, 1)
    other.attach(0, other.single(bytearray(4)))
    machine.send(0, b"x")
    assert drops(other) == ["GROUP"]
    assert kinds(other) == ["DROPPED"]


@pytest.mark.parametrize("index", [-1, 1 << 20, -(1 << 31)])
def test_an_index_of_nothing_is_an_error_that_names_it(receiver, index):
    for call, what in (
        (receiver.discard, "descriptor"),
        (receiver.counters, "descriptor"),
        (receiver.rewind, "descriptor"),
        (receiver.overlay, "descriptor"),
        (receiver.letters, "descriptor"),
        (receiver.heap_use, "descriptor"),
        (lambda at: receiver.buffer(receiver.independent([bytearray(1)]), at), "number"),
        (lambda at: receiver.free_buffer(receiver.single(bytearray(1)), at), "number"),
        (receiver.withdraw, "entry"),
        (receiver.forget, "entry"),
        (receiver.link, "entry"),
        (lambda at: receiver.append(0, at), "entry"),
        (lambda at: receiver.append(at, receiver.entry(0)), "portal"),
        (receiver.close_portal, "portal"),
        (receiver.portal_counters, "portal"),
        (lambda at: receiver.attach(at, 0), "portal"),
        (lambda at: receiver.start_list(at, 0), "portal"),
    ):
        with pytest.raises(MPIError, match=what) as raised:
            call(index)
        assert str(index) in str(raised.value)


def test_what_is_given_back_twice_is_an_error_and_nothing_is_given_out_twice(receiver):
    block = receiver.single(bytearray(1))
    entry = receiver.entry(block)
    for give_back, index in ((receiver.forget, entry), (receiver.discard, block)):
        give_back(index)
        with pytest.raises(MPIError, match="not in use"):
            give_back(index)
    with pytest.raises(MPIError, match="not in use"):
        receiver.forget(entry + 1)  # which nobody has been given yet
    assert receiver.single(bytearray(1)) != receiver.single(bytearray(1))
    assert receiver.entry(block) != receiver.entry(block)


def test_an_entry_is_in_one_place_of_one_list(receiver):
    block = receiver.single(bytearray(1))
    first, second = receiver.entry(block), receiver.entry(block)
    receiver.append(0, first)
    for call in (
        lambda: receiver.append(0, first),
        lambda: receiver.append(1, first),
        lambda: receiver.append(0, second, before=second),
        lambda: receiver.append(1, second, before=first),
    ):
        with pytest.raises(MPIError, match="list of portal"):
            call()
    receiver.append(0, second, before=first)
    receiver.withdraw(first)
    receiver.append(1, first)


def test_a_call_that_is_refused_takes_no_descriptor(receiver):
    before = receiver.single(bytearray(1))
    for _ in range(1000):
        with pytest.raises(MPIError):
            receiver.overlay(-1)
    assert receiver.single(bytearray(1)) == before + 1
