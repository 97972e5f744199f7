# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""When signal handlers run, and where what they raise goes.  See `signals.pxd`."""
from cpython.exc cimport PyErr_CheckSignals

from ompy.core.owner cimport allow_handlers, engine, forbid_handlers, this_thread

# The first exception.
cdef object kept = None


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
    if not before.calls or this_thread() != engine.main:
        return PyErr_CheckSignals()
    first, kept = kept, None
    keeping.calls = keeping.kept = 0
    allow_handlers()
    try:
        PyErr_CheckSignals()
    finally:
        forbid_handlers()
        keeping.calls, keeping.kept = before.calls, before.kept
        kept = first
    return 0


cdef int check_signals() except -1:
    global kept
    try:
        handle_signals()
    except BaseException as exception:
        if not keeping.calls:
            raise
        if kept is None:
            kept = exception
            keeping.kept = True
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
