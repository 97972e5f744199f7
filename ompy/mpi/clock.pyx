# cython: language_level=3
# cython: embedsignature=True, annotation_typing=False, binding=False, auto_pickle=False
"""Time (MPI-4.1, 9.6)."""

from ompy.core.clock cimport now, resolution


def Wtime() -> float:
    """Seconds since some moment in the past; the clock never goes back and is the same on all of a host (MPI-4.1, 9.6).

    On a simulated machine: seconds of its time.
    """
    return now()


def Wtick() -> float:
    """Resolution of `Wtime`, in seconds (MPI-4.1, 9.6)."""
    return resolution()
