# One tile of the chip, as the program that runs on it sees it.  This is the face that MPI layers build on.
#
# HOW A PROCESS GETS ITS TILE
#   In the query of a component: `from ompy_raw.job import join; tile = join(context)`.  Rank r runs on tile r.  The chip is
#   as the parameters `machine_raw_width`, `machine_raw_height`, ... say; every rank of the job joins.  Without processes:
#   `Chip(width, height)` and `ompy_raw.script`.
#   At the end, and before it meets the other ranks by other means than the chip, a process calls `leave`.
#
# TIME
#   A tile has a clock of its own, in cycles.  The program's own work takes no time but what it charges: `charge(n)` adds
#   to the clock and costs one addition; the chip learns of it at the next call that touches the network.  Before the
#   program looks at anything that an interrupt may have changed, it settles (`settle`, or `advance`, which is both):
#   interrupts that fall into the charged cycles are then taken, each at its cycle.
#   What things cost is in `costs` (`costs.py` has the table, with sources): `tile.charge(tile.costs.load)`.
#
# $CGNO
#   `write` moves a run of words to the network: headers and payloads of any number of messages, one after another.  Each
#   word takes `per_word` cycles (at least 1), each message `per_message` more before its header.  A word waits while the
#   4-word output buffer is full; with interrupts enabled, the handler runs meanwhile, between any two words.
#   Nobody else may write between a header and the last of its words: a handler must not write.
#
# $CGNI
#   `read` moves a run of payload words (headers are gone) from the network to memory; it waits for each word, and takes
#   no interrupt.  `read_available` stops as soon as there is none.  Messages are never interleaved; a run may span them.
#   After the watchdog has drained words into memory, they come first, at the price of a load.
#
# GDN_AVAIL
#   While interrupts are enabled and words are at the input, the handler runs: in `settle`, `advance`, `write`, `wait`.
#   It runs with interrupts disabled, between the cost of entry and that of exit, charges its own work, and reads with
#   `read_available`.  What it leaves at the input makes it run again.
#
# WAITING
#   `wait(until)` does nothing until a word is at the input (True) or the clock is `until` (False).  With interrupts
#   enabled it returns True after the handler has run once: look again at what you wait for.
#   Waits inside the progress engine of a process: `begin_wait` posts the same and returns at once, `ready` (a
#   ProgressSource's `ready` function, `tile.state` its `ready_context`) says when it is over, `end_wait` takes the result;
#   `call_off` ends it before its time.  With `patient`, a wait that nothing can end is not a deadlock: another thread may
#   end it.
#
# ERRORS
#   Deadlock when no tile can ever move again, with the tiles and the full buffers; TileDied when another tile's process
#   is gone.  What a signal's handler raises passes, in a write at its end (the second one at once: the chip is then of no
#   more use).
#   See `errors.py`.
#
# The watchdog (thesis, 3.2.3): `watchdog` > 0 counts the cycles in which the tile is stalled in a write while unread
# words are at its input; at that number it drains the input into the tile's memory, and the write goes on.
from libc.stdint cimport int64_t, uint32_t

from ompy_raw.chip cimport FOREVER, Chip, TileState

# Cycles; `costs.py` explains each.
cdef struct Costs:
    int64_t issue
    int64_t load
    int64_t store
    int64_t branch
    int64_t mispredict
    int64_t cache_miss
    int64_t interrupt_entry
    int64_t interrupt_exit
    int64_t integer_multiply
    int64_t integer_divide
    int64_t float_add
    int64_t float_multiply
    int64_t float_divide

ctypedef int (*InterruptHandler)(Tile tile, void *context) except -1


cdef class Tile:
    cdef readonly Chip chip
    cdef readonly int number, x, y               # number = y * width + x
    cdef readonly int64_t clock                  # cycles, with what is charged and not yet settled
    cdef Costs costs
    cdef readonly bint enabled                   # GDN_AVAIL
    cdef readonly bint in_handler
    cdef readonly int64_t interrupts, watchdog_drains   # taken so far
    cdef TileState *state
    cdef InterruptHandler handler
    cdef void *handler_context
    cdef object python_handler
    cdef bint writing                            # in the middle of what belongs together; its interrupts too
    cdef object deferred                         # what a signal's handler has raised there
    cdef uint32_t *drained                       # by the watchdog, from `drained_first` on still to be read
    cdef Py_ssize_t drained_first, drained_count, drained_room

    # -- time
    cdef inline void charge(self, int64_t cycles) noexcept nogil:
        self.clock += cycles
    cpdef int settle(self) except -1
    cpdef int advance(self, int64_t cycles) except -1
    # A row of `costs.py` by name, for Python.
    cpdef int64_t cost(self, str name) except -1

    # -- $CGNO
    # `more`: of what belongs together follows; what a signal's handler raises waits for `raise_deferred`, at its end.
    cdef int write(self, const uint32_t *words, Py_ssize_t count, int per_word=*, int per_message=*, bint more=*) except -1
    cdef int raise_deferred(self) except -1
    # The header word for a message of `length` words to that tile.
    cdef uint32_t header_to(self, int destination, int length) noexcept
    # One message of 1 to 31 words (integers, or a buffer of uint32), header first.
    cpdef int send(self, int destination, object words) except -1

    # -- $CGNI
    cdef int read(self, uint32_t *words, Py_ssize_t count, int per_word=*) except -1
    cdef Py_ssize_t read_available(self, uint32_t *words, Py_ssize_t most, int per_word=*) except -1
    cpdef bint available(self) except -1         # is a word at the input now?  Settles first
    cpdef list receive(self, Py_ssize_t count)   # `read` for Python
    cpdef list receive_available(self, Py_ssize_t most)

    # -- GDN_AVAIL.  Enabling with words at the input runs the handler at the next settling.
    cdef void set_handler(self, InterruptHandler handler, void *context) noexcept
    cpdef int on_interrupt(self, object handler) except -1       # handler(tile), for Python
    cpdef int enable(self) except -1
    cpdef int disable(self) except -1

    # -- waiting
    cpdef bint wait(self, int64_t until=*) except -1      # FOREVER when not given
    cpdef bint begin_wait(self, int64_t until=*, bint patient=*) except -1   # True: over already
    cpdef bint end_wait(self) except -1           # sleeps until it is over
    cpdef int call_off(self) except -1

    # -- watchdog; 0 cycles: off
    cpdef int set_watchdog(self, int64_t cycles) except -1
    # Leaves the chip for good: what still arrives is thrown away, and time goes on without this tile.
    cpdef int leave(self) except -1
    # For those who sleep elsewhere: is a process gone that holds the chip back, or has it done so for too long?
    cpdef int look_at_peers(self) except -1

    # The posted activity is waited for; its outcome, with interrupts and the watchdog dealt with.
    cdef int finish(self) except -1
    cdef int interrupt(self) except -1
    cdef int drain(self) except -1
    cdef Py_ssize_t take_drained(self, uint32_t *words, Py_ssize_t most, int per_word) noexcept


# A ProgressSource's `ready`: the wait begun with `begin_wait` is over, or none is begun.
cdef bint ready(void *tile_state) noexcept nogil
