# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""Who hears what the launcher says unasked."""
from libc.stdint cimport int64_t

from ompy.core.clock cimport clock_now
from ompy.core.owner cimport enter, is_inside, leave, try_enter
from ompy.core.progress_source cimport look_at_all_peers

listener = None
cdef int64_t LISTENING = 50000000                # nanoseconds between two times
cdef int64_t next_listening = 0


cdef int listen() except -1:
    if listener is None or not try_enter():
        return 0
    try:
        listener()
    finally:
        leave()
    return 0


cdef int listen_in_time() except -1:
    global next_listening
    if is_inside() or clock_now() < next_listening:
        return 0
    next_listening = clock_now() + LISTENING
    listen()
    return look_at_all_peers()


cdef void forget_listener() noexcept:
    global listener
    listener = None


def set_listener(action) -> None:
    """A wait that lasts calls `action` now and then, inside the engine, to hear what the launcher says; None: nobody says
    anything."""
    global listener
    listener = action


def hear() -> None:
    """Call the listener, as soon as this thread may."""
    if listener is not None:
        enter()
        try:
            listener()
        finally:
            leave()
