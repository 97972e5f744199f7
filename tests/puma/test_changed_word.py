"""Words of a single block that the kernel changes in place: the model's own extension, papers have no atomics."""

from __future__ import annotations

import struct

import pytest
from ompy_puma.descriptor import CHANGE, SENDER_OFFSET
from puma_machine import drops

# As `ompy.core.atomic` numbers them.
ADD, AND, OR, XOR, SWAP, MIN, MAX, SWAP_IF = range(8)
NOTES = 9


@pytest.fixture
def words(machine, sender, receiver):
    """Two words of 8 bytes at portal 0: 5 and -1; what they were comes to the sender's `NOTES`."""
    memory = bytearray(struct.pack("qq", 5, -1))
    receiver.attach(0, receiver.single(memory, CHANGE, options=SENDER_OFFSET))
    sender.attach(NOTES, sender.dynamic(bytearray(4096)))
    return memory


def change(machine, operation, operand, compare=0, *, offset=0, width=8):
    """What the word was, None where nobody says."""
    before = len(machine.processes[0].events)
    body = struct.pack("iIqq", operation, 0, operand, compare)
    machine.send(0, body, offset=offset, answer=NOTES, answer_length=width)
    notes = machine.processes[0].events[before:]
    if not notes:
        return None
    (note,) = notes
    assert note.message.is_acknowledgement
    assert note.message.return_length == width
    return struct.unpack("q", note.message.user_data[4:12])[0]


@pytest.mark.parametrize(
    ("operation", "operand", "compare", "becomes"),
    [
        (ADD, 3, 0, 8),
        (AND, 4, 0, 4),
        (OR, 2, 0, 7),
        (XOR, 1, 0, 4),
        (SWAP, -9, 0, -9),
        (MIN, -7, 0, -7),
        (MIN, 7, 0, 5),
        (MAX, 7, 0, 7),
        (SWAP_IF, 1, 5, 1),
        (SWAP_IF, 1, 6, 5),
    ],
)
def test_a_word_is_changed_and_its_old_value_told(machine, words, operation, operand, compare, becomes):
    assert change(machine, operation, operand, compare) == 5
    assert struct.unpack("qq", words) == (becomes, -1)


def test_a_word_of_four_bytes_leaves_its_neighbours_alone(machine, words):
    assert change(machine, ADD, 2, offset=8, width=4) == -1
    assert words == struct.pack("qii", 5, 1, -1)


@pytest.mark.parametrize("offset", [9, 12, 16, 17, 2**63, 2**64 - 8])
def test_what_is_no_word_of_the_block_stays_as_it_is(machine, receiver, words, offset):
    assert change(machine, ADD, 1, offset=offset) is None
    assert words == struct.pack("qq", 5, -1)
    assert len(drops(receiver)) == 1


@pytest.mark.parametrize("width", [0, 1, 2, 3, 16, 2**63])
def test_a_word_has_four_or_eight_bytes(machine, receiver, words, width):
    assert change(machine, ADD, 1, width=width) is None
    assert words == struct.pack("qq", 5, -1)
    assert len(drops(receiver)) == 1


@pytest.mark.parametrize("operation", [-1, 8, 2**31 - 1])
def test_an_operation_that_there_is_none_of_changes_nothing(machine, receiver, words, operation):
    assert change(machine, operation, 1) is None
    assert words == struct.pack("qq", 5, -1)
    assert drops(receiver) == ["INVALID"]


def test_who_wants_no_answer_changes_nothing(machine, receiver, words):
    machine.send(0, struct.pack("iIqq", ADD, 0, 1, 0))
    assert words == struct.pack("qq", 5, -1)
    assert drops(receiver) == ["NO_REPLY"]


@pytest.mark.parametrize("size", [0, 23, 25, 100_000])
def test_a_body_of_another_length_changes_nothing(machine, receiver, words, size):
    machine.send(0, bytes(size), answer=NOTES, answer_length=8)
    assert words == struct.pack("qq", 5, -1)
    assert drops(receiver) == ["MALFORMED"]


def test_only_a_single_block_with_the_senders_offset_has_words(machine, receiver, words):
    receiver.attach(0, receiver.single(words, CHANGE))
    assert change(machine, ADD, 1) is None
    receiver.attach(0, receiver.independent([words], CHANGE))
    assert change(machine, ADD, 1) is None
    assert words == struct.pack("qq", 5, -1)
    assert drops(receiver) == ["INVALID", "INVALID"]


def test_what_a_node_may_not_touch_it_does_not_change(machine, receiver, words):
    assert receiver.take_back(0, words)
    assert change(machine, ADD, 1) is None
    receiver.give_back(0, words)
    assert change(machine, ADD, 1) == 5
    assert words == struct.pack("qq", 6, -1)
