# The chip: its network, and what each tile's processor does at the network's ports.
#
# Programs run in processes (one a tile), or all in one.  A program computes by itself and *posts* what it does at the
# network: write this run, read so many words, wait.  The chip carries the posted activities on, cycle by cycle, and stops
# as soon as one of them ends; then its program runs on, and posts the next.  Time passes only while every tile that is
# present has something posted: no program can act in a cycle that is already over.  So the same programs take the same
# cycles each time, whatever the order in which the host runs them.
#
#     tile 0   compute | write 32 words .................. | compute | wait
#     tile 1   wait ............................ | compute | read ........
#     chip     stands  | runs until a word is at tile 1    | stands  | ...
#
# Of several processes, whoever posts last runs the chip, under its lock, for all of them; the others sleep.
from libc.stdint cimport int32_t, int64_t, uint32_t

from ompy.core.segment cimport Segment
from ompy_raw.network cimport Network
from ompy_raw.recording cimport Recording

cdef enum Activity:
    ABSENT = 0                                   # the program is still to come: time stands
    RUNNING = 1                                  # the program computes: time stands
    ADVANCING = 2                                # until a cycle
    WAITING = 3                                  # until a word is at the input, or a cycle
    WRITING = 4
    READING = 5                                  # so many words
    READING_AVAILABLE = 6                        # words, until there is none
    LEFT = 7                                     # the program is over; what arrives is thrown away

cdef enum Outcome:
    PENDING = 0
    DONE = 1
    INTERRUPTED = 2                              # words are at the input, and interrupts are enabled
    WATCHDOG = 3                                 # stalled too long
    DEADLOCKED = 4
    DIED = 5                                     # another tile's process did

cdef struct TileState:
    int32_t activity, outcome
    int64_t clock                                # when the last activity ended
    int64_t next                                 # cycle of the next action of this one
    int64_t until
    int64_t count, done                          # words of the run
    int32_t per_word, per_message
    int32_t message_left                         # words still to be written of the message begun
    int32_t enabled, patient
    int64_t watchdog, stalled
    # -- its process
    int32_t pid
    uint32_t futex
    int32_t sleeping                             # on the futex
    int32_t in_engine                            # sleeps, if it does, behind the doorbell
    char doorbell[256]                           # a card for `RemoteDoorbell`, "" for none

cdef struct State:
    int32_t width, height
    int32_t staging_words
    int32_t running                              # tiles present or to come that have nothing posted
    int64_t now
    int64_t cycles_simulated                     # not jumped over
    int32_t deadlocked
    int32_t dead_tile                            # -1: none
    int32_t expected                             # programs that are to come
    int32_t joined

cdef class Chip:
    cdef readonly int width, height, tiles
    cdef readonly Network network
    cdef readonly Recording recording
    cdef State *state
    cdef TileState *tile_states
    cdef uint32_t *staging                       # two runs of `staging_words` a tile: to be written, and read
    cdef Segment segment                         # None: private memory
    cdef char *memory
    cdef void *lock
    cdef int32_t *engaged                        # tiles with something posted
    cdef list bells                              # RemoteDoorbell of each tile, as needed

    cdef inline uint32_t *outgoing(self, int tile) noexcept nogil:
        return self.staging + 2 * <Py_ssize_t> tile * self.state.staging_words
    cdef inline uint32_t *incoming(self, int tile) noexcept nogil:
        return self.staging + (2 * <Py_ssize_t> tile + 1) * self.state.staging_words

    # Posts what `tile` does next (fields of its state are filled in), and runs the chip if everybody else has.  Returns at
    # once in a chip of one process's; `outcome` tells whether it is over.
    cdef int post(self, int tile, Activity activity) except -1
    # Sleeps until the tile's activity is over, a signal is to be looked at, or a peer is to be.
    cdef int sleep(self, int tile) except -1
    # Takes back what is posted; the tile's clock is then the chip's.
    cdef int revoke(self, int tile) except -1
    cdef int run(self) noexcept nogil
    cpdef str diagnosis(self)
