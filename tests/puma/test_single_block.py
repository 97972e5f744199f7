"""The single block: one run of bytes, each option by itself."""

from __future__ import annotations

from ompy_puma.descriptor import (
    ACKNOWLEDGE,
    READ,
    SAVE_BODY,
    SAVE_BOTH,
    SAVE_HEADER,
    SENDER_OFFSET,
    TRUNCATE,
    WRITE,
)
from puma_machine import drops, kinds

HEADER = 88


def test_the_receivers_offset_puts_each_message_behind_the_one_before(machine, receiver):
    memory = bytearray(8)
    block = receiver.single(memory)
    receiver.attach(0, block)
    machine.send(0, b"abc")
    machine.send(0, b"de")
    assert memory == b"abcde\0\0\0"
    assert receiver.counters(block)["offset"] == 5


def test_the_senders_offset_is_where_the_body_goes(machine, receiver):
    memory = bytearray(8)
    receiver.attach(0, receiver.single(memory, options=SENDER_OFFSET))
    machine.send(0, b"de", offset=5)
    machine.send(0, b"ab", offset=1)
    assert memory == b"\0ab\0\0de\0"


def test_a_sender_cannot_write_behind_the_end(machine, receiver):
    memory = bytearray(8)
    receiver.attach(0, receiver.single(memory, options=SENDER_OFFSET))
    for offset in (7, 8, 9, 2**63, 2**64 - 1):
        machine.send(0, b"xy", offset=offset)
    assert memory == bytes(8)
    assert drops(receiver) == ["TOO_LONG"] * 5


def test_a_receiver_managed_block_is_full_when_nothing_is_left(machine, receiver):
    memory = bytearray(4)
    block = receiver.single(memory)
    receiver.attach(0, block)
    machine.send(0, b"abc")
    machine.send(0, b"xy")  # one byte is left: too long
    machine.send(0, b"d")
    machine.send(0, b"e")  # none is: full
    assert memory == b"abcd"
    assert drops(receiver) == ["TOO_LONG", "FULL"]
    receiver.rewind(block)
    machine.send(0, b"z")
    assert memory == b"zbcd"


def test_a_block_of_no_bytes_takes_messages_of_no_bytes_for_ever(machine, receiver):
    block = receiver.single(bytearray(0))
    receiver.attach(0, block)
    for _ in range(3):
        machine.send(0)
    machine.send(0, b"x")
    assert receiver.counters(block)["messages"] == 3
    assert drops(receiver) == ["TOO_LONG"]


def test_the_header_alone_may_be_saved(machine, receiver):
    memory = bytearray(2 * HEADER)
    block = receiver.single(memory, WRITE, SAVE_HEADER)
    receiver.attach(0, block)
    machine.send(0, b"not kept" * 100, match_bits=0x1122)
    assert int.from_bytes(memory[24:32], "little") == 800  # its length
    assert int.from_bytes(memory[32:40], "little") == 0x1122
    assert memory[HEADER:] == bytes(HEADER)
    assert receiver.counters(block)["offset"] == HEADER
    assert receiver.events[-1].saved == SAVE_HEADER


def test_header_and_body_may_both_be_saved(machine, receiver):
    memory = bytearray(HEADER + 8)
    receiver.attach(0, receiver.single(memory, WRITE, SAVE_BOTH))
    machine.send(0, b"the body", user_data=b"twelve bytes")
    assert memory[72:84] == b"twelve bytes"
    assert memory[HEADER:] == b"the body"


def test_an_acknowledgement_says_what_was_saved(machine, sender, receiver):
    notes = sender.dynamic(bytearray(4096))
    sender.attach(9, notes)
    for save in (SAVE_HEADER, SAVE_BODY, SAVE_BOTH):
        receiver.attach(0, receiver.single(bytearray(200), WRITE, save, ACKNOWLEDGE))
        machine.send(0, b"12345", answer=9, answer_bits=save, user_data=b"?mine")
        note = sender.letters(notes)[-1].message
        assert note.is_acknowledgement
        assert note.user_data[:5] == bytes([save]) + b"mine"
        assert note.match_bits == save
        assert note.return_length == (0 if save == SAVE_HEADER else 5)


def test_nobody_is_acknowledged_who_did_not_ask(machine, sender, receiver):
    receiver.attach(0, receiver.single(bytearray(8), options=ACKNOWLEDGE))
    machine.send(0, b"x")
    assert machine.kernels[1].statistics["acknowledgements"] == 0
    assert sender.events == []


def test_a_block_that_does_not_acknowledge_stays_silent(machine, sender, receiver):
    sender.attach(9, sender.single(bytearray(0)))
    receiver.attach(0, receiver.single(bytearray(8)))
    machine.send(0, b"x", answer=9)
    assert sender.events == []


def test_read_memory_replies_with_the_stretch_asked_for(machine, sender, receiver):
    inbox = bytearray(10)
    sender.attach(9, sender.single(inbox, options=SENDER_OFFSET))
    block = receiver.single(b"0123456789", READ, 0, SENDER_OFFSET)
    receiver.attach(0, block)
    machine.send(0, offset=3, answer=9, answer_length=4, answer_offset=5, user_data=b"tag", answer_bits=7)
    assert inbox == b"\0\0\0\0\0" + b"3456" + b"\0"
    reply = sender.events[-1].message
    assert (reply.is_reply, reply.user_data[:3], reply.match_bits, reply.length) == (True, b"tag", 7, 4)
    assert kinds(receiver) == ["READ"]
    assert receiver.counters(block)["bytes"] == 4


def test_the_receivers_offset_hands_read_memory_out_in_order(machine, sender, receiver):
    inbox = bytearray(9)
    sender.attach(9, sender.single(inbox))
    receiver.attach(0, receiver.single(b"0123456789", READ))
    for _ in range(4):
        machine.send(0, answer=9, answer_length=3)
    assert inbox == b"012345678"
    assert drops(receiver) == ["TOO_LONG"]


def test_nothing_behind_the_end_can_be_read(machine, sender, receiver):
    sender.attach(9, sender.single(bytearray(99)))
    receiver.attach(0, receiver.single(b"0123456789", READ, 0, SENDER_OFFSET))
    for offset, length in ((8, 3), (11, 0), (0, 11), (2**64 - 1, 2), (1, 2**64 - 1)):
        machine.send(0, offset=offset, answer=9, answer_length=length)
    assert drops(receiver) == ["TOO_LONG"] * 5
    assert sender.events == []


def test_a_read_without_a_portal_for_the_reply_is_dropped(machine, receiver):
    block = receiver.single(b"0123456789", READ)
    receiver.attach(0, block)
    machine.send(0)
    assert drops(receiver) == ["NO_REPLY"]
    assert receiver.counters(block)["offset"] == 0


def test_what_does_not_fit_may_be_cut_off(machine, receiver):
    memory = bytearray(4)
    receiver.attach(0, receiver.single(memory, options=SENDER_OFFSET | TRUNCATE))
    machine.send(0, b"abcdefgh")
    told = receiver.events[-1]
    assert memory == b"abcd"
    assert (told.length, told.message.length) == (4, 8)
