# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The progress engine: who is polled, and how a rank waits."""
from cpython.exc cimport PyErr_CheckSignals

cdef extern from "<sched.h>" nogil:
    int sched_yield()

cdef list sources = []
cdef bint polling = False


cdef class ProgressSource:
    cpdef int progress(self) except -1:
        raise NotImplementedError(f"{type(self).__name__}.progress")

    cpdef int descriptor(self) except -2:
        return -1

    cpdef bint may_sleep(self) except -1:
        return True


cpdef int register_source(ProgressSource source) except -1:
    if source not in sources:
        sources.append(source)
    return 0


cpdef int unregister_source(ProgressSource source) except -1:
    if source in sources:
        sources.remove(source)
    return 0


cdef int progress() except -1:
    global polling
    if polling:
        return 0
    polling = True
    cdef int events = 0
    cdef ProgressSource source
    try:
        for source in tuple(sources):
            events += source.progress()
    finally:
        polling = False
    return events


cdef int wait(Request request) except -1:
    while not request.complete:
        if progress() == 0:
            PyErr_CheckSignals()
            with nogil:
                sched_yield()
    return 0


cdef int wait_until(DoneFunction done, void *context, Request what) except -1:
    while not done(context):
        if progress() == 0:
            PyErr_CheckSignals()
            with nogil:
                sched_yield()
    return 0


cdef void wake_threads() noexcept:
    pass


def progress_once() -> int:
    """One round over all sources; returns the number of events."""
    return progress()


def wait_request(Request request not None) -> None:
    """Wait until the request is complete."""
    wait(request)
