# Recursive doubling and halving: the ranks, or rather a power of two of them, in pairs at distances 1, 2, 4, ...
#
# Where the ranks are no power of two, the first even ones hand what they have to the next rank, which stands for both
# (Rabenseifner's folding), and those that are left have new ranks:
#
#     ranks 0+1  2  3  4      fold 0 into 1; new ranks 0 1 2 3 are ranks 1 2 3 4
from ompy.core.communicator cimport Communicator
from ompy.core.operation cimport Operation
from ompy.core.schedule cimport Schedule
from ompy.core.typemap cimport Typemap

cdef struct Folding:
    int count                                    # of new ranks, a power of two
    int folded                                   # of the first 2 * folded ranks each second stands for two
    int own                                      # new rank of this one; -1 when the next rank stands for it

cdef Folding fold_ranks(Communicator comm)

cdef inline int old_rank(Folding *folding, int rank) noexcept:
    return 2 * rank + 1 if rank < folding.folded else rank + folding.folded

cdef inline int new_rank(Folding *folding, int rank) noexcept:
    return rank // 2 if rank < 2 * folding.folded else rank - folding.folded

# Whether it stands for the rank before it too.
cdef inline bint stands_for_two(Folding *folding, int rank) noexcept:
    return rank < 2 * folding.folded and rank & 1

# All of `count` elements, reduced in the order of ranks, to `result` on every rank; `own` may be `result`.
cdef int reduce_by_doubling(Schedule schedule, size_t own, size_t result, Py_ssize_t count, Typemap typemap,
                            Operation operation, Communicator comm) except -1

# Parts of a vector, one for each new rank: part i is elements starts[i] .. starts[i+1]-1.  Each one's part is reduced at its
# place in `gathered`, and the rest of `gathered` holds nothing of worth; ranks for which others stand have then given their
# data away.  For operations that commute.  `own` may be `gathered`.
cdef int reduce_halves(Schedule schedule, Folding *folding, size_t own, size_t gathered, Py_ssize_t *starts, Typemap typemap,
                       Operation operation, Communicator comm) except -1

# Each new rank's part to all new ranks.
cdef int share_parts(Schedule schedule, Folding *folding, size_t gathered, Py_ssize_t *starts, Typemap typemap) except -1

# Memory of the schedule's for `starts`.
cdef Py_ssize_t *make_starts(Schedule schedule, Folding *folding) except NULL
