# The progress engine: how a rank waits.  Who is polled meanwhile: `ompy/core/progress_source.pxd`.
#
# One thread at a time polls, as the engine's owner (`ompy/core/owner.pxd`): whoever polls calls sources, receivers and
# callbacks, and nobody else is inside, though a source lets the GIL go.  A wait, which owns the engine for a round at a time,
#
#   1. spins with the GIL: polls every source, until `complete` or the spin is over;
#   2. spins without it: only *watches*, through the sources' `ready` functions (C, no Python), so that other Python
#      threads run; on work it takes the GIL back and goes to 1;
#   3. yields the core;
#   4. sleeps on the doorbell (a futex while every source can be watched as memory; poll(2) on the doorbell's pipe and
#      the sources' descriptors otherwise), with a back-stop time-out, and writes the job board.
#
# Signal handlers run between rounds, where nothing is half done.
#
# No wake-up is lost: the waiter arms the doorbell, fences, looks at every source again, then sleeps; a peer publishes,
# fences, and rings if the doorbell is armed.
from libc.stdint cimport int64_t

from ompy.core.doorbell cimport Bell
from ompy.core.request cimport Request

# One round over all sources; returns the number of events.  While anybody is inside the engine (this thread, from a
# callback, or another one) it returns 0 at once.
cdef int progress() except -1
# The same for who asks whether something has come, and will ask again if not: where ranks share cores, who asks in vain offers
# its own to those it waits for, which would have it after a time slice of some milliseconds only.
cdef int progress_or_yield() except -1

# Until the request is complete.  Raises what a signal handler raised; the request stays as it was.  Never inside the engine.
cdef int wait(Request request) except -1
# Until the word is not zero; `what` is the request shown on the job board, or None.
cdef int wait_for(int *word, Request what) except -1
# Until `done(context)` is true.
ctypedef bint (*DoneFunction)(void *context) except -1
cdef int wait_until(DoneFunction done, void *context, Request what) except -1

# Why there are no waits any more, once that is so.
cdef str over

# How many waits are in progress.  A source asked by one of them, rather than by a test, may block for a moment where nothing
# else can happen: simulated time passes only while somebody waits for it.
cdef int waiting

# Threads that sleep on what the sources' descriptors tell of.
cdef int asleep

# Waits that did not end at once, so far: two looks that differ were in different ones.
cdef unsigned long long waits

# -- for the thread that moves the engine while nobody waits (`ompy/core/progress_thread.pxd`)

cdef Bell aside                                  # rung, if armed, when nobody waits any more
# The back-stop, nanoseconds: what a source that can neither be watched nor polled, or a peer's death, waits at most for
# notice.  In a wait it begins short and grows, and once the wait is long, past this.
cdef long longest_sleep
# How long a wait watches before it offers its core to others, nanoseconds.
cdef int64_t watch_time
cdef bint watch(int *word, unsigned long long before, int64_t alone, int64_t yielding) except -1
cdef int sleep(int *word, unsigned long long before, long nanoseconds, bint awaits) except -1
cdef void wake_everybody() noexcept
