"""The network once more, in plain Python, as slow and as plain as can be: what the simulation is compared with.

Everything in a cycle is decided by what the buffers held when it began; nothing is skipped, nothing is shared with the
compiled model but the rules.
"""

from __future__ import annotations

from collections import deque

PROCESSOR, NORTH, EAST, SOUTH, WEST = range(5)
OPPOSITE = {NORTH: SOUTH, SOUTH: NORTH, EAST: WEST, WEST: EAST}
STEP = {NORTH: (0, -1), EAST: (1, 0), SOUTH: (0, 1), WEST: (-1, 0)}
ROOM = 4


class Port:
    """One input of a router."""

    def __init__(self):
        self.words = deque()
        self.output = None
        self.left = 0


class Writer:
    """A tile that writes a run of words, one each `pace` cycles, from a cycle on."""

    def __init__(self, words, start, pace):
        self.words = deque(words)
        self.next = start
        self.pace = pace
        self.ended = start


class Reader:
    """A tile that reads so many words, one each `pace` cycles, from a cycle on."""

    def __init__(self, count, start, pace):
        self.count = count
        self.next = start
        self.pace = pace
        self.ended = start
        self.words = []


class ReferenceChip:
    def __init__(self, width, height):
        self.width, self.height = width, height
        self.ports = {(x, y, side): Port() for x in range(width) for y in range(height) for side in range(5)}
        self.owner = dict.fromkeys(self.ports)
        self.turn = dict.fromkeys(self.ports, 0)
        self.now = 0
        self.crossings = []

    def route(self, x, y, header):
        to_x, to_y = header & 31, header >> 5 & 31
        if to_x != x:
            return EAST if to_x > x else WEST
        if to_y != y:
            return SOUTH if to_y > y else NORTH
        return header >> 29

    def readable(self, x, y):
        side = self.owner[x, y, PROCESSOR]
        return side is not None and len(self.ports[x, y, side].words) > 0

    def send_on(self, x, y, side):
        port = self.ports[x, y, side]
        word, output = port.words.popleft(), port.output
        self.crossings.append((self.now, y * self.width + x, output, word))
        port.left -= 1
        if port.left == 0:
            self.owner[x, y, output] = None
            port.output = None
        return word, output

    def cycle(self, writers, readers):
        """One cycle; `writers` and `readers` are by tile number."""
        writing = [
            (tile % self.width, tile // self.width, writer)
            for tile, writer in writers.items()
            if writer.words
            and writer.next <= self.now
            and len(self.ports[tile % self.width, tile // self.width, PROCESSOR].words) < ROOM
        ]
        reading = [
            (tile % self.width, tile // self.width, reader)
            for tile, reader in readers.items()
            if reader.count and reader.next <= self.now and self.readable(tile % self.width, tile // self.width)
        ]
        full = {place for place, port in self.ports.items() if len(port.words) == ROOM}
        asking = {}
        for (x, y, side), port in self.ports.items():
            if port.words and port.output is None:
                output = self.route(x, y, port.words[0])
                if self.owner[x, y, output] is None:
                    asking.setdefault((x, y, output), []).append(side)
        moving = []
        for (x, y, output), sides in asking.items():
            side = min(sides, key=lambda side: (side - self.turn[x, y, output]) % 5)
            self.owner[x, y, output] = side
            self.turn[x, y, output] = (side + 1) % 5
            port = self.ports[x, y, side]
            port.output, port.left = output, (port.words[0] >> 24 & 31) + 1
            if output == PROCESSOR:
                moving.append((x, y, side))  # the header is consumed
        for (x, y, side), port in self.ports.items():
            if port.words and port.output is not None and port.output != PROCESSOR:
                step_x, step_y = STEP[port.output]
                beyond = (x + step_x, y + step_y, OPPOSITE[port.output])
                if beyond not in full:
                    moving.append((x, y, side))
        arriving = []
        for place in moving:
            x, y, _ = place
            word, output = self.send_on(*place)
            if output != PROCESSOR:
                step_x, step_y = STEP[output]
                beyond = (x + step_x, y + step_y, OPPOSITE[output])
                if beyond in self.ports:
                    arriving.append((beyond, word))
        for x, y, reader in reading:
            reader.words.append(self.send_on(x, y, self.owner[x, y, PROCESSOR])[0])
            reader.count -= 1
            reader.next = reader.ended = self.now + reader.pace
        for place, word in arriving:
            self.ports[place].words.append(word)
        for x, y, writer in writing:
            self.ports[x, y, PROCESSOR].words.append(writer.words.popleft())
            writer.next = writer.ended = self.now + writer.pace
        self.now += 1
