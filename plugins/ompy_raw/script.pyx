# cython: language_level=3, binding=False
# distutils: extra_compile_args=-Os
"""Programs of a chip in one process: generators that yield what their tile does next.

    from ompy_raw.chip import Chip
    from ompy_raw.script import Program, Script, read, send, wait

    def source():
        yield send(3, [1, 2, 3])                 # one message to tile 3

    def sink():
        words = yield read(3)                    # what a step yields is what the tile has read

    script = Script(Chip(4, 1))
    script.add(0, source())
    script.add(3, sink())
    script.run()
    script.clock(3)                              # the cycle in which tile 3's program ended

As in processes, time passes only while every program waits for the chip.
"""
from libc.stdint cimport int64_t

from ompy_raw.chip cimport (
    ADVANCING, DEADLOCKED, FOREVER, INTERRUPTED, PENDING, READING, READING_AVAILABLE, STALLED, WAITING, WRITING, Chip,
    TileState,
)

from ompy_raw.costs import COSTS
from ompy_raw.errors import Deadlock
from ompy_raw.header import pack


class Step:
    """What a tile does next: made by the functions below."""

    __slots__ = ("activity", "count", "per_message", "per_word", "until", "words")

    def __init__(self, activity, words=(), count=0, until=0, per_word=1, per_message=0):
        self.activity = activity
        self.words = words
        self.count = count
        self.until = until
        self.per_word = per_word
        self.per_message = per_message


class Send(Step):
    """A message: its header is made when the chip is known."""

    __slots__ = ("destination",)


class Drain(Step):
    """Words from the network, past those that lie in memory already."""

    __slots__ = ()


def send(destination, words, per_word=1):
    """One message of 1 to 31 words to a tile, header first."""
    step = Send(WRITING, tuple(words), per_word=per_word)
    step.destination = destination
    return step


def write(words, per_word=1, per_message=0):
    """Words as they are: headers and payloads."""
    return Step(WRITING, tuple(words), per_word=per_word, per_message=per_message)


def read(count, per_word=1):
    """Wait for so many words; the step's value is their list."""
    return Step(READING, count=count, per_word=per_word)


def read_available(most, per_word=1):
    """Words until there is none; the step's value is their list."""
    return Step(READING_AVAILABLE, count=most, per_word=per_word)


def wait(until=FOREVER):
    """Until a word is at the input (the step's value is True) or a cycle."""
    return Step(WAITING, until=until)


def advance(cycles):
    """Compute."""
    return Step(ADVANCING, until=cycles)


class Program:
    """A tile's program under way."""

    def __init__(self, tile, steps):
        self.tile = tile
        self.stack = [steps]                     # the program, and above it its interrupt handler
        self.step = None
        self.handler = None
        self.clock = 0
        self.done = 0
        self.interrupted = []                    # steps to be taken up again, each with the cycles that it still had ahead
        self.drained = []
        self.interrupts = 0


class Script:
    """The programs of one chip.

    Parameters:
        chip: a `Chip` of this process.
        watchdog: cycles that a tile may be stalled in a write, 0 for ever.
    """

    def __init__(self, Chip chip not None, watchdog=0):
        self.chip = chip
        self.programs = {}
        self.watchdog = watchdog

    def add(self, int tile, steps, handler=None):
        """A program; `handler()`, a generator too, runs when words are at the input while the program does not read."""
        cdef Chip chip = self.chip
        if not 0 <= tile < chip.tiles:
            raise ValueError(f"tile {tile}: the chip has tiles 0 to {chip.tiles - 1}")
        program = self.programs[tile] = Program(tile, steps)
        program.handler = handler
        chip.start(tile)
        chip.tile_states[tile].watchdog = self.watchdog
        program.clock = chip.tile_states[tile].clock

    def clock(self, int tile):
        """The cycle in which the tile's program ended, or has arrived."""
        return self.programs[tile].clock

    def interrupts(self, int tile):
        """Taken by the tile's program so far."""
        return self.programs[tile].interrupts

    def run(self):
        """Until every program has ended.  Raises Deadlock."""
        cdef Chip chip = self.chip
        waiting = []
        for program in self.programs.values():
            if self.resume(program, None):
                waiting.append(program)
        while waiting:
            over = [program for program in waiting if chip.tile_states[<int> program.tile].outcome != PENDING]
            if not over:
                raise Deadlock(chip.diagnosis())
            for program in over:
                if not self.take(program):
                    waiting.remove(program)

    def take(self, program):
        """What was posted is over: go on, or take an interrupt; False when the program has ended."""
        cdef Chip chip = self.chip
        cdef int tile = program.tile
        cdef TileState *state = &chip.tile_states[tile]
        cdef int outcome = state.outcome
        cdef int64_t ahead = max(0, state.next - state.clock)
        cdef Py_ssize_t index
        step = program.step
        if outcome == DEADLOCKED:
            raise Deadlock(chip.diagnosis())
        program.clock = state.clock
        if outcome == INTERRUPTED or outcome == STALLED:
            program.interrupted.append((step, state.done if step.activity == WRITING else 0, ahead))
            program.interrupts += 1
            program.clock += COSTS["interrupt_entry"]
            program.stack.append(program.handler() if outcome == INTERRUPTED else drain(program))
            return self.resume(program, None)
        if step.activity == WAITING:
            return self.resume(program, state.done != 0)
        if step.activity == WRITING:
            program.written += state.count
            if program.written < len(step.words):
                self.post(program, 0)
                return True
            return self.resume(program, None)
        if step.activity == ADVANCING:
            return self.resume(program, None)
        program.words += [chip.incoming(tile)[index] for index in range(state.done)]
        if state.done == state.count and len(program.words) < step.count:
            self.post(program, 0)
            return True
        return self.resume(program, program.words)

    def resume(self, program, value):
        """Let the program run to its next step and post that; False when it has ended."""
        cdef Chip chip = self.chip
        cdef int tile = program.tile
        while True:
            try:
                step = program.stack[-1].send(value)
            except StopIteration:
                program.stack.pop()
                if not program.stack:
                    chip.leave(tile)
                    return False
                # A handler has ended.
                program.clock += COSTS["interrupt_exit"]
                step, done, ahead = program.interrupted.pop()
                program.clock += ahead
                if step.activity == WAITING:
                    value = True
                    continue
                program.step = step
                self.post(program, done)
                return True
            break
        if isinstance(step, Send):
            width = chip.width
            step.words = (pack(len(step.words), step.destination % width, step.destination // width), *step.words)
        program.step = step
        program.written = 0
        program.words = []
        if isinstance(step, Drain):
            pass
        elif step.activity == READING or step.activity == READING_AVAILABLE:
            program.words, program.drained = program.drained[:step.count], program.drained[step.count:]
            program.clock += len(program.words) * (step.per_word + COSTS["load"])
            if len(program.words) == step.count:
                return self.resume(program, program.words)
        elif step.activity == WAITING and program.drained:
            return self.resume(program, True)
        elif step.activity == ADVANCING:
            program.clock += step.until
        elif step.activity == WRITING and chip.tile_states[tile].message_left == 0:
            program.clock += step.per_message
        self.post(program, 0)
        return True

    def post(self, program, Py_ssize_t done):
        cdef Chip chip = self.chip
        cdef int tile = program.tile
        cdef Py_ssize_t index, count
        step = program.step
        chip.tile_states[tile].enabled = program.handler is not None and len(program.stack) == 1
        if step.activity == ADVANCING:
            chip.begin_advance(tile, program.clock)
        elif step.activity == WAITING:
            chip.begin_wait(tile, program.clock, step.until, False)
        elif step.activity == WRITING:
            count = min(len(step.words) - program.written, chip.state.staging_words)
            if done == 0:
                for index in range(count):
                    chip.outgoing(tile)[index] = step.words[program.written + index]
                chip.check_headers(chip.outgoing(tile), count, chip.tile_states[tile].message_left)
            chip.begin_write(tile, program.clock, count, done, step.per_word, step.per_message)
        else:
            count = min(step.count - len(program.words), chip.state.staging_words)
            chip.begin_read(tile, program.clock, count, step.per_word, step.activity == READING_AVAILABLE)


def drain(program):
    """The watchdog's handler."""
    program.drained += yield Drain(READING_AVAILABLE, count=1 << 20, per_word=COSTS["issue"] + COSTS["store"])
