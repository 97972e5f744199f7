# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""The chip: its network, and what each tile's processor does at the network's ports.  See `chip.pxd`."""
import os
import select

from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

from ompy.core.atomic cimport acquire32, relax
from ompy.core.doorbell cimport ARMED_FUTEX, RemoteDoorbell, futex_wait, ring, ring_bell
from ompy.core.owner cimport enter
from ompy.core.owner cimport leave as leave_engine
from ompy_raw.header cimport MOST_TILES_ASIDE, SIDES, final_of, length_of, x_of, y_of
from ompy_raw.network cimport Router

from ompy_raw.diagnosis import deadlock

cdef extern from *:
    """
    #include <errno.h>
    #include <pthread.h>
    static void ompy_raw_make_lock(pthread_mutex_t *lock) {
        pthread_mutexattr_t kind;
        pthread_mutexattr_init(&kind);
        pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
        pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
        pthread_mutex_init(lock, &kind);
        pthread_mutexattr_destroy(&kind);
    }
    enum { TAKEN = 0, TAKEN_FROM_THE_DEAD = 1, HELD = 2 };
    static int ompy_raw_taken(int error, pthread_mutex_t *lock) {
        if (error == EOWNERDEAD) {
            pthread_mutex_consistent(lock);
            return TAKEN_FROM_THE_DEAD;
        }
        return error == EBUSY ? HELD : TAKEN;
    }
    static int ompy_raw_take_lock(pthread_mutex_t *lock) { return ompy_raw_taken(pthread_mutex_lock(lock), lock); }
    static int ompy_raw_try_lock(pthread_mutex_t *lock) { return ompy_raw_taken(pthread_mutex_trylock(lock), lock); }
    """
    ctypedef struct pthread_mutex_t:
        pass
    void make_lock "ompy_raw_make_lock"(pthread_mutex_t *lock) nogil
    int TAKEN, TAKEN_FROM_THE_DEAD, HELD
    int take_lock "ompy_raw_take_lock"(pthread_mutex_t *lock) nogil
    int try_lock "ompy_raw_try_lock"(pthread_mutex_t *lock) nogil
    void release_lock "pthread_mutex_unlock"(pthread_mutex_t *lock) nogil

# Nanoseconds of sleep between looks at signals and peers.
cdef long BETWEEN_LOOKS = 50_000_000
# Looks at an activity before sleeping until it is over: twice as many next time when one has seen the end, else half as many,
# so that they cost little where tiles outnumber processors.  Two programs that interrupt one another with each word take a
# tenth of the time for it that they take by sleeping.  Now and then it looks for as long as it may, whatever was before: two
# that something else has made sleep would sleep for ever, each too slow for the few looks of the other.
cdef enum:
    FEWEST_LOOKS = 8
    MOST_LOOKS = 2048
    SLEEPS_BETWEEN_LONG_LOOKS = 64
    LOOKS_AT_LOCK = 256                          # which is held for less time than the kernel takes to wake who waits


cdef inline int64_t host_time() noexcept nogil:
    cdef timespec moment
    clock_gettime(CLOCK_MONOTONIC, &moment)
    return moment.tv_sec * 1_000_000_000 + moment.tv_nsec


cdef inline size_t whole_lines(size_t size) noexcept nogil:
    return (size + 63) // 64 * 64


def check_size(int width, int height) -> None:
    """Raises ValueError for a chip that can't be: a header has 5 bits for x and for y."""
    if not (1 <= width <= MOST_TILES_ASIDE and 1 <= height <= MOST_TILES_ASIDE):
        raise ValueError(f"a chip has 1 to {MOST_TILES_ASIDE} tiles a side, not {width} x {height}")


cdef class Chip:
    """A chip of width x height tiles.

    Parameters:
        width, height: in tiles, 1 to 32 each.
        staging_words: of each run that a tile writes or reads in one piece; longer ones are cut, which takes no cycle.
        most_crossings, most_samples: room for what is recorded, see `Recording`; 0 and 0: nothing is.
    """

    def __init__(self, int width=4, int height=4, int staging_words=1024, int most_crossings=0, int most_samples=0,
                 bint private=True):
        check_size(width, height)
        self.width, self.height, self.tiles = width, height, width * height
        self.network = Network()
        if most_crossings or most_samples:
            self.recording = Recording(self.tiles, most_crossings, most_samples)
        self.network.recording = self.recording
        self.engaged = <int32_t *> malloc(self.tiles * sizeof(int32_t))
        self.ended = <int32_t *> malloc(self.tiles * sizeof(int32_t))
        self.actions = <Action *> malloc(self.tiles * sizeof(Action))
        self.bells = [None] * self.tiles
        self.looks = MOST_LOOKS
        if private:
            self.memory = <char *> calloc(1, self.lay_out(staging_words, NULL, False))
            if self.memory == NULL:
                raise MemoryError(f"no memory for a chip of {self.tiles} tiles")
            self.lay_out(staging_words, self.memory, True)

    def __dealloc__(self):
        free(self.engaged)
        free(self.ended)
        free(self.actions)
        free(self.memory)

    cdef size_t lay_out(self, int staging_words, char *memory, bint fresh) noexcept:
        cdef size_t position = 0
        cdef int tile
        self.state = <State *> (memory + position)
        position += whole_lines(sizeof(State))
        self.lock = memory + position
        position += whole_lines(sizeof(pthread_mutex_t))
        self.tile_states = <TileState *> (memory + position)
        position += whole_lines(self.tiles * sizeof(TileState))
        if memory != NULL and fresh:
            memset(memory, 0, position)
            self.state.width, self.state.height = self.width, self.height
            self.state.staging_words = staging_words
            self.state.dead_tile = -1
            make_lock(<pthread_mutex_t *> self.lock)
        position += self.network.lay_out(self.width, self.height, memory + position if memory != NULL else NULL, fresh)
        if memory != NULL and fresh:
            for tile in range(self.tiles):
                self.network.routers[tile].unattended = True
        if self.recording is not None:
            position += self.recording.lay_out(memory + position if memory != NULL else NULL, fresh)
        self.staging = <uint32_t *> (memory + position)
        position += 2 * <size_t> self.tiles * staging_words * sizeof(uint32_t)
        return position

    @property
    def now(self) -> int:
        """The cycle that the chip has reached."""
        return self.state.now

    @property
    def deadlocked(self) -> bool:
        """No tile can ever go on."""
        return self.state.deadlocked != 0

    @property
    def cycles_run(self) -> int:
        """Cycles that were simulated one by one; the others, in which nothing could happen, were jumped over."""
        return self.state.cycles_run

    def crossed(self, int tile, int side) -> int:
        """Words, headers included, that left the tile's router on that side so far."""
        return self.network.routers[tile].crossed[side]

    def buffered(self, int tile, int side) -> int:
        """Words in one of the tile's five input buffers; side PROCESSOR holds what its program has written."""
        return self.network.routers[tile].inputs[side].count

    def waits(self) -> list[tuple[int, int, int, int]]:
        """(tile, activity, words done, words in all) of every tile that has something posted."""
        cdef TileState *state
        cdef int tile
        found = []
        for tile in range(self.tiles):
            state = &self.tile_states[tile]
            if state.activity > RUNNING:
                found.append((tile, <int> state.activity, state.done, state.count))
        return found

    # -- programs come and go

    cdef int start(self, int tile) except -1:
        cdef TileState *state = &self.tile_states[tile]
        self.take_lock(tile)
        if state.activity == LEFT:
            self.state.running += 1
        state.activity = RUNNING
        state.clock = self.state.now
        state.since = host_time()
        self.network.routers[tile].unattended = False
        self.release_lock()
        return 0

    cdef int expect(self, int programs) noexcept:
        cdef int tile
        self.state.expected = self.state.running = programs
        for tile in range(programs):
            self.tile_states[tile].activity = EXPECTED
            self.network.routers[tile].unattended = False
        return 0

    cdef int count_in(self, int tile) except -1:
        self.take_lock(tile)
        self.state.joined += 1
        cdef int joined = self.state.joined
        self.release_lock()
        return joined

    cpdef bint all_left(self):
        cdef int tile
        for tile in range(self.tiles):
            if self.tile_states[tile].activity != LEFT:
                return False
        return True

    cdef int leave(self, int tile) except -1:
        cdef TileState *state = &self.tile_states[tile]
        self.take_lock(tile)
        if self.state.deadlocked or state.activity == LEFT:
            self.release_lock()                  # what a deadlock looks like stays to be seen
            return 0
        if EXPECTED <= state.activity <= RUNNING:
            self.state.running -= 1
        state.activity = LEFT
        self.network.routers[tile].unattended = True
        self.run_and_wake(tile)
        # Of tiles that this process plays besides this one, who rings next opens what it needs.
        for bell in self.bells:
            if bell is not None:
                (<RemoteDoorbell> bell).close()
        self.bells = [None] * self.tiles
        return 0

    # -- what they do

    cdef int begin_advance(self, int tile, int64_t at) except -1:
        cdef TileState *state = &self.tile_states[tile]
        state.next = state.until = at
        return self.post(tile, ADVANCING)

    cdef int begin_wait(self, int tile, int64_t at, int64_t until, bint patient) except -1:
        cdef TileState *state = &self.tile_states[tile]
        state.next = at
        state.until = until
        state.patient = patient
        return self.post(tile, WAITING)

    cdef int begin_write(self, int tile, int64_t at, Py_ssize_t count, Py_ssize_t done, int per_word,
                         int per_message) except -1:
        cdef TileState *state = &self.tile_states[tile]
        state.next = at
        state.count, state.done = count, done
        state.per_word, state.per_message = max(per_word, 1), per_message
        state.stalled = 0
        return self.post(tile, WRITING)

    cdef int begin_read(self, int tile, int64_t at, Py_ssize_t count, int per_word, bint only_available) except -1:
        cdef TileState *state = &self.tile_states[tile]
        state.next = at
        state.count, state.done = count, 0
        state.per_word = max(per_word, 1)
        return self.post(tile, READING_AVAILABLE if only_available else READING)

    cdef int post(self, int tile, int activity) except -1:
        cdef TileState *state = &self.tile_states[tile]
        self.take_lock(tile)
        state.outcome = PENDING
        if self.state.dead_tile >= 0 or self.state.deadlocked:
            state.outcome = DIED if self.state.dead_tile >= 0 else DEADLOCKED
            self.release_lock()
            return 0
        if state.activity == PASSED:
            state.next = max(state.next, self.state.now)
        else:
            self.state.running -= 1
        state.activity = activity
        return self.run_and_wake(tile)

    cdef int revoke(self, int tile) except -1:
        cdef TileState *state = &self.tile_states[tile]
        self.take_lock(tile)
        if state.outcome == PENDING and state.activity > RUNNING:
            self.end(tile, DONE)
            state.done = 0
        self.release_lock()
        return 0

    cdef int run_and_wake(self, int tile) except -1:
        """Runs the chip if nobody else computes, and wakes whose activity has ended; gives back the lock."""
        cdef int count = 0
        cdef int index, other
        cdef bint in_engine = False
        cdef TileState *state
        with nogil:
            if self.state.running == 0:
                count = self.run()
            for index in range(count):
                state = &self.tile_states[self.ended[index]]
                if self.ended[index] != tile:
                    ring_bell(&state.bell, -1)
                    in_engine |= state.behind_doorbell
        if not in_engine:
            self.release_lock()
            return 0
        others = [self.ended[index] for index in range(count)]
        self.release_lock()
        enter()                                  # a signal's handler must not run in the middle of a message
        try:
            for other in others:
                if other != tile and self.tile_states[other].behind_doorbell:
                    if self.bells[other] is None:
                        self.bells[other] = RemoteDoorbell(<bytes> self.tile_states[other].doorbell)
                    ring(<RemoteDoorbell> self.bells[other])
        finally:
            leave_engine()
        return 0

    # -- processes

    cdef int take_lock(self, int tile) noexcept nogil:
        cdef pthread_mutex_t *lock = <pthread_mutex_t *> self.lock
        cdef int left = LOOKS_AT_LOCK
        cdef int found = try_lock(lock)
        while found == HELD and left:
            relax()
            left -= 1
            found = try_lock(lock)
        if found == HELD:
            found = take_lock(lock)
        if found == TAKEN_FROM_THE_DEAD:
            self.bury(self.state.holder)         # in the middle of a cycle: the state is worth nothing now
        self.state.holder = tile
        return 0

    cdef int bury(self, int tile) noexcept nogil:
        """The tile's process is gone: ends everybody's activity."""
        cdef int other
        self.state.dead_tile = tile
        for other in range(self.tiles):
            if self.tile_states[other].activity > RUNNING:
                self.end(other, DIED)
                ring_bell(&self.tile_states[other].bell, -1)
        return 0

    cdef void release_lock(self) noexcept nogil:
        release_lock(<pthread_mutex_t *> self.lock)

    cdef int sleep(self, int tile) except -1:
        cdef TileState *state = &self.tile_states[tile]
        cdef uint32_t word
        cdef bint rung
        with nogil:
            if self.is_soon_over(state):
                return 0
            self.take_lock(tile)
            word = state.bell.word
            state.bell.armed = ARMED_FUTEX
            self.release_lock()
            if state.outcome == PENDING:
                futex_wait(&state.bell, word, min(BETWEEN_LOOKS, self.state.patience or BETWEEN_LOOKS))
            rung = state.bell.word != word
        if not rung and state.outcome == PENDING:
            self.look_for_dead(tile)
            self.pass_over(tile)
        return 0

    cdef bint is_soon_over(self, TileState *state) noexcept nogil:
        cdef int most = self.looks if self.sleeps % SLEEPS_BETWEEN_LONG_LOOKS else MOST_LOOKS
        cdef int left = most
        while left:
            if acquire32(<const uint32_t *> &state.outcome) != PENDING:
                self.looks = min(2 * most, MOST_LOOKS)
                return True
            relax()
            left -= 1
        self.looks = max(self.looks // 2, FEWEST_LOOKS)
        self.sleeps += 1
        return False

    cdef int pass_over(self, int tile) except -1:
        cdef int other
        cdef int64_t now
        if self.state.patience == 0 or self.state.running == 0:
            return 0
        now = host_time()
        self.take_lock(tile)
        for other in range(self.tiles):
            if self.tile_states[other].activity == RUNNING and now - self.tile_states[other].since > self.state.patience:
                self.tile_states[other].activity = PASSED
                self.state.running -= 1
        return self.run_and_wake(tile)

    cdef int look_for_dead(self, int tile) except -1:
        """Has a process that holds the chip back gone?"""
        cdef int other
        cdef TileState *state
        if self.segment is None:
            return 0
        for other in range(self.tiles):
            state = &self.tile_states[other]
            # One that has something posted is found out when that has ended.
            if PASSED <= state.activity <= RUNNING and state.pid and self.state.dead_tile < 0 and is_gone(state.pid):
                self.take_lock(tile)
                self.bury(other)
                self.release_lock()
                return 1
        return 0

    cdef int check_headers(self, const uint32_t *words, Py_ssize_t count, Py_ssize_t first) except -1:
        cdef Py_ssize_t place = first
        cdef uint32_t header
        cdef int x, y, final
        while place < count:
            header = words[place]
            x, y, final = x_of(header), y_of(header), final_of(header)
            if x >= self.width or y >= self.height or final >= SIDES or (
                self.network.beyond[SIDES * (y * self.width + x) + final] >= 0
            ):
                raise ValueError(
                    f"header {header:#010x} names tile ({x}, {y}), final route {final}: the chip has {self.width} x "
                    f"{self.height} tiles, and a final route leads into the processor or off the chip"
                )
            place += length_of(header) + 1
        return 0

    # -- time

    cdef int end(self, int tile, int outcome) noexcept nogil:
        cdef TileState *state = &self.tile_states[tile]
        state.activity = RUNNING
        state.outcome = outcome
        state.clock = self.state.now
        self.state.running += 1
        if self.state.patience:
            state.since = host_time()
        return 0

    cdef int verdict(self, int tile) noexcept nogil:
        """Whether and how the tile's activity ends before this cycle."""
        cdef TileState *state = &self.tile_states[tile]
        cdef int64_t now = self.state.now
        cdef bint available = self.network.readable(tile) >= 0
        cdef bint begun = now >= state.next
        cdef bint interrupted = state.enabled and available
        if state.activity == ADVANCING:
            if begun:
                return DONE
        elif state.activity == WAITING:
            if begun and not interrupted and (available or now >= state.until):
                state.done = available
                return DONE
        elif state.activity == WRITING:
            if begun and state.done == state.count:
                return DONE
            if interrupted and (begun or state.done == 0):
                return INTERRUPTED
            if available and 0 < state.watchdog <= state.stalled:
                return STALLED
            return PENDING
        elif begun and (state.done == state.count or state.activity == READING_AVAILABLE and not available):
            return DONE
        elif begun or state.done:
            return PENDING
        return INTERRUPTED if interrupted else PENDING

    cdef int run(self) noexcept nogil:
        cdef int engaged = 0
        cdef int ended, actions, index, tile, outcome, happened, input
        cdef int64_t later
        cdef TileState *state
        for tile in range(self.tiles):
            if self.tile_states[tile].activity > RUNNING:
                self.engaged[engaged] = tile
                engaged += 1
        if engaged == 0:
            return 0
        while True:
            ended = actions = 0
            for index in range(engaged):
                tile = self.engaged[index]
                outcome = self.verdict(tile)
                if outcome != PENDING:
                    self.end(tile, outcome)
                    self.ended[ended] = tile
                    ended += 1
            if ended:
                return ended
            if self.recording is not None and self.state.now >= self.recording.state.next_sample:
                self.sample()
            # What the buffers held when the cycle began decides: the processors' actions are carried out at its end.
            for index in range(engaged):
                tile = self.engaged[index]
                state = &self.tile_states[tile]
                if state.activity < WRITING or state.next > self.state.now or state.done == state.count:
                    continue
                if state.activity == WRITING:
                    if self.network.writable(tile):
                        self.actions[actions] = Action(tile, -1)
                        actions += 1
                        state.stalled = 0
                    elif self.network.readable(tile) >= 0:
                        state.stalled += 1
                    continue
                input = self.network.readable(tile)
                if input >= 0:
                    self.actions[actions] = Action(tile, SIDES * tile + input)
                    actions += 1
            happened = self.network.cycle(self.state.now) + self.act(actions)
            self.state.cycles_run += 1
            if happened:
                self.state.now += 1
                continue
            later = self.idle_until(engaged)
            if later == FOREVER:
                return self.give_up(engaged)
            for index in range(engaged):
                state = &self.tile_states[self.engaged[index]]
                if state.activity == WRITING and state.stalled:
                    state.stalled += later - self.state.now - 1
            self.state.now = later

    cdef int act(self, int count) noexcept nogil:
        """Carries out what the processors do in this cycle."""
        cdef int index
        cdef Action action
        cdef TileState *state
        cdef uint32_t word
        for index in range(count):
            action = self.actions[index]
            state = &self.tile_states[action.tile]
            state.next = self.state.now + state.per_word
            if action.input >= 0:
                self.incoming(action.tile)[state.done] = self.network.forward(self.state.now, action.input)
                state.done += 1
                continue
            word = self.outgoing(action.tile)[state.done]
            self.network.push(SIDES * action.tile, word)
            state.done += 1
            state.message_left = state.message_left - 1 if state.message_left else length_of(word)
            if state.message_left == 0 and state.done < state.count:
                state.next += state.per_message
        return count

    cdef int64_t idle_until(self, int engaged) noexcept nogil:
        """In this cycle nothing happened: the next one in which something may."""
        cdef int64_t soonest = FOREVER
        cdef int64_t then
        cdef int index
        cdef TileState *state
        for index in range(engaged):
            state = &self.tile_states[self.engaged[index]]
            then = FOREVER
            if state.next > self.state.now:
                then = state.next
            elif state.activity == WAITING:
                then = state.until
            elif state.activity == WRITING and state.watchdog and self.network.readable(self.engaged[index]) >= 0:
                then = self.state.now + 1 + max(0, state.watchdog - state.stalled)
            soonest = min(soonest, then)
        return soonest

    cdef int give_up(self, int engaged) noexcept nogil:
        """Nothing can ever happen: a deadlock, unless every tile waits with a patience that another thread may reward."""
        cdef bint patient = True
        cdef int index
        for index in range(self.tiles):
            if self.tile_states[index].activity == PASSED:
                return 0                         # it may still act
        for index in range(engaged):
            if self.tile_states[self.engaged[index]].activity != WAITING or not self.tile_states[self.engaged[index]].patient:
                patient = False
        if patient:
            return 0
        self.state.deadlocked = True
        for index in range(engaged):
            self.tile_states[self.engaged[index]].outcome = DEADLOCKED    # and its activity stays, for the diagnosis
            self.ended[index] = self.engaged[index]
        return engaged

    cdef void sample(self) noexcept nogil:
        cdef int number = self.recording.begin_sample(self.state.now)
        cdef int tile, side, place
        cdef Router *router
        for tile in range(self.tiles):
            router = &self.network.routers[tile]
            for side in range(SIDES):
                place = (number * self.tiles + tile) * SIDES + side
                self.recording.occupancy[place] = router.inputs[side].count
                self.recording.crossed[place] = router.crossed[side]

    cpdef str diagnosis(self):
        """Who waits for what, and which buffers are full."""
        return deadlock(self)


cdef bint is_gone(int pid) except -1:
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    except OSError:
        return False                             # no descriptor to be had: the next look may tell
    try:
        watched = select.poll()
        watched.register(descriptor, select.POLLIN)
        return bool(watched.poll(0))
    finally:
        os.close(descriptor)
