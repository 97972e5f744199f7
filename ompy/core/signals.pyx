# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""When signal handlers run, and where what they raise goes.  See `signals.pxd`."""
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t

from ompy.core.clock cimport clock_now
from ompy.core.owner cimport NOBODY, allow_handlers, engine, forbid_handlers, this_thread

# The first exception.
cdef object kept = None
# Nanoseconds that one is kept by `keep_a_while`, at most.
cdef int64_t A_WHILE = 5_000_000_000


cdef int raise_first() except -1:
    global kept
    exception, kept = kept, None
    keeping.kept = False
    try:
        PyErr_CheckSignals()
    except BaseException:
        if exception is None:
            raise
    if exception is not None:
        raise exception
    return 0


cdef object exception_kept():
    check_signals()
    return kept if this_thread() == engine.main else None


cdef int handle_signals() except -1:
    global kept
    cdef Keeping before = keeping
    cdef bint forbidden
    if this_thread() != engine.main or not before.calls and engine.outside == engine.main:
        return PyErr_CheckSignals()
    first, kept = kept, None
    keeping.calls = keeping.unlimited = keeping.kept = 0
    forbidden = engine.outside == NOBODY
    if forbidden:
        allow_handlers()
    try:
        PyErr_CheckSignals()
    finally:
        if forbidden:
            forbid_handlers()
        keeping.calls, keeping.unlimited, keeping.kept = before.calls, before.unlimited, before.kept
        kept = first
    return 0


cdef int check_signals() except -1:
    global kept
    try:
        handle_signals()
    except BaseException as exception:
        if not keeping.calls or this_thread() != engine.main:
            raise
        if kept is None:
            kept = exception
            keeping.kept = True
            keeping.since = clock_now()
    if keeping.kept and this_thread() == engine.main and not keeping.unlimited \
            and (keeping.calls == 0 or clock_now() - keeping.since > A_WHILE):
        return raise_first()
    return 0


class KeptExceptions:
    """`keep_exceptions` and `raise_kept`, for calls in plain Python."""

    def __enter__(self):
        keep_exceptions()
        return self

    def __exit__(self, *problem):
        raise_kept()

    def first(self):
        """`exception_kept`."""
        return exception_kept()
