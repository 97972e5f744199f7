"""The GDN_AVAIL interrupt: when words are at the input and the program does not read, the handler does."""

from __future__ import annotations

from ompy_raw.chip import Chip
from ompy_raw.costs import COSTS
from ompy_raw.script import Script, advance, read, read_available, send, wait
from ompy_raw.tile import Tile

ENTRY, EXIT = COSTS["interrupt_entry"], COSTS["interrupt_exit"]


def one(step):
    yield step


def collector(into):
    def handler():
        into.extend((yield read_available(31)))

    return handler


def test_a_computing_tile_is_interrupted_in_the_cycle_in_which_a_word_arrives():
    got = []
    script = Script(Chip(4, 1))
    script.add(0, one(send(1, [7])))
    script.add(1, one(advance(100)), collector(got))
    script.run()
    assert got == [7]
    # One word is read in one cycle; the rest of the computation comes after.
    assert script.clock(1) == 100 + ENTRY + 1 + EXIT


def test_a_stalled_writer_is_interrupted_so_that_two_that_send_first_do_not_deadlock():
    words = list(range(31))
    got = {0: [], 1: []}

    def program(other):
        yield send(other, words)
        yield send(other, words)
        yield wait()

    script = Script(Chip(2, 1))
    for tile in (0, 1):
        script.add(tile, program(1 - tile), collector(got[tile]))
    script.run()
    assert all(words == found[:31] for found in got.values())


def test_what_the_handler_leaves_interrupts_again():
    def handler():
        yield read_available(1)

    script = Script(Chip(2, 1))
    script.add(0, one(send(1, [1, 2, 3])))
    script.add(1, one(advance(1000)), handler)
    script.run()
    assert script.interrupts(1) == 3


def test_the_handler_is_not_interrupted_itself():
    depth = []

    def handler():
        depth.append("in")
        yield advance(50)
        yield read_available(31)
        depth.append("out")

    script = Script(Chip(2, 1))
    script.add(0, one(send(1, list(range(31)))))
    script.add(1, one(advance(1000)), handler)
    script.run()
    assert depth == ["in", "out"] * (len(depth) // 2)


def test_a_wait_ends_with_a_word_or_in_its_cycle():
    found = []

    def waits():
        found.append((yield wait(10)))
        found.append((yield wait(1000)))
        yield read(1)

    def late():
        yield advance(500)
        yield send(1, [1])

    script = Script(Chip(2, 1))
    script.add(0, late())
    script.add(1, waits())
    script.run()
    assert found == [False, True]


def test_a_blocking_tile_charges_lazily_and_is_interrupted_when_it_settles():
    tile = Tile(Chip(1, 1), 0)
    tile.advance(25)
    assert tile.clock == 25
    tile.on_interrupt(lambda tile: None)
    tile.enable()
    tile.advance(5)
    assert (tile.clock, tile.interrupts) == (30, 0)
    assert tile.wait(50) is False
    assert tile.clock == 50
    tile.leave()
