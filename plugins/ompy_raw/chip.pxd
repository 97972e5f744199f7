# The chip: its network, and what each tile's processor does at the network's ports.
#
# Programs run in processes (one a tile), or all in one.  A program computes by itself and *posts* what it does at the
# network: write this run, read so many words, wait.  The chip carries the posted activities on, cycle by cycle, and stops
# as soon as one of them ends; then its program runs on, and posts the next.  Time passes only while every program that is
# present has something posted: none can act in a cycle that is already over.  So the same programs take the same cycles
# each time, whatever the order in which the host runs them.
#
#     tile 0   compute | write 32 words .................. | compute | wait
#     tile 1   wait ............................ | compute | read ........
#     chip     stands  | runs until a word is at tile 1    | stands  | ...
#
# With a limit to its patience the chip goes on without a program that computes for too long in the host's time; what that
# program posts then happens in the chip's present, and cycles depend on the host.
#
# Of several processes, whoever posts last runs the chip, under its lock, for all of them; the others sleep.
from libc.stdint cimport int32_t, int64_t, uint32_t

from ompy.core.doorbell cimport Bell
from ompy.core.segment cimport Segment
from ompy_raw.network cimport Network
from ompy_raw.recording cimport Recording

cdef enum:
    FOREVER = 0x7FFFFFFFFFFFFFFF

cdef enum:
    LEFT = 0                                     # no program, or it is over: what arrives is thrown away
    PASSED = 1                                   # it computes, and patience with it is over: time goes on without it
    EXPECTED = 2                                 # it is still to come: time stands
    RUNNING = 3                                  # it computes: time stands
    ADVANCING = 4                                # until a cycle
    WAITING = 5                                  # until a word is at the input, or a cycle
    WRITING = 6
    READING = 7                                  # so many words
    READING_AVAILABLE = 8                        # words, until there is none

cdef enum:
    PENDING = 0
    DONE = 1
    INTERRUPTED = 2                              # words are at the input, and interrupts are enabled
    STALLED = 3                                  # as long as the watchdog allows
    DEADLOCKED = 4
    DIED = 5                                     # another tile's process did

cdef struct TileState:
    int32_t activity, outcome
    int64_t clock                                # cycle in which the last activity ended
    int64_t next                                 # cycle of the next action of this one
    int64_t until
    int64_t count, done                          # words of the run
    int32_t per_word, per_message
    int32_t message_left                         # words still to be written of the message begun
    int32_t enabled                              # GDN_AVAIL
    int32_t patient
    int64_t watchdog, stalled                    # cycles
    int64_t since                                # nanoseconds of the host's time when it began to compute
    # -- its process
    int32_t pid
    Bell bell
    int32_t behind_doorbell                      # its progress engine waits
    char doorbell[240]                           # a card for `RemoteDoorbell`

cdef struct State:
    int32_t width, height
    int32_t staging_words
    int32_t running                              # programs that compute or are still to come
    int64_t now
    int64_t cycles_run                           # of them: not jumped over
    int32_t deadlocked
    int32_t dead_tile                            # -1: none
    int32_t holder                               # the tile whose program has the lock, or had it last
    int32_t expected, joined                     # programs in processes
    int64_t patience                             # nanoseconds with a program that computes, 0: without end

# What a tile's processor does in the cycle under way.
cdef struct Action:
    int32_t tile
    int32_t input                                # read from there, -1: write

cdef class Chip:
    cdef readonly int width, height, tiles
    cdef readonly Network network
    cdef readonly Recording recording
    cdef State *state
    cdef TileState *tile_states
    cdef uint32_t *staging                       # two runs of `staging_words` a tile: to be written, and read
    cdef Segment segment                         # None: memory of this process alone
    cdef char *memory
    cdef void *lock
    cdef int32_t *engaged                        # tiles with something posted
    cdef int32_t *ended                          # those whose activity ended in the last run
    cdef Action *actions
    cdef list bells                              # RemoteDoorbell of tiles, as needed
    cdef readonly int looks                      # at an activity, before sleeping until it is over
    cdef unsigned int sleeps                     # so far
    cdef public object on_deadlock               # called with the chip, or None

    cdef inline uint32_t *outgoing(self, int tile) noexcept nogil:
        return self.staging + 2 * <Py_ssize_t> tile * self.state.staging_words
    cdef inline uint32_t *incoming(self, int tile) noexcept nogil:
        return self.staging + (2 * <Py_ssize_t> tile + 1) * self.state.staging_words

    cdef size_t lay_out(self, int staging_words, char *memory, bint fresh) noexcept
    # A program begins on the tile: time stands until it posts.
    cdef int start(self, int tile) except -1
    # Programs on the first so many tiles are still to come.
    cdef int expect(self, int programs) noexcept
    # One of them is here; how many are by now.
    cdef int count_in(self, int tile) except -1
    cpdef bint all_left(self)
    # The program is over.
    cdef int leave(self, int tile) except -1

    # What a program does next, from cycle `at` on.  Returns at once; `outcome` of the tile's state tells whether it is over.
    cdef int begin_advance(self, int tile, int64_t at) except -1
    cdef int begin_wait(self, int tile, int64_t at, int64_t until, bint patient) except -1
    # `done` of the `count` words, at most `staging_words`, are already written; the run lies in `outgoing`.
    cdef int begin_write(self, int tile, int64_t at, Py_ssize_t count, Py_ssize_t done, int per_word, int per_message) except -1
    cdef int begin_read(self, int tile, int64_t at, Py_ssize_t count, int per_word, bint only_available) except -1
    cdef int post(self, int tile, int activity) except -1
    # A header that leads nowhere must not enter the network, where it would block a link for ever: ValueError.  The first
    # of the run's is at `first`.
    cdef int check_headers(self, const uint32_t *words, Py_ssize_t count, Py_ssize_t first) except -1
    # Takes back what is posted; the tile's clock is then the chip's.
    cdef int revoke(self, int tile) except -1

    # Sleeps until the tile's activity is over, or it is time to look at signals and peers.
    cdef int sleep(self, int tile) except -1
    # Looks at the activity for a moment.
    cdef bint is_soon_over(self, TileState *state) noexcept nogil
    cdef int look_for_dead(self, int tile) except -1
    cdef int bury(self, int tile) noexcept nogil
    # Time goes on without programs that have computed longer than patience allows; `tile` waits for them.
    cdef int pass_over(self, int tile) except -1
    cdef int take_lock(self, int tile) noexcept nogil
    cdef void release_lock(self) noexcept nogil

    # Carries on what is posted until something ends; returns how many activities did.
    cdef int run(self) noexcept nogil
    cdef int verdict(self, int tile) noexcept nogil
    cdef int act(self, int count) noexcept nogil
    cdef int64_t idle_until(self, int engaged) noexcept nogil
    cdef int give_up(self, int engaged) noexcept nogil
    cdef int end(self, int tile, int outcome) noexcept nogil
    cdef int run_and_wake(self, int tile) except -1
    cdef void sample(self) noexcept nogil
    cpdef str diagnosis(self)
