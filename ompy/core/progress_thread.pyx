# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""A thread that moves the engine while the program does something else; pictured in `progress_thread.pxd`."""
import sys

from libc.stdint cimport int64_t, uint32_t

from ompy.core.doorbell cimport ARMED_FUTEX, arm, futex_wait
from ompy.core.owner cimport engine
from ompy.core.clock cimport clock_now, rest_for
from ompy.core.progress cimport aside, longest_sleep, sleep, wake_everybody, waiting, waits, watch, watch_time
from ompy.core.progress_source cimport events_made, peek, peek_long, poll_all

from ompy.core.errors import ERR_OTHER, MPIError

cdef extern from *:
    """
    #include <sched.h>
    #include <stdint.h>
    #include <string.h>
    #include <sys/prctl.h>
    #include <sys/syscall.h>
    #include <unistd.h>

    /* Else the kernel adds 50 us to each short sleep. */
    static void ompy_sleep_exactly(void) { prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0); }

    /* Who asks for short turns has the core soon where a thread computes that has just begun a long one (Linux from 6.12 on,
       sched(7); older ones take no notice).  It gets no more of the core for it. */
    #define OMPY_SHORT_TURN 100000
    static void ompy_take_short_turns(void) {
        /* The kernel's sched_attr, whose header does not go with the C library's. */
        struct {
            uint32_t size, policy;
            uint64_t flags;
            int32_t nice;
            uint32_t priority;
            uint64_t runtime, deadline, period;
        } attributes;
        memset(&attributes, 0, sizeof(attributes));
        if (syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) || attributes.policy != SCHED_OTHER)
            return;
        attributes.runtime = OMPY_SHORT_TURN;
        syscall(SYS_sched_setattr, 0, &attributes, 0);
    }
    """
    void sleep_exactly "ompy_sleep_exactly"() noexcept nogil
    void take_short_turns "ompy_take_short_turns"() noexcept nogil

# Nanoseconds.
cdef int64_t FIRST_PAUSE = 50_000
cdef int64_t LONGEST_PAUSE = 400_000
cdef int64_t LONGEST_ASIDE = 1_000_000_000       # in one go
cdef int64_t LINGERING = 50_000                  # awake after what was served


cdef class ProgressThread:
    """Runs from its making to `stop`."""

    def __init__(self):
        from threading import Thread

        self.thread = Thread(target=self.run, name="ompy-progress", daemon=True)
        self.thread.start()

    def stop(self):
        """End it; returns when it has ended."""
        self.stopping = True
        while self.thread.is_alive():
            wake_everybody()
            self.thread.join(0.01)

    def run(self):
        sleep_exactly()
        take_short_turns()
        while True:
            with nogil:
                self.stand_aside()
            if self.stopping:
                return
            try:
                self.serve()
            except Exception:
                # What a receiver or a callback raises has no call of the program's to come out of.
                sys.excepthook(*sys.exc_info())

    cdef void stand_aside(self) noexcept nogil:
        """Until the program has not waited for a while."""
        cdef int64_t pause = FIRST_PAUSE
        cdef unsigned long long before = peek_long(&waits)
        cdef uint32_t rung
        if before == self.waits_seen and not peek(&waiting):
            return
        while not peek(&self.stopping):
            rest_for(pause)
            self.waits_seen = peek_long(&waits)
            if self.waits_seen != before or pause < LONGEST_PAUSE and peek(&waiting):
                pause = min(2 * pause, LONGEST_PAUSE)
            elif peek(&waiting):
                rung = arm(&aside, ARMED_FUTEX)
                if peek(&waiting) and not peek(&self.stopping):
                    futex_wait(&aside, rung, LONGEST_ASIDE)
                pause = FIRST_PAUSE
            else:
                return
            before = self.waits_seen

    cdef int serve(self) except -1:
        """Poll, or sleep until there is something to poll for."""
        cdef unsigned long long before = events_made
        cdef int64_t begun
        if engine.owner == 0:
            if poll_all():
                self.served += 1
                self.expecting = True
                return 0
            if self.expecting:
                self.expecting = False
                watch(&self.stopping, before, min(watch_time, LINGERING), 0)
                return 0
            begun = clock_now()
            sleep(&self.stopping, before, longest_sleep, False)
            if clock_now() - begun > FIRST_PAUSE or events_made != before:
                return 0
        # Another thread is inside the engine, or something keeps this one awake that it can do nothing about.
        with nogil:
            rest_for(FIRST_PAUSE)
        return 0


cdef ProgressThread employed = None
cdef int employers = 0


cpdef int employ() except -1:
    """Have a thread move the engine, until `dismiss` was called as often.  Errors: ERR_OTHER where there can be none."""
    global employed, employers
    if employed is None:
        try:
            employed = ProgressThread()
        except RuntimeError as error:
            raise MPIError(ERR_OTHER, f"no thread for asynchronous progress can be started ({error}; ulimit -u)") from None
    employers += 1
    return 0


cpdef int dismiss() except -1:
    """The counterpart of `employ`; nothing after `retire`."""
    global employers
    if employers == 0:
        return 0
    employers -= 1
    return 0 if employers else retire()


cpdef int retire() except -1:
    """There is no thread any more."""
    global employed, employers
    cdef ProgressThread thread = employed
    employed = None
    employers = 0
    if thread is not None:
        thread.stop()
    return 0


cpdef bint is_employed() noexcept:
    """Whether there is one."""
    return employed is not None
