"""The simulation against a plain model of the same rules: the same word crosses the same wire in the same cycle."""

from __future__ import annotations

import random

import pytest
from ompy_raw.chip import Chip
from ompy_raw.header import pack
from ompy_raw.script import Script, advance, read, write
from reference import Reader, ReferenceChip, Writer

TOO_LONG = 200_000


class Traffic:
    """Some tiles send to the others, each at its own time and pace; who receives does not send, so that nobody deadlocks."""

    def __init__(self, chance):
        self.width, self.height = chance.choice(((2, 1), (3, 2), (4, 4), (5, 3)))
        tiles = list(range(self.width * self.height))
        chance.shuffle(tiles)
        receivers = tiles[: chance.randint(1, len(tiles) - 1)]
        self.runs = {tile: [] for tile in tiles if tile not in receivers}
        self.counts = dict.fromkeys(receivers, 0)
        self.starts = {tile: chance.randrange(200) for tile in tiles}
        self.paces = {tile: chance.choice((1, 1, 2, 5)) for tile in tiles}
        for run in self.runs.values():
            for _ in range(chance.randint(1, 4)):
                destination = chance.choice(receivers)
                length = chance.choice((1, 2, 5, 8, 30, 31))
                run.append(pack(length, destination % self.width, destination // self.width))
                run += [chance.randrange(1 << 32) for _ in range(length)]
                self.counts[destination] += length


def by_reference(traffic):
    """(words that crossed wires, words each tile has read, when each tile was done), by the plain model."""
    model = ReferenceChip(traffic.width, traffic.height)
    writers = {tile: Writer(run, traffic.starts[tile], traffic.paces[tile]) for tile, run in traffic.runs.items()}
    readers = {tile: Reader(count, traffic.starts[tile], traffic.paces[tile]) for tile, count in traffic.counts.items()}
    while any(writer.words for writer in writers.values()) or any(reader.count for reader in readers.values()):
        model.cycle(writers, readers)
        assert model.now < TOO_LONG
    ended = {tile: actor.ended for tile, actor in {**writers, **readers}.items()}
    return sorted(model.crossings), {tile: reader.words for tile, reader in readers.items()}, ended


def by_simulation(traffic, staging_words):
    script = Script(Chip(traffic.width, traffic.height, staging_words=staging_words, most_crossings=100_000))
    found = {}

    def sender(tile, run):
        yield advance(traffic.starts[tile])
        yield write(run, per_word=traffic.paces[tile])

    def receiver(tile, count):
        yield advance(traffic.starts[tile])
        found[tile] = (yield read(count, per_word=traffic.paces[tile])) if count else []

    for tile, run in traffic.runs.items():
        script.add(tile, sender(tile, run))
    for tile, count in traffic.counts.items():
        script.add(tile, receiver(tile, count))
    script.run()
    ended = {tile: script.clock(tile) for tile in (*traffic.runs, *traffic.counts)}
    return sorted(script.chip.recording.words()), found, ended


@pytest.mark.parametrize("case", range(25))
def test_random_traffic_crosses_the_same_wires_in_the_same_cycles(case, seed):
    traffic = Traffic(random.Random(f"{seed} {case}"))
    expected = by_reference(traffic)
    assert by_simulation(traffic, 1024) == expected


def test_runs_cut_into_short_pieces_take_the_same_cycles(rng):
    traffic = Traffic(rng)
    assert by_simulation(traffic, 7) == by_simulation(traffic, 1024)
