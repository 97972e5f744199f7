# cython: language_level=3, binding=False
# distutils: extra_compile_args=-Os
"""Processes whose parent has ended: who takes care of them, and how they hear of it (prctl(2))."""

cdef extern from "<signal.h>" nogil:
    int SIGRTMIN
cdef extern from "<sys/prctl.h>" nogil:
    int prctl(int option, unsigned long argument)
    int PR_SET_CHILD_SUBREAPER
    int PR_SET_PDEATHSIG

# Tells a rank that its parent, mostly the launcher, has gone; not one that a program is likely to use.
ORPHANED = SIGRTMIN + 6


def adopt_orphans() -> bool:
    """Descendants whose parents end become this process's children, in whichever session they are; False if that can't be."""
    return prctl(PR_SET_CHILD_SUBREAPER, 1) == 0


def hear_of_parents_end() -> bool:
    """The signal ORPHANED comes when this process's parent ends, unless it has by then; False if that can't be."""
    return prctl(PR_SET_PDEATHSIG, ORPHANED) == 0
