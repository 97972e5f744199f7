# Which of several ways to do the same is the quickest between two processes, learned from what each has taken: it depends on
# how far their cores are from each other, on what their caches hold, and on what the other one does.
#
#     turn    1    2    3    4    5 ... 7    8    9 ... 63    64          b: the quickest so far
#     way     o    o    b    o    b     b    o    b     b     o           o: one of the others, each at its turn
cdef enum:
    WAYS = 3                                     # at most

cdef struct Pace:
    double took[WAYS]                            # nanoseconds a KiB, of late; 0: not known
    unsigned int turn, others


# Of the first `ways`, by what is known.
cdef inline int best_of(const Pace *pace, int ways) noexcept nogil:
    cdef int way, best = 0
    for way in range(1, ways):
        if pace.took[way] < pace.took[best]:
            best = way
    return best
# The way to go now.
cdef int quickest(Pace *pace, int ways) noexcept nogil
cdef void note_pace(Pace *pace, int way, size_t nbytes, double nanoseconds) noexcept nogil
