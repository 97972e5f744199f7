"""The independent block: a buffer a message, in a line or in a circle."""

from __future__ import annotations

from ompy_puma.descriptor import (
    ACKNOWLEDGE,
    BUFFER_FREE,
    BUFFER_USED,
    CIRCULAR,
    READ,
    SAVE_BODY,
    SAVE_BOTH,
    SAVE_HEADER,
    TRUNCATE,
    WRITE,
)
from puma_machine import drops, kinds


def buffers(count: int, size: int = 4) -> list[bytearray]:
    return [bytearray(size) for _ in range(count)]


def test_each_message_has_a_buffer_of_its_own(machine, receiver):
    memories = buffers(3)
    block = receiver.independent(memories)
    receiver.attach(0, block)
    for body in (b"a", b"", b"cccc"):
        machine.send(0, body)
    assert memories == [b"a\0\0\0", bytes(4), b"cccc"]
    assert [receiver.buffer(block, number)[:2] for number in range(3)] == [(BUFFER_USED, 1), (BUFFER_USED, 0), (BUFFER_USED, 4)]


def test_a_line_of_buffers_ends(machine, receiver):
    memories = buffers(2)
    block = receiver.independent(memories)
    receiver.attach(0, block)
    for body in (b"a", b"b", b"c"):
        machine.send(0, body)
    receiver.free_buffer(block, 0)
    machine.send(0, b"d")
    assert [memory[:1] for memory in memories] == [b"a", b"b"]
    assert drops(receiver) == ["FULL", "FULL"]


def test_a_circle_goes_on_with_buffers_that_were_freed(machine, receiver):
    memories = buffers(2)
    block = receiver.independent(memories, options=CIRCULAR)
    receiver.attach(0, block)
    for body in (b"a", b"b", b"c"):
        machine.send(0, body)
    assert drops(receiver) == ["FULL"]
    receiver.free_buffer(block, 0)
    machine.send(0, b"d")
    assert [memory[:1] for memory in memories] == [b"d", b"b"]


def test_a_circle_waits_for_its_next_buffer_even_when_another_is_free(machine, receiver):
    block = receiver.independent(buffers(3), options=CIRCULAR)
    receiver.attach(0, block)
    for body in (b"a", b"b", b"c"):
        machine.send(0, body)
    receiver.free_buffer(block, 1)
    machine.send(0, b"d")
    assert drops(receiver) == ["FULL"]


def test_a_message_too_long_for_its_buffer_leaves_the_buffer_to_the_next(machine, receiver):
    memories = [bytearray(2), bytearray(8)]
    block = receiver.independent(memories)
    receiver.attach(0, block)
    machine.send(0, b"long")
    machine.send(0, b"ok")
    assert memories[0] == b"ok"
    assert receiver.counters(block)["last_drop"].name == "DROP_TOO_LONG"


def test_headers_alone_are_saved_of_messages_of_any_length(machine, receiver):
    block = receiver.independent(buffers(2, 0), WRITE, SAVE_HEADER)
    receiver.attach(0, block)
    machine.send(0, b"x" * 1000, match_bits=5)
    state, used, message = receiver.buffer(block, 0)
    assert (state, used, message.length, message.match_bits) == (BUFFER_USED, 0, 1000, 5)


def test_header_and_body_are_kept_apart(machine, receiver):
    memories = buffers(1)
    block = receiver.independent(memories, WRITE, SAVE_BOTH)
    receiver.attach(0, block)
    machine.send(0, b"body", user_data=b"about it")
    assert memories == [b"body"]
    assert receiver.buffer(block, 0)[2].user_data[:8] == b"about it"


def test_the_body_alone_may_be_saved(machine, receiver):
    block = receiver.independent(buffers(1), WRITE, SAVE_BODY)
    receiver.attach(0, block)
    machine.send(0, b"body", match_bits=5)
    assert receiver.buffer(block, 0)[2].match_bits == 0
    assert receiver.buffer(block, 0)[1] == 4


def test_an_acknowledgement_follows_each_message(machine, sender, receiver):
    notes = sender.independent(buffers(3, 0), WRITE, SAVE_HEADER)
    sender.attach(9, notes)
    receiver.attach(0, receiver.independent(buffers(2), WRITE, SAVE_BOTH, ACKNOWLEDGE))
    for body in (b"a", b"bb", b"ccc"):
        machine.send(0, body, answer=9)
    assert [sender.buffer(notes, number)[2].return_length for number in range(3)] == [1, 2, 0]
    assert kinds(sender) == ["DEPOSITED"] * 2
    assert drops(receiver) == ["FULL"]


def test_each_read_takes_the_next_buffer(machine, sender, receiver):
    inbox = bytearray(8)
    sender.attach(9, sender.single(inbox))
    block = receiver.independent([b"one1", b"two2"], READ)
    receiver.attach(0, block)
    for length in (4, 3, 1):
        machine.send(0, answer=9, answer_length=length)
    assert inbox == b"one1two\0"
    assert drops(receiver) == ["FULL"]
    assert receiver.buffer(block, 0)[0] == BUFFER_USED


def test_no_read_goes_behind_the_end_of_its_buffer(machine, sender, receiver):
    sender.attach(9, sender.single(bytearray(99)))
    block = receiver.independent([b"one1", b"two2"], READ)
    receiver.attach(0, block)
    machine.send(0, answer=9, answer_length=5)
    assert drops(receiver) == ["TOO_LONG"]
    assert receiver.buffer(block, 0)[0] == BUFFER_FREE


def test_a_circle_of_read_buffers_is_refilled(machine, sender, receiver):
    inbox = bytearray(6)
    memories = [bytearray(b"ab"), bytearray(b"cd")]
    sender.attach(9, sender.single(inbox))
    block = receiver.independent(memories, READ, 0, CIRCULAR)
    receiver.attach(0, block)
    machine.send(0, answer=9, answer_length=2)
    machine.send(0, answer=9, answer_length=2)
    memories[0][:] = b"ef"
    receiver.free_buffer(block, 0)
    machine.send(0, answer=9, answer_length=2)
    assert inbox == b"abcdef"


def test_what_does_not_fit_the_buffer_may_be_cut_off(machine, receiver):
    memories = buffers(1)
    block = receiver.independent(memories, WRITE, SAVE_BOTH, TRUNCATE)
    receiver.attach(0, block)
    machine.send(0, b"abcdefgh")
    assert memories == [b"abcd"]
    assert receiver.buffer(block, 0)[1] == 4
    assert receiver.buffer(block, 0)[2].length == 8
