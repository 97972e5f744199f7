"""Several entries on one descriptor's memory."""

from __future__ import annotations

from ompy_puma.descriptor import ACKNOWLEDGE, READ, SAVE_BODY, SAVE_BOTH, SAVE_HEADER, SENDER_OFFSET, WRITE
from puma_machine import drops


def test_short_and_long_catch_all_entries_keep_one_order(machine, receiver, heap):
    """MPI on portals, figure 1: short ones whole, of long ones the header, in one list."""
    whole = receiver.dynamic(heap, SAVE_BOTH)
    header = receiver.overlay(whole, SAVE_HEADER)
    receiver.append(0, receiver.entry(whole, 0, 1))
    receiver.append(0, receiver.entry(header, 1, 1))
    for bits, body in ((0, b"s1"), (1, b"l1" * 900), (0, b"s2"), (1, b"l2" * 900)):
        machine.send(0, body, match_bits=bits)
    letters = receiver.letters(whole)
    assert [letter.body for letter in letters] == [b"s1", b"", b"s2", b""]
    assert [letter.message.length for letter in letters] == [2, 1800, 2, 1800]
    assert [receiver.counters(block)["messages"] for block in (whole, header)] == [2, 2]


def test_a_full_heap_goes_on_with_headers_alone(machine, receiver):
    """Cplant's second dynamic descriptor, here in the same memory."""
    whole = receiver.dynamic(bytearray(64 + 128 + 512 + 128), SAVE_BOTH)
    header = receiver.overlay(whole, SAVE_HEADER)
    receiver.append(0, receiver.entry(whole, mask=0))
    receiver.append(0, receiver.entry(header, mask=0))
    machine.send(0, b"a" * 512)
    machine.send(0, b"b" * 512)
    assert [len(letter.body) for letter in receiver.letters(whole)] == [512, 0]
    assert receiver.letters(whole)[1].message.length == 512


def test_entries_on_one_independent_block_take_turns_with_its_buffers(machine, receiver):
    memories = [bytearray(4) for _ in range(3)]
    block = receiver.independent(memories)
    above = receiver.overlay(block)
    receiver.append(0, receiver.entry(block, 1))
    receiver.append(0, receiver.entry(above, 2))
    for bits in (2, 1, 2, 1):
        machine.send(0, b"%d" % bits, match_bits=bits)
    assert [memory[:1] for memory in memories] == [b"2", b"1", b"2"]
    assert receiver.counters(block)["current"] == 3
    assert drops(receiver) == ["FULL"]


def test_entries_on_one_single_block_share_the_receivers_offset(machine, receiver):
    memory = bytearray(8)
    block = receiver.single(memory)
    receiver.attach(0, block)
    receiver.attach(1, receiver.overlay(block))
    machine.send(0, b"ab")
    machine.send(1, b"cd")
    machine.send(0, b"ef")
    assert memory == b"abcdef\0\0"


def test_entries_on_one_combined_block_share_the_chain(machine, receiver):
    memories = [bytearray(3), bytearray(3)]
    block = receiver.combined(memories)
    receiver.attach(0, block)
    receiver.attach(1, receiver.overlay(block))
    machine.send(0, b"ab")
    machine.send(1, b"cd")
    assert memories == [b"abc", b"d\0\0"]


def test_each_overlay_has_options_and_counters_of_its_own(machine, sender, receiver):
    memory = bytearray(8)
    sender.attach(9, sender.single(bytearray(0)))
    block = receiver.single(memory)
    above = receiver.overlay(block, SAVE_BODY, ACKNOWLEDGE | SENDER_OFFSET)
    receiver.attach(0, block)
    receiver.attach(1, above)
    machine.send(0, b"ab", answer=9)
    machine.send(1, b"xy", offset=6, answer=9)
    assert memory == b"ab\0\0\0\0xy"
    assert len(sender.events) == 1
    assert [receiver.counters(each)["messages"] for each in (block, above)] == [1, 1]


def test_an_overlay_of_an_overlay_is_invalid(machine, receiver):
    block = receiver.single(bytearray(8))
    receiver.attach(0, receiver.overlay(receiver.overlay(block)))
    machine.send(0, b"x")
    assert drops(receiver) == ["INVALID"]


def test_an_overlay_must_be_of_its_bases_kind(machine, receiver):
    block = receiver.single(bytearray(8))
    above = receiver.overlay(block)
    receiver.memory_descriptors[above * len(receiver.memory_descriptors) // receiver.descriptor_count] = 2
    receiver.attach(0, above)
    machine.send(0, b"x")
    assert drops(receiver) == ["INVALID"]


def test_one_memory_may_be_written_through_one_portal_and_read_through_another(machine, sender, receiver):
    memory = bytearray(4)
    inbox = bytearray(4)
    sender.attach(9, sender.single(inbox))
    receiver.attach(0, receiver.single(memory, WRITE, SAVE_BODY, SENDER_OFFSET))
    receiver.attach(1, receiver.single(memory, READ, 0, SENDER_OFFSET))
    machine.send(0, b"data")
    machine.send(1, answer=9, answer_length=4)
    assert inbox == b"data"
