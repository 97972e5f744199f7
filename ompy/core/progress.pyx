# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-O3
"""The progress engine: how a rank waits.

    spin     with the GIL         every source is polled                        `spin`, microseconds
    watch    without the GIL      `ready` functions only                        `watch`
    yield    without the GIL      the same, and the core is offered to others   `yielding`
    sleep    on the doorbell      until rung, a signal, or the back-stop

Where ranks outnumber cores the first three are short: whoever one waits for needs the core.
"""
from libc.stdint cimport INT64_MAX, int64_t, uint32_t

from ompy.core.board cimport BARRIER, NEIGHBOR_ALLTOALLW, clear_wait, note_wait
from ompy.core.clock cimport clock_now, rest_for
from ompy.core.communicator cimport Communicator
from ompy.core cimport progress_source as sources
from ompy.core cimport request as requests
from ompy.core.doorbell cimport (
    ARMED_FUTEX, ARMED_PIPE, Bell, Doorbell, after_publishing, arm, disown, futex_wait, own, ring_bell,
)
from ompy.core.listener cimport forget_listener, listen, listen_now_and_then
from ompy.core.owner cimport engine, is_inside
from ompy.core.proc cimport failures
from ompy.core.progress_source cimport (
    Descriptors, POLLIN, any_readable, any_ready, begin_watching, end_watching, entry_count, events_made, forget_all, gather,
    may_all_sleep, never, peek, peek_long, poll_all, poll_for, poll_in_turn, poll_once, pollfd,
)
from ompy.core.signals cimport check_signals, handle_signals
from ompy.core.trace cimport EVENT_WAITED, is_tracing, record, trace_clock

from ompy.core.errors import ERR_INTERN, ERR_OTHER, MPIError

cdef extern from "sched.h":
    int sched_yield() nogil

# Rounds between looks at the clock and at signals.
cdef int ROUNDS = 32
cdef int rounds = ROUNDS                         # so many now
# A wait that is kept busy by other events gives the GIL up this often, so that other threads have their turn.
cdef int64_t TURN = 1000000
# A sleep that is over at once, again and again, with no event: another thread is inside the engine and needs the GIL to get
# out, which it does not get from one that lets it go for a moment only.  Nanoseconds.
cdef int64_t REST = 50000
# Nanoseconds that `end` gives other threads.
cdef int64_t LONGEST_END = 1000000000
# A wait of this age, nanoseconds, is nobody's latency any more: it looks this many times less often whether a wake-up was lost,
# and uses next to no processor time, by which the launcher tells who hangs from who works.
cdef int64_t LONG_WAIT = 1000000000
cdef enum:
    LONG_WAIT_SLEEPS = 8
# Looks at memory between two at descriptors (a system call) and the clock.
cdef int LOOKS = 64
cdef int LOOKS_BETWEEN_YIELDS = 8
cdef int looks_between_yields = LOOKS_BETWEEN_YIELDS    # so many now
cdef bint shares_core = False                    # with other ranks, or with threads of transports
cdef int asked_in_vain = 0                       # tests since the last one that brought anything, or yielded
cdef int64_t spin_time, yield_time               # nanoseconds
cdef long shortest_sleep
cdef unsigned int timed = 0                      # the `changes` of the sources that these times are for

cdef unsigned long long sleeps = 0
cdef unsigned long long yields = 0
cdef Doorbell bell = None                        # from the first sleep on
asleep = 0                                       # threads for whom it is armed, or was until a ring
# Of several threads that would sleep in poll(2) one leads; the others sleep behind a bell that it rings when it wakes.
# If each had the pipe of the doorbell to itself, one could drain what was to wake another.
cdef bint led = False
cdef Bell behind
over = None


cdef int progress() except -1:
    listen_now_and_then()
    return poll_once()


cdef int progress_or_yield() except -1:
    global asked_in_vain, yields
    cdef int events = progress()
    if timed != sources.changes:
        set_times()
    if events or not shares_core:
        asked_in_vain = 0
        return events
    asked_in_vain += 1
    if asked_in_vain >= looks_between_yields:
        asked_in_vain = 0
        yields += 1
        with nogil:
            sched_yield()
    return 0


cdef int check_over() except -1:
    if over is not None:
        raise MPIError(ERR_OTHER, over)
    return 0


cdef int check_members(Request what) except -1:
    """A collective ends where a process of its communicator has failed: who waits for another one, which lives, may wait for
    what that one would have passed on."""
    if what is not None and BARRIER <= what.operation <= NEIGHBOR_ALLTOALLW and what.communicator is not None:
        failure = (<Communicator> what.communicator).failure()
        if failure is not None:
            raise failure
    return 0


# -- waiting

cdef int wait(Request request) except -1:
    return wait_for(<int *> &request.complete, request)


cdef int wait_for(int *word, Request what) except -1:
    if word[0]:
        return 0
    return wait_long(word, NULL, NULL, what)


cdef int wait_until(DoneFunction done, void *context, Request what) except -1:
    if done(context):
        return 0
    return wait_long(&never, done, context, what)


cdef inline bint is_done(int *word, DoneFunction done, void *context) except -1:
    return word[0] if done == NULL else done(context)


cdef int wait_long(int *word, DoneFunction done, void *context, Request what) except -1:
    """Until the word is not zero, or `done`, if there is one, says so."""
    global waiting, waits
    cdef long backstop = shortest_sleep
    cdef unsigned long long before, after
    cdef bint noted = False
    cdef int64_t begun, first = 0
    cdef int in_vain = 0, failures_seen = 0, failures_before = failures
    cdef int64_t waiting_since = trace_clock() if is_tracing() else 0
    check_over()
    if is_inside():
        raise MPIError(ERR_INTERN, "a wait inside the engine, from a callback, a receiver, or a finaliser (__del__) that the "
                                   "garbage collector runs there, would never end: nobody polls")
    waiting += 1
    waits += 1
    try:
        while not spin(word, done, context):
            # Counted before the last look at the goal: whatever another thread completes from here on changes it.
            before = events_made
            if is_done(word, done, context):
                break
            if watch(word, before, watch_time, yield_time):
                if engine.owner:
                    poll_in_turn()
                    check_signals()
                    check_over()
                continue
            while True:
                if not noted:
                    note_wait(what)
                    noted = True
                begun = clock_now()
                if first == 0:
                    first = begun
                sleep(word, before, backstop, True)
                in_vain = in_vain + 1 if clock_now() - begun < REST else 0
                if in_vain > 2:
                    with nogil:
                        rest_for(REST)
                    poll_in_turn()
                else:
                    poll_all()
                after = events_made
                if is_done(word, done, context):
                    return 0
                check_signals()
                check_over()
                if after != before:
                    in_vain = 0
                    backstop = shortest_sleep
                    break
                # It was the back-stop: not worth another spin.
                backstop = min(2 * backstop, longest_sleep * (1 if begun - first < LONG_WAIT else LONG_WAIT_SLEEPS))
                listen()
                if failures != failures_seen:
                    failures_seen = failures
                    check_members(what)
    finally:
        end_wait()
        if noted:
            clear_wait(failures != failures_before)
        if waiting_since and is_tracing():
            record_wait(what, waiting_since)
    return 0


cdef inline void end_wait() noexcept:
    global waiting
    waiting -= 1
    if waiting == 0:
        after_publishing()
        if aside.armed:
            ring_bell(&aside, -1)


cdef int record_wait(Request what, int64_t begun) except -1:
    if what is None:
        record(EVENT_WAITED, 0, NULL, 0, -1, -1, -1, 0, 0, begun)
    else:
        record(EVENT_WAITED, what.operation, <void *> what, 0, what.peer, -1, what.tag, 0, what.nbytes, begun)
    return 0


cdef bint spin(int *word, DoneFunction done, void *context) except -1:
    """Polls with the GIL held; True when the wait is over."""
    if timed != sources.changes:
        set_times()
    sources.goal = word
    try:
        return spin_towards(word, done, context)
    finally:
        sources.goal = &never                    # the word may be gone before the next wait


cdef inline bint spin_towards(int *word, DoneFunction done, void *context) except -1:
    cdef int64_t start = 0
    cdef int64_t last_event = 0
    cdef int64_t now
    cdef int events = 0
    cdef int _round
    while True:
        for _round in range(rounds):
            events += poll_once()
            if is_done(word, done, context):
                return True
        if engine.owner:
            return False                         # another thread is inside: let it have the GIL
        check_signals()
        now = clock_now()
        if start == 0:
            start = last_event = now
        elif events:
            last_event = now
        events = 0
        if now - last_event >= spin_time or now - start >= TURN:
            return False


cdef inline bint is_wanted(int *word, unsigned long long before) noexcept nogil:
    """Is there anything to take the GIL for?"""
    return peek(word) or peek_long(&events_made) != before or any_ready()


cdef bint watch(int *word, unsigned long long before, int64_t alone, int64_t yielding) except -1:
    """Watches without the GIL, at last offering the core to others; False when nothing came in time.

    Parameters:
        alone, yielding: nanoseconds, before and while it is offered.
    """
    cdef Descriptors descriptors
    cdef int64_t start
    cdef int64_t waited = 0
    cdef int _look
    cdef bint found = False
    cdef bint readable = False
    gather(&descriptors)
    requests.sleepers += 1
    begin_watching()
    with nogil:
        start = clock_now()
        while not found:
            for _look in range(LOOKS if waited < alone else looks_between_yields):
                if is_wanted(word, before):
                    found = True
                    break
            if not found:
                found = readable = descriptors.count > 0 and any_readable(descriptors.list, descriptors.count)
                waited = clock_now() - start
                if waited >= alone + yielding:
                    break
                if waited >= alone:
                    sched_yield()
        end_watching()
    requests.sleepers -= 1
    if readable:
        poll_in_turn()
    return found


cdef int sleep(int *word, unsigned long long before, long nanoseconds, bint awaits) except -1:
    """Sleeps until the doorbell rings, a descriptor is readable, a signal comes, or the time is over.

    Parameters:
        awaits: the end of something that another thread may bring about, who then wakes this one.
    """
    global sleeps, bell, led, asleep
    cdef Descriptors descriptors
    cdef uint32_t rung
    cdef bint awake = False
    if not may_all_sleep():
        with nogil:
            pass                                 # other threads of this process have a turn all the same
        return 0
    gather(&descriptors)
    if not descriptors.complete:
        nanoseconds = shortest_sleep
    try:
        bell = own()
    except (MPIError, OSError):
        with nogil:                              # no descriptor is left for one, and nobody can ring: look again soon
            poll_for(descriptors.list, descriptors.count, shortest_sleep)
        return 0
    cdef bint leads = descriptors.count > 0 and not led
    cdef bint follows = descriptors.count > 0 and led
    cdef Bell *here = &behind if follows else bell.bell
    cdef uint32_t how = ARMED_FUTEX if follows or not (led or leads) else ARMED_PIPE
    led |= leads
    sleeps += 1
    asleep += 1
    requests.sleepers += awaits
    begin_watching()
    with nogil:
        rung = arm(here, how)
        awake = is_wanted(word, before)
        end_watching()
        if awake:
            pass
        elif leads:
            descriptors.list[descriptors.count] = pollfd(bell.reader, POLLIN, 0)
            poll_for(descriptors.list, descriptors.count + 1, nanoseconds)
        else:
            futex_wait(here, rung, nanoseconds)
    asleep -= 1
    requests.sleepers -= awaits
    if leads:
        bell.drain()
        led = False
        ring_bell(&behind, -1)
    if asleep == 0:
        bell.disarm()
    return 0


cdef void wake_everybody() noexcept:
    ring_bell(&aside, -1)
    ring_bell(&behind, -1)
    if bell is not None:
        bell.ring()


cdef void wake_threads() noexcept:
    sources.events_made += 1
    ring_bell(&behind, -1)
    if bell is not None:
        bell.ring()


cdef int wait_and_drop_exceptions(Request request) except -1:
    """Until the request is complete; what signal handlers raise meanwhile is dropped."""
    while not request.complete:
        try:
            wait(request)
        except BaseException:
            pass
    return 0


requests.wake_sleepers = wake_threads
requests.wait_uninterrupted = wait_and_drop_exceptions


# -- settings, and the engine seen from Python

# Spin, watch, yield: microseconds.
FREE = (20.0, 200.0, 1000.0)
CROWDED = (0.0, 0.0, 100.0)
# A network transport's own thread needs the core, and then wakes a sleeper through a descriptor: whoever spins or yields
# meanwhile uses up its turn, and is kept waiting for it when the message is there.
HELPED = (0.0, 0.0, 0.0)

chosen_times = (-1.0, -1.0, -1.0)
is_crowded = False
helpers_crowd = False


def configure(
    *, bint crowded=False, bint crowded_by_helpers=False, double spin_us=-1, double watch_us=-1, double yield_us=-1,
    double backstop_ms=10
) -> None:
    """How long a wait spins, watches and yields before it sleeps; negative: a good value.

    Parameters:
        crowded: ranks outnumber cores on this host.
        crowded_by_helpers: they do when each has a thread of a network transport besides its own; matters once such a
            transport is polled.
        spin_us, watch_us, yield_us: microseconds.
        backstop_ms: longest sleep, milliseconds.
    """
    global longest_sleep, shortest_sleep, chosen_times, is_crowded, helpers_crowd
    chosen_times = (spin_us, watch_us, yield_us)
    is_crowded = crowded
    helpers_crowd = crowded or crowded_by_helpers
    longest_sleep = int(1e6 * backstop_ms)
    shortest_sleep = longest_sleep // 10
    set_times()


cdef int set_times() except -1:
    """The times for the sources that are polled now."""
    global spin_time, watch_time, yield_time, rounds, looks_between_yields, shares_core, timed
    cdef Descriptors descriptors
    timed = sources.changes
    gather(&descriptors)
    usual = HELPED if descriptors.helped and helpers_crowd else CROWDED if is_crowded else FREE
    shares_core = usual is not FREE
    # To ask a network takes system calls, which use up the core of the rank that has what is waited for.
    busy = shares_core and descriptors.count > 0
    rounds = 1 if busy else ROUNDS
    looks_between_yields = 1 if busy else LOOKS_BETWEEN_YIELDS
    spin_time, watch_time, yield_time = [
        int(1000 * (given if given >= 0 else default)) for given, default in zip(chosen_times, usual)
    ]
    return 0


configure()


def counters() -> dict[str, int]:
    """Events made, waits that did not end at once, sleeps taken and yields of tests in vain so far, and sources now polled."""
    return {"events": events_made, "sleeps": sleeps, "waits": waits, "yields": yields, "sources": entry_count}


def shutdown() -> None:
    """Gives back the doorbell, once no transport is left that uses it; a thread that still waits keeps it."""
    global bell
    if requests.sleepers == 0 and asleep == 0:
        bell = None
        disown()


def end(str reason) -> None:
    """Waits raise MPIError with this reason from now on, as nobody would end them; None: waits are good again.

    Returns when other threads' waits are over; after a second all the same, for one that lies below this call, in a signal
    handler, goes on only then.
    """
    global over
    cdef int64_t begun = clock_now()
    over = reason
    while over is not None and waiting and clock_now() - begun < LONGEST_END:
        wake_threads()
        with nogil:
            rest_for(REST)


def abandon() -> None:
    """In a child made by fork: the sources and what threads were doing here are the parent's.

    Nothing is told to the sources, which are kept: each of their words, the last one too, would reach the parent's peers.
    """
    global waiting, led, asleep
    forget_all()
    forget_listener()
    waiting = asleep = 0
    requests.sleepers = 0
    led = False


def progress_once() -> int:
    """One round over all sources; returns the number of events."""
    return poll_all()


def wait_request(Request request not None) -> None:
    """Returns when the request is complete; KeyboardInterrupt passes and leaves it as it was."""
    wait(request)


def is_readable(int descriptor) -> bool:
    """Now.  It keeps the GIL: inside the engine, nobody else gets on while its owner has to ask for the GIL again."""
    cdef pollfd asked = pollfd(descriptor, POLLIN, 0)
    return any_readable(&asked, 1)


def serve_until_readable(int descriptor, double seconds=-1) -> None:
    """Runs the engine until the descriptor is readable: who waits for others still serves those that wait for it.

    Parameters:
        seconds: the longest that it may take; negative for no limit.

    A message that is complete here may have to be sent again, or an acknowledgement answered.
    """
    cdef Descriptors descriptors
    cdef pollfd awaited = pollfd(descriptor, POLLIN, 0)
    cdef long nanoseconds = shortest_sleep
    cdef int64_t end = clock_now() + <int64_t> (1e9 * seconds) if seconds >= 0 else INT64_MAX
    global waiting
    waiting += 1
    try:
        while entry_count and not any_readable(&awaited, 1) and clock_now() < end:
            if poll_all():
                nanoseconds = shortest_sleep
            else:
                gather(&descriptors)
                descriptors.list[descriptors.count] = awaited
                with nogil:
                    poll_for(descriptors.list, descriptors.count + 1, nanoseconds)
                nanoseconds = min(2 * nanoseconds, longest_sleep)
                listen()
            handle_signals()
    finally:
        end_wait()
