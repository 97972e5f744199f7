"""The combined block: messages flow over buffers, and are gathered from them."""

from __future__ import annotations

from ompy_puma.descriptor import ACKNOWLEDGE, READ, SAVE_BODY, SENDER_OFFSET, TRUNCATE, WRITE
from puma_machine import drops


def test_a_message_flows_from_buffer_to_buffer(machine, receiver):
    memories = [bytearray(2), bytearray(0), bytearray(3), bytearray(4)]
    receiver.attach(0, receiver.combined(memories))
    machine.send(0, b"abcdefg")
    assert memories == [b"ab", b"", b"cde", b"fg\0\0"]


def test_the_receivers_offset_puts_each_message_behind_the_one_before(machine, receiver):
    memories = [bytearray(2), bytearray(4)]
    receiver.attach(0, receiver.combined(memories))
    machine.send(0, b"a")
    machine.send(0, b"bc")
    machine.send(0, b"def")
    assert memories == [b"ab", b"cdef"]


def test_the_senders_offset_counts_over_all_buffers(machine, receiver):
    memories = [bytearray(2), bytearray(4)]
    receiver.attach(0, receiver.combined(memories, WRITE, SENDER_OFFSET))
    machine.send(0, b"xyz", offset=1)
    machine.send(0, b"e", offset=5)
    assert memories == [b"\0x", b"yz\0e"]


def test_a_message_longer_than_all_buffers_is_refused(machine, receiver):
    memories = [bytearray(2), bytearray(4)]
    receiver.attach(0, receiver.combined(memories))
    machine.send(0, b"abcdefg")
    machine.send(0, b"abcdef")
    machine.send(0, b"g")
    assert memories == [b"ab", b"cdef"]
    assert drops(receiver) == ["TOO_LONG", "FULL"]


def test_what_is_read_is_gathered(machine, sender, receiver):
    inbox = bytearray(5)
    sender.attach(9, sender.single(inbox))
    receiver.attach(0, receiver.combined([b"012", b"34", b"56789"], READ, SENDER_OFFSET))
    machine.send(0, offset=2, answer=9, answer_length=5)
    assert inbox == b"23456"


def test_the_receivers_offset_hands_the_chain_out_in_order(machine, sender, receiver):
    inbox = bytearray(8)
    sender.attach(9, sender.single(inbox))
    receiver.attach(0, receiver.combined([b"012", b"34567"], READ))
    for length in (2, 4, 2, 1):
        machine.send(0, answer=9, answer_length=length)
    assert inbox == b"01234567"
    assert drops(receiver) == ["FULL"]


def test_from_chain_to_chain_scattered_otherwise(machine, sender, receiver):
    memories = [bytearray(1), bytearray(6), bytearray(3)]
    sender.attach(9, sender.combined(memories))
    receiver.attach(0, receiver.combined([b"0123", b"456789"], READ))
    machine.send(0, answer=9, answer_length=10)
    assert memories == [b"0", b"123456", b"789"]


def test_an_acknowledgement_says_that_the_body_was_saved(machine, sender, receiver):
    notes = sender.dynamic(bytearray(4096))
    sender.attach(9, notes)
    receiver.attach(0, receiver.combined([bytearray(2), bytearray(4)], WRITE, ACKNOWLEDGE))
    machine.send(0, b"abcde", answer=9)
    [note] = sender.letters(notes)
    assert note.message.user_data[0] == SAVE_BODY
    assert note.message.return_length == 5


def test_what_does_not_fit_the_chain_may_be_cut_off(machine, receiver):
    memories = [bytearray(2), bytearray(2)]
    receiver.attach(0, receiver.combined(memories, WRITE, TRUNCATE))
    machine.send(0, b"abcdefg")
    assert memories == [b"ab", b"cd"]
