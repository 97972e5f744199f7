# cython: language_level=3, binding=False
"""Whose children orphans become (prctl(2), PR_SET_CHILD_SUBREAPER)."""

cdef extern from "<sys/prctl.h>" nogil:
    int prctl(int option, unsigned long argument)
    int PR_SET_CHILD_SUBREAPER


def adopt_orphans() -> bool:
    """Descendants whose parents end become this process's children, in whichever session they are; False if that can't be."""
    return prctl(PR_SET_CHILD_SUBREAPER, 1) == 0
