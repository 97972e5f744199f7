"""The general dynamic network as the thesis has it: latency, buffers, wormholes, turns."""

from __future__ import annotations

import pytest
from ompy_raw.chip import Chip
from ompy_raw.errors import Deadlock
from ompy_raw.header import pack, unpack
from ompy_raw.script import Script, advance, read, send, wait, write

EAST, SOUTH, WEST = 2, 3, 4
TILES = 16
WIDTH = 4


def hops(source, destination, width=WIDTH):
    return abs(source % width - destination % width) + abs(source // width - destination // width)


def one(step):
    yield step


def run(programs, width=WIDTH, height=WIDTH, watchdog=0, **recorded):
    """Runs programs, by tile; returns the script."""
    script = Script(Chip(width, height, **recorded), watchdog)
    for tile, steps in programs.items():
        script.add(tile, steps)
    script.run()
    return script


def exchange(destination, words):
    """Sends and then receives as many words."""
    yield send(destination, words)
    yield read(len(words))


def test_a_header_word_holds_its_fields_where_the_chip_has_them():
    assert pack(31, 3, 2) == 31 << 24 | 2 << 5 | 3
    assert unpack(pack(7, 31, 30, WEST)) == (7, 31, 30, WEST)
    for length, x, y, final in ((0, 0, 0, 0), (32, 0, 0, 0), (1, 32, 0, 0), (1, 0, -1, 0), (1, 0, 0, 5)):
        with pytest.raises(ValueError, match=r"(1 to 31|0 to 31|0 to 4)"):
            pack(length, x, y, final)


def test_latency_of_an_uncontended_message_is_that_of_the_formula_for_every_pair():
    for source in range(TILES):
        for destination in set(range(TILES)) - {source}:
            for length in (1, 4, 5, 31):
                words = list(range(length))
                script = run({source: one(send(destination, words)), destination: one(read(length))})
                assert script.clock(destination) == length + hops(source, destination) + 2, (source, destination, length)


def test_a_long_run_goes_at_a_word_a_link_a_cycle():
    packets = 50
    words = [word for _ in range(packets) for word in (pack(31, 3, 3), *range(31))]
    script = run({0: one(write(words)), 15: one(read(31 * packets))})
    # Of 32 words one is the header, which the program at the end never sees.
    assert script.clock(15) == 32 * packets + hops(0, 15) + 1


def test_messages_turn_once_first_along_x_then_along_y():
    script = run({0: one(send(10, [1, 2])), 10: one(read(2))}, most_crossings=1000)
    way = [(tile, side) for _, tile, side, word in script.chip.recording.words() if word == 2]
    assert way == [(0, EAST), (1, EAST), (2, SOUTH), (6, SOUTH), (10, 0)]


def test_a_header_is_consumed_by_the_last_router_and_not_before():
    header = pack(1, 2, 0)
    script = run({0: one(send(2, [5])), 2: one(read(1))}, most_crossings=1000)
    assert [tile for _, tile, _, word in script.chip.recording.words() if word == header] == [0, 1, 2]


def test_a_final_route_off_the_chip_leads_to_the_pins_of_that_side():
    script = run({0: one(write([pack(2, 3, 1, EAST), 7, 8]))}, most_crossings=100)
    chip = script.chip
    idle = Script(chip)
    idle.add(15, one(advance(100)))
    idle.run()
    assert [word for _, tile, side, word in chip.recording.words() if (tile, side) == (7, EAST)][1:] == [7, 8]


def test_a_header_that_leads_nowhere_is_refused_before_it_enters_the_network():
    for header in (pack(1, 4, 0), pack(1, 0, 4), pack(1, 1, 1, EAST)):
        with pytest.raises(ValueError, match=r"names tile \(\d, \d\), final route \d: the chip has 4 x 4 tiles"):
            run({0: one(write([header, 1]))})


@pytest.mark.parametrize("far", [1, 2, 3])
def test_four_words_at_each_end_and_four_a_hop_lie_between_who_writes_and_who_does_not_read(far):
    """The header is not among them: the last router consumes it."""
    room = 4 + 4 * far

    def silent():
        yield advance(10_000)
        yield read(room + 1)

    script = Script(Chip(4, 1))
    script.add(0, one(send(far, range(room))))
    script.add(far, silent())
    with pytest.raises(Deadlock):  # one word less was sent than is read
        script.run()
    assert script.clock(0) < 100  # all of it went into the buffers
    script = run({0: one(send(far, range(room + 1))), far: silent()}, 4, 1)
    assert script.clock(0) > 10_000  # the last word had to wait for the reader


def test_two_neighbours_that_send_first_deadlock_beyond_eight_words_and_the_diagnosis_names_them():
    for length in range(1, 9):
        script = run({5: exchange(6, range(length)), 6: exchange(5, range(length))})
        assert script.clock(5) < 50
    with pytest.raises(Deadlock) as error:
        run({5: exchange(6, range(9)), 6: exchange(5, range(9))})
    text = str(error.value)
    for tile, place, other in ((5, "(1, 1)", "east"), (6, "(2, 1)", "west")):
        stalled = f"tile {tile} at {place} is stalled writing, 9 of 10 words written"
        assert f"{stalled}; full buffers: output ($CGNO) 4/4, input from {other} 4/4" in text


@pytest.mark.parametrize("length", [9, 17, 31])
def test_the_watchdog_drains_a_deadlock_into_memory_at_a_price(length):
    words = list(range(100, 100 + length))
    got = {}

    def program(own, other):
        yield send(other, words)
        got[own] = yield read(length)

    script = run({5: program(5, 6), 6: program(6, 5)}, watchdog=1000)
    assert got == {5: words, 6: words}
    assert script.clock(5) > 1000
    assert script.interrupts(5) >= 1


def test_the_watchdog_lets_alone_who_is_not_stuck():
    script = run({0: one(send(3, range(31))), 3: one(read(31))}, watchdog=5)
    assert script.interrupts(0) == script.interrupts(3) == 0


def test_who_waits_for_words_that_nobody_sends_is_told():
    with pytest.raises(Deadlock, match=r"tile 2 at \(2, 0\) is stalled reading, 0 of 3 words read"):
        run({2: one(read(3)), 3: one(wait())})


def test_words_of_two_messages_are_never_interleaved():
    senders = [tile for tile in range(TILES) if tile != 5]
    rounds = 6

    def source(tile):
        for number in range(rounds):
            yield send(5, [tile << 16 | number << 8 | index for index in range(1 + (tile + number) % 31)])

    got = []

    def sink():
        for _ in range(sum(1 + (tile + number) % 31 for tile in senders for number in range(rounds))):
            got.extend((yield read(1)))

    run({5: sink(), **{tile: source(tile) for tile in senders}})
    place = 0
    following = dict.fromkeys(senders, 0)
    while place < len(got):
        tile, number = got[place] >> 16, got[place] >> 8 & 0xFF
        length = 1 + (tile + number) % 31
        assert got[place : place + length] == [tile << 16 | number << 8 | index for index in range(length)]
        assert number == following[tile]  # and one sender's messages keep their order
        following[tile] += 1
        place += length
    assert set(following.values()) == {rounds}


def test_a_saturated_tile_takes_a_word_a_cycle_and_all_inputs_have_their_turn():
    packets = 40
    run_of = [word for _ in range(packets) for word in (pack(31, 1, 1), *[0] * 31)]
    neighbours = (1, 4, 6, 9)  # all four sides of tile 5
    script = run({5: one(read(4 * packets * 31)), **{tile: one(write(run_of)) for tile in neighbours}})
    assert script.clock(5) <= 4 * packets * 32 + 10
    # Each writer was served every fourth message: all end within a round of each other.
    ends = sorted(script.clock(tile) for tile in neighbours)
    assert ends[-1] - ends[0] <= 4 * 32


def test_the_same_programs_take_the_same_cycles_in_whatever_order_they_are_added():
    def all_to_all(tile):  # which deadlocks, and is drained
        for other in range(TILES):
            if other != tile:
                yield send(other, [tile])
        yield read(TILES - 1)

    orders = (list(range(TILES)), list(reversed(range(TILES))))
    clocks = []
    for order in orders:
        script = run({tile: all_to_all(tile) for tile in order}, watchdog=100)
        clocks.append([script.clock(tile) for tile in range(TILES)])
    assert clocks[0] == clocks[1]


def test_a_chip_of_32_by_32_tiles_carries_a_message_from_corner_to_corner():
    script = run({0: one(send(1023, [1])), 1023: one(read(1))}, 32, 32)
    assert script.clock(1023) == 1 + 62 + 2


@pytest.mark.parametrize("size", [(0, 4), (33, 1), (4, -1)])
def test_a_chip_that_a_header_could_not_address_is_refused(size):
    with pytest.raises(ValueError, match="1 to 32 tiles a side"):
        Chip(*size)


def test_cycles_in_which_nothing_can_happen_are_jumped_over():
    script = run({0: one(advance(10**12))})
    assert script.clock(0) == 10**12
    assert script.chip.cycles_run < 10
