# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""One tile of the chip, as the program that runs on it sees it.  See `tile.pxd`."""
import os

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy

from ompy.core.atomic cimport acquire32
from ompy.core.doorbell cimport own
from ompy_raw.chip cimport (
    DEADLOCKED, DIED, DONE, FOREVER, INTERRUPTED, PENDING, RUNNING, Chip, TileState,
)
from ompy_raw.header cimport MOST_WORDS, make_header

from ompy_raw.costs import COSTS
from ompy_raw.errors import Deadlock, TileDied

# Words taken at a time when the watchdog drains the input.
cdef Py_ssize_t DRAIN_WORDS = 64


cdef bint ready(void *tile_state) noexcept nogil:
    cdef TileState *state = <TileState *> tile_state
    return acquire32(<const uint32_t *> &state.outcome) != PENDING or state.activity == RUNNING


cdef class Tile:
    """A program's face of one tile.

    Parameters:
        chip: which one.
        number: y * width + x.
    """

    def __init__(self, Chip chip not None, int number):
        if not 0 <= number < chip.tiles:
            raise ValueError(f"tile {number}: the chip of {chip.width} x {chip.height} has tiles 0 to {chip.tiles - 1}")
        self.chip = chip
        self.number = number
        self.x, self.y = number % chip.width, number // chip.width
        self.state = &chip.tile_states[number]
        self.costs = COSTS
        self.state.pid = os.getpid()
        chip.start(number)
        self.clock = self.state.clock

    def __dealloc__(self):
        free(self.drained)

    # -- time

    cpdef int settle(self) except -1:
        if self.enabled:
            self.chip.begin_advance(self.number, self.clock)
            while self.finish() != DONE:
                self.chip.begin_advance(self.number, self.clock)
        return 0

    cpdef int advance(self, int64_t cycles) except -1:
        self.clock += cycles
        return self.settle()

    cpdef int64_t cost(self, str name) except -1:
        return COSTS[name]

    cdef int finish(self) except -1:
        """Waits until what was posted is over; the clock is then its end.  After an interrupt or the watchdog it is to be
        posted again, from the clock on."""
        cdef TileState *state = self.state
        cdef int64_t ahead, done
        while acquire32(<const uint32_t *> &state.outcome) == PENDING:
            try:
                self.chip.sleep(self.number)
                PyErr_CheckSignals()
            except BaseException as error:
                if self.writing and self.deferred is None:
                    self.deferred = error        # half a message would block links for ever
                    continue
                self.chip.revoke(self.number)
                self.clock = max(self.clock, state.clock)
                raise
        if state.outcome == DEADLOCKED:
            if self.chip.on_deadlock is not None:
                self.chip.on_deadlock(self.chip)
            raise Deadlock(self.chip.diagnosis())
        if state.outcome == DIED:
            raise TileDied(f"the program of tile {self.chip.state.dead_tile} (process "
                           f"{self.chip.tile_states[self.chip.state.dead_tile].pid}) ended in cycle {state.clock} without "
                           "leaving the chip: no tile can go on")
        # What was charged before the activity and has not passed yet comes after the interrupt.
        ahead = max(0, state.next - state.clock)
        self.clock = state.clock
        cdef int outcome = state.outcome
        if outcome == DONE:
            return DONE
        done = state.done
        if outcome == INTERRUPTED:
            self.interrupt()
            self.clock += ahead
        else:
            self.drain()
        state.done = done                        # the handler has read with the same state
        return outcome

    # -- $CGNO

    cdef int write(self, const uint32_t *words, Py_ssize_t count, int per_word=1, int per_message=0,
                   bint more=False) except -1:
        cdef TileState *state = self.state
        cdef Py_ssize_t part
        self.chip.check_headers(words, count, state.message_left)
        self.writing = True
        while count:
            part = min(count, <Py_ssize_t> self.chip.state.staging_words)
            memcpy(self.chip.outgoing(self.number), words, part * sizeof(uint32_t))
            if state.message_left == 0:
                self.clock += per_message
            self.chip.begin_write(self.number, self.clock, part, 0, per_word, per_message)
            while self.finish() != DONE:
                self.chip.begin_write(self.number, self.clock, part, state.done, per_word, per_message)
            words += part
            count -= part
        return 0 if more else self.raise_deferred()

    cdef int raise_deferred(self) except -1:
        self.writing = False
        if self.deferred is not None:
            error, self.deferred = self.deferred, None
            raise error
        return 0

    cdef uint32_t header_to(self, int destination, int length) noexcept:
        return make_header(length, destination % self.chip.width, destination // self.chip.width)

    cpdef int send(self, int destination, object words) except -1:
        cdef uint32_t run[MOST_WORDS + 1]
        cdef int count = len(words)
        cdef int index
        if not 1 <= count <= MOST_WORDS:
            raise ValueError(f"a message has 1 to {MOST_WORDS} words, not {count}")
        if not 0 <= destination < self.chip.tiles:
            raise ValueError(f"destination {destination}: the chip has tiles 0 to {self.chip.tiles - 1}")
        run[0] = self.header_to(destination, count)
        for index in range(count):
            run[index + 1] = words[index]
        return self.write(run, count + 1)

    # -- $CGNI

    cdef int read(self, uint32_t *words, Py_ssize_t count, int per_word=1) except -1:
        cdef Py_ssize_t part = self.take_drained(words, count, per_word)
        while True:
            words += part
            count -= part
            if count == 0:
                return 0
            part = min(count, <Py_ssize_t> self.chip.state.staging_words)
            self.chip.begin_read(self.number, self.clock, part, per_word, False)
            while self.finish() != DONE:
                self.chip.begin_read(self.number, self.clock, part, per_word, False)
            memcpy(words, self.chip.incoming(self.number), part * sizeof(uint32_t))

    cdef Py_ssize_t read_available(self, uint32_t *words, Py_ssize_t most, int per_word=1) except -1:
        cdef Py_ssize_t found = self.take_drained(words, most, per_word)
        cdef Py_ssize_t part
        while found < most:
            part = min(most - found, <Py_ssize_t> self.chip.state.staging_words)
            self.chip.begin_read(self.number, self.clock, part, per_word, True)
            while self.finish() != DONE:
                self.chip.begin_read(self.number, self.clock, part, per_word, True)
            memcpy(words + found, self.chip.incoming(self.number), self.state.done * sizeof(uint32_t))
            found += self.state.done
            if self.state.done < part:
                break
        return found

    cdef Py_ssize_t take_drained(self, uint32_t *words, Py_ssize_t most, int per_word) noexcept:
        cdef Py_ssize_t part = min(most, self.drained_count - self.drained_first)
        if part > 0:
            memcpy(words, self.drained + self.drained_first, part * sizeof(uint32_t))
            self.drained_first += part
            self.clock += part * (per_word + self.costs.load)
            if self.drained_first == self.drained_count:
                self.drained_first = self.drained_count = 0
        return part

    cpdef bint available(self) except -1:
        if self.drained_count:
            return True
        self.chip.begin_wait(self.number, self.clock, self.clock, False)
        while self.finish() != DONE:
            self.chip.begin_wait(self.number, self.clock, self.clock, False)
        return self.state.done

    cpdef list receive(self, Py_ssize_t count):
        cdef uint32_t *words = <uint32_t *> malloc(max(count, 1) * sizeof(uint32_t))
        cdef Py_ssize_t index
        try:
            self.read(words, count)
            return [words[index] for index in range(count)]
        finally:
            free(words)

    cpdef list receive_available(self, Py_ssize_t most):
        cdef uint32_t *words = <uint32_t *> malloc(max(most, 1) * sizeof(uint32_t))
        cdef Py_ssize_t index, count
        try:
            count = self.read_available(words, most)
            return [words[index] for index in range(count)]
        finally:
            free(words)

    # -- GDN_AVAIL

    cdef void set_handler(self, InterruptHandler handler, void *context) noexcept:
        self.handler = handler
        self.handler_context = context

    cpdef int on_interrupt(self, object handler) except -1:
        self.python_handler = handler
        self.set_handler(call_python, NULL)
        return 0

    cpdef int enable(self) except -1:
        if self.handler == NULL:
            raise ValueError(f"tile {self.number}: interrupts need a handler first (set_handler, on_interrupt)")
        self.enabled = self.state.enabled = True
        return 0

    cpdef int disable(self) except -1:
        # Those of the cycles charged so far come first.
        self.settle()
        self.enabled = self.state.enabled = False
        return 0

    cdef int interrupt(self) except -1:
        self.interrupts += 1
        self.enabled = self.state.enabled = False
        self.in_handler = True
        self.clock += self.costs.interrupt_entry
        try:
            self.handler(self, self.handler_context)
        finally:
            self.in_handler = False
            self.clock += self.costs.interrupt_exit
            self.enabled = self.state.enabled = True
        return 0

    # -- waiting

    cpdef bint wait(self, int64_t until=FOREVER) except -1:
        if self.drained_count:
            return True
        self.chip.begin_wait(self.number, self.clock, until, False)
        return self.end_wait()

    cpdef bint begin_wait(self, int64_t until=FOREVER, bint patient=True) except -1:
        if self.drained_count:
            return True
        if self.state.doorbell[0] == 0:
            card = own().card()
            memcpy(self.state.doorbell, <char *> card, len(card))
        self.state.behind_doorbell = True
        self.chip.begin_wait(self.number, self.clock, until, patient)
        return self.state.outcome != PENDING

    cpdef bint end_wait(self) except -1:
        self.state.behind_doorbell = False
        if self.drained_count:
            return True
        return self.finish() == INTERRUPTED or self.state.done != 0

    cpdef int call_off(self) except -1:
        self.chip.revoke(self.number)
        self.end_wait()
        return 0

    # -- watchdog

    cpdef int set_watchdog(self, int64_t cycles) except -1:
        self.state.watchdog = cycles
        return 0

    cdef int drain(self) except -1:
        """The watchdog's handler: moves what is at the input to memory."""
        cdef Py_ssize_t part
        cdef bint enabled = self.enabled
        self.watchdog_drains += 1
        self.enabled = self.state.enabled = False
        self.clock += self.costs.interrupt_entry
        while True:
            if self.drained_room < self.drained_count + DRAIN_WORDS:
                self.drained_room = 2 * (self.drained_count + DRAIN_WORDS)
                self.drained = <uint32_t *> realloc(self.drained, self.drained_room * sizeof(uint32_t))
                if self.drained == NULL:
                    raise MemoryError(f"no memory for {self.drained_room} words drained from the network")
            self.chip.begin_read(self.number, self.clock, DRAIN_WORDS, self.costs.issue + self.costs.store, True)
            self.finish()
            part = self.state.done
            memcpy(self.drained + self.drained_count, self.chip.incoming(self.number), part * sizeof(uint32_t))
            self.drained_count += part
            if part < DRAIN_WORDS:
                break
        self.clock += self.costs.interrupt_exit
        self.enabled = self.state.enabled = enabled
        return 0

    # -- the end

    cpdef int leave(self) except -1:
        # A wait that is still posted was for nothing that the program wants: how long it took depends on the host alone.
        if self.state.behind_doorbell:
            self.state.behind_doorbell = False
            self.chip.revoke(self.number)
        self.settle()
        return self.chip.leave(self.number)

    cpdef int look_at_peers(self) except -1:
        self.chip.look_for_dead(self.number)
        return self.chip.pass_over(self.number)


cdef int call_python(Tile tile, void *context) except -1:
    tile.python_handler(tile)
    return 0
