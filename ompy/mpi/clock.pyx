# cython: language_level=3
# cython: embedsignature=True, annotation_typing=False
"""Time (MPI-4.1, 9.6)."""

from posix.time cimport CLOCK_MONOTONIC, clock_getres, clock_gettime, timespec


def Wtime() -> float:
    """Seconds since some moment in the past; the clock never goes back and is the same on all of a host (MPI-4.1, 9.6)."""
    cdef timespec moment
    clock_gettime(CLOCK_MONOTONIC, &moment)
    return moment.tv_sec + moment.tv_nsec * 1e-9


def Wtick() -> float:
    """Resolution of `Wtime`, in seconds (MPI-4.1, 9.6)."""
    cdef timespec step
    clock_getres(CLOCK_MONOTONIC, &step)
    return step.tv_sec + step.tv_nsec * 1e-9
