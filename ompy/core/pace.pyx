# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""Which of several ways is the quickest.  See `pace.pxd`."""
cdef enum:
    TURNS = 64                                   # of which one goes a way that seems slower
    WEIGHT = 4                                   # of the last time among those before
    # How much longer than before a time may seem: what was interrupted says little.
    LARGEST_STEP = 2


cdef int quickest(Pace *pace, int ways) noexcept nogil:
    cdef int best = best_of(pace, ways)
    pace.turn += 1
    # At first more often: memory that is touched for the first time says little.
    if pace.turn % TURNS and pace.turn & (pace.turn - 1):
        return best
    pace.others += 1
    return (best + 1 + pace.others % (ways - 1)) % ways


cdef void note_pace(Pace *pace, int way, size_t nbytes, double nanoseconds) noexcept nogil:
    cdef double took = nanoseconds * 1024 / nbytes
    cdef int other
    cdef bint best = pace.took[way] > 0
    for other in range(WAYS):
        if 0 < pace.took[other] < pace.took[way]:
            best = False
    # What seemed slower, or was never tried, is as quick as it was just now.
    if best:
        pace.took[way] += (min(took, LARGEST_STEP * pace.took[way]) - pace.took[way]) / WEIGHT
    else:
        pace.took[way] = took
