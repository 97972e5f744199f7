# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""When signal handlers run, and where what they raise goes.  See `signals.pxd`."""
from cpython.exc cimport PyErr_CheckSignals

from ompy.core.owner cimport allow_handlers, engine, forbid_handlers, this_thread

# Calls of the main thread, in which alone handlers run, that keep what these raise, and the first exception.
cdef int keeping = 0
cdef object kept = None


cdef int keep_exceptions() except -1:
    global keeping
    if this_thread() == engine.main:
        keeping += 1
        forbid_handlers()
    return 0


cdef int raise_kept() except -1:
    global keeping, kept
    if this_thread() != engine.main:
        return 0
    keeping -= 1
    if keeping:
        return 0
    allow_handlers()
    exception, kept = kept, None
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
    global keeping, kept
    if not keeping or this_thread() != engine.main:
        return PyErr_CheckSignals()
    calls, first = keeping, kept
    keeping, kept = 0, None
    allow_handlers()
    try:
        PyErr_CheckSignals()
    finally:
        forbid_handlers()
        keeping, kept = calls, first
    return 0


cdef int check_signals() except -1:
    global kept
    try:
        handle_signals()
    except BaseException as exception:
        if not keeping:
            raise
        if kept is None:
            kept = exception
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
