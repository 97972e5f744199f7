# Memory that a transport has made ready for remote access, kept for the next transfer from the same place (the mpool and
# rcache of the Open MPI slides).
#
#     addresses ->        |-- a --|                   a, c, d are indexed: none lies within another, so that sorted by their
#                             |---- c ----|           begin they are sorted by their end as well, and whether a stretch is
#                                    |-- d --|        covered is answered by one bisection
#                               (b)                   b was in use when c, which covers it, was made: retired, it lives on
#                                                     until its last user is gone
#
# A registration that nobody uses is kept while `budget` allows, the longest unused is given up first.  Kept ones outlive
# the program's memory, so a transport may set a budget only if its registrations stay right when memory at the same
# address is unmapped and mapped anew, or if it hears of that (`forget`).


cdef class Registration:
    cdef readonly size_t address, size
    cdef readonly bytes handle
    cdef readonly int users
    cdef readonly bint retired              # no longer found, released with its last user


cdef class RegistrationCache:
    cdef object __weakref__
    cdef readonly size_t budget             # bytes of unused registrations that may be kept
    cdef readonly size_t unused             # bytes that are
    cdef readonly size_t hits, misses
    cdef object pin, unpin
    cdef list begins, indexed               # sorted, side by side
    cdef dict by_handle
    cdef object idle                        # unused ones, the longest unused first

    cpdef bytes hold(self, size_t address, size_t size)
    cpdef int release(self, bytes handle) except -1
    cpdef int forget(self, size_t address, size_t size) except -1
    cpdef int clear(self) except -1
    cdef int shrink(self, size_t budget) except -1
    cdef Registration covering(self, size_t address, size_t size)
    cdef int index(self, Registration registration) except -1
    cdef int retire(self, Registration registration) except -1
    cdef int drop(self, Registration registration) except -1


cpdef int forget(size_t address, size_t size) except -1
