"""The dynamic block: a heap that the kernel fills and the owner empties."""

from __future__ import annotations

import random
from mmap import mmap

from ompy_puma.descriptor import ACKNOWLEDGE, COMPACT, SAVE_BOTH, SAVE_HEADER
from ompy_puma.heap import LETTER_WHOLE
from puma_machine import drops

LETTER = 128  # what a letter's head takes, besides its body
HEAP = 64


def heap_of(letters: int, body: int = 16) -> mmap:
    """Memory for so many letters, and not one byte more."""
    return mmap(-1, HEAP + letters * (LETTER + body))


def bodies(process, block) -> list[bytes]:
    return [letter.body for letter in process.letters(block)]


def test_letters_keep_the_order_of_arrival(machine, receiver, heap):
    block = receiver.dynamic(heap)
    receiver.attach(0, block)
    for body in (b"first", b"", b"third"):
        machine.send(0, body)
    assert bodies(receiver, block) == [b"first", b"", b"third"]
    assert {letter.state for letter in receiver.letters(block)} == {LETTER_WHOLE}


def test_headers_alone_take_no_room_for_bodies(machine, receiver):
    block = receiver.dynamic(heap_of(2, 0), SAVE_HEADER)
    receiver.attach(0, block)
    machine.send(0, b"x" * 4000, match_bits=1)
    machine.send(0, b"y" * 4000, match_bits=2)
    assert [(letter.message.length, letter.body) for letter in receiver.letters(block)] == [(4000, b"")] * 2
    assert drops(receiver) == []


def test_a_full_heap_refuses_and_a_released_letter_makes_room(machine, receiver):
    block = receiver.dynamic(heap_of(2))
    receiver.attach(0, block)
    for body in (b"a" * 16, b"b" * 16, b"c" * 16):
        machine.send(0, body)
    assert drops(receiver) == ["FULL"]
    receiver.letters(block)[0].release()
    machine.send(0, b"d" * 16)
    assert bodies(receiver, block) == [b"b" * 16, b"d" * 16]


def test_a_message_that_no_heap_of_this_size_can_hold_is_too_long(machine, receiver):
    block = receiver.dynamic(heap_of(2))
    receiver.attach(0, block)
    machine.send(0, b"x" * 1000)
    assert drops(receiver) == ["TOO_LONG"]


def test_released_neighbours_become_one_block(machine, receiver):
    block = receiver.dynamic(heap_of(3))
    receiver.attach(0, block)
    for order in ((0, 1, 2), (2, 1, 0), (1, 0, 2), (0, 2, 1)):
        for body in (b"a" * 16, b"b" * 16, b"c" * 16):
            machine.send(0, body)
        letters = receiver.letters(block)
        for number in order:
            letters[number].release()
        machine.send(0, b"z" * (2 * LETTER + 3 * 16))  # needs all three
        [letter] = receiver.letters(block)
        letter.release()
    assert drops(receiver) == []
    assert receiver.heap_use(block) == (0, 3 * (LETTER + 16))


def test_a_detached_letter_keeps_its_memory_and_leaves_the_list(machine, receiver):
    block = receiver.dynamic(heap_of(2))
    receiver.attach(0, block)
    machine.send(0, b"a" * 16)
    machine.send(0, b"b" * 16)
    letter = receiver.letters(block)[0]
    letter.detach()
    machine.send(0, b"c" * 16)
    assert bodies(receiver, block) == [b"b" * 16]
    assert letter.body == b"a" * 16
    assert drops(receiver) == ["FULL"]
    letter.release()
    machine.send(0, b"d" * 16)
    assert bodies(receiver, block) == [b"b" * 16, b"d" * 16]


def test_an_acknowledgement_says_whether_the_body_was_kept(machine, sender, receiver, heap):
    notes = sender.dynamic(bytearray(4096))
    sender.attach(9, notes)
    for save in (SAVE_BOTH, SAVE_HEADER):
        receiver.attach(0, receiver.dynamic(heap, save, ACKNOWLEDGE))
        machine.send(0, b"body", answer=9)
        assert sender.letters(notes)[-1].message.user_data[0] == save


def test_scattered_free_blocks_do_not_hold_a_message_longer_than_each(machine, receiver):
    receiver.attach(0, scattered(machine, receiver, 0))
    machine.send(0, b"z" * (LETTER + 32))
    assert drops(receiver) == ["FULL"]


def test_letters_are_moved_together_where_their_owner_allows_it(machine, receiver):
    block = scattered(machine, receiver, COMPACT)
    receiver.attach(0, block)
    machine.send(0, b"z" * (LETTER + 32))
    assert drops(receiver) == []
    assert bodies(receiver, block) == [b"b" * 16, b"d" * 16, b"z" * (LETTER + 32)]


def scattered(machine, receiver, options: int) -> int:
    """A heap of four places of which the first and third are free."""
    block = receiver.dynamic(heap_of(4), SAVE_BOTH, options)
    receiver.attach(0, block)
    for body in (b"a" * 16, b"b" * 16, b"c" * 16, b"d" * 16):
        machine.send(0, body)
    for number, letter in enumerate(receiver.letters(block)):
        if number in (0, 2):
            letter.release()
    return block


def test_whatever_fits_in_sum_fits_a_heap_that_moves_its_letters_together(machine, receiver):
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    chance = random.Random(seed)
    memory = heap_of(40)
    block = receiver.dynamic(memory, SAVE_BOTH, COMPACT)
    receiver.attach(0, block)
    expected: list[bytes] = []
    room = len(memory) - HEAP
    for _ in range(1500):
        if chance.random() < 0.6:
            body = chance.randbytes(chance.randrange(400))
            size = (LETTER + len(body) + 15) // 16 * 16
            machine.send(0, body)
            if size <= room:
                expected.append(body)
                room -= size
        elif expected:
            number = chance.randrange(len(expected))
            letter = receiver.letters(block)[number]
            room += (LETTER + len(letter.body) + 15) // 16 * 16
            letter.release()
            del expected[number]
        assert len(receiver.letters(block)) == len(expected)
    assert bodies(receiver, block) == expected


def test_the_high_water_mark_stays(machine, receiver, heap):
    block = receiver.dynamic(heap)
    receiver.attach(0, block)
    for _ in range(5):
        machine.send(0, b"x" * 16)
    for letter in receiver.letters(block):
        letter.release()
    assert receiver.heap_use(block) == (0, 5 * (LETTER + 16))
