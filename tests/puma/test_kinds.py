"""Puma's four kinds of portals."""

from __future__ import annotations

from ompy_puma.kinds import kernel_managed, read_memory, receiver_managed, sender_managed
from puma_machine import drops


def test_kernel_managed_messages_are_kept_until_they_are_released(machine, receiver, heap):
    block = kernel_managed(receiver, 0, heap)
    machine.send(0, b"a")
    machine.send(0, b"b")
    assert [letter.body for letter in receiver.letters(block)] == [b"a", b"b"]


def test_receiver_managed_buffers_are_used_round_and_round(machine, receiver):
    memories = [bytearray(4), bytearray(4)]
    block = receiver_managed(receiver, 0, memories)
    for body in (b"a", b"b"):
        machine.send(0, body)
    assert receiver.buffer(block, 1)[2].length == 1
    receiver.free_buffer(block, 0)
    machine.send(0, b"c")
    machine.send(0, b"d")
    assert memories == [b"c\0\0\0", b"b\0\0\0"]
    assert drops(receiver) == ["FULL"]


def test_sender_managed_memory_is_written_where_senders_say(machine, receiver):
    memory = bytearray(6)
    sender_managed(receiver, 0, memory)
    machine.send(0, b"world", offset=1)
    machine.send(0, b"W", offset=1)
    assert memory == b"\0World"


def test_read_memory_is_handed_out_on_request(machine, sender, receiver):
    inbox = bytearray(3)
    sender_managed(sender, 1, inbox)
    read_memory(receiver, 0, b"0123456789")
    machine.send(0, offset=7, answer=1, answer_length=3)
    assert inbox == b"789"
