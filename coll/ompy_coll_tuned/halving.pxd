# Recursive doubling and halving: the ranks, or rather a power of two of them, in pairs at distances 1, 2, 4, ...
#
# Where the ranks are no power of two, the first even ones hand what they have to the next rank, which takes a seat for both
# (Rabenseifner's folding):
#
#     ranks 0+1  2  3  4      fold 0 into 1; seats 0 1 2 3 are ranks 1 2 3 4
from ompy.core.communicator cimport Communicator
from ompy.core.operation cimport Operation
from ompy.core.schedule cimport Schedule
from ompy.core.typemap cimport Typemap

cdef struct Seats:
    int count                                    # a power of two
    int folded                                   # the first 2 * folded ranks share seats, two a seat
    int own                                      # this rank's; -1 when the next rank has it

cdef Seats take_seats(Communicator comm)

cdef inline int seat_rank(Seats *seats, int seat) noexcept:
    return 2 * seat + 1 if seat < seats.folded else seat + seats.folded

cdef inline int seat_of(Seats *seats, int rank) noexcept:
    return rank // 2 if rank < 2 * seats.folded else rank - seats.folded

# Whether a rank has taken the seat for the rank before it too.
cdef inline bint seats_two(Seats *seats, int rank) noexcept:
    return rank < 2 * seats.folded and rank & 1

# All of `count` elements, reduced in the order of ranks, to `result` on every rank; `own` may be `result`.
cdef int reduce_by_doubling(Schedule schedule, size_t own, size_t result, Py_ssize_t count, Typemap typemap,
                            Operation operation, Communicator comm) except -1

# Parts of a vector, one a seat: part i is elements starts[i] .. starts[i+1]-1.  Each seat's part is reduced at its place in
# `gathered`, and the rest of `gathered` holds nothing of worth; ranks without a seat have then given their data away.  For
# operations that commute.  `own` may be `gathered`.
cdef int reduce_halves(Schedule schedule, Seats *seats, size_t own, size_t gathered, Py_ssize_t *starts, Typemap typemap,
                       Operation operation, Communicator comm) except -1

# Each seat's part to all seats.
cdef int share_parts(Schedule schedule, Seats *seats, size_t gathered, Py_ssize_t *starts, Typemap typemap) except -1

# Memory of the schedule's for `starts`.
cdef Py_ssize_t *make_starts(Schedule schedule, Seats *seats) except NULL
