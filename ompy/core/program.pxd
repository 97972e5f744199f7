# The bytes of one element of a datatype, as a small program of nested loops over equal blocks.
#
#     column of a 4 x 4 matrix of doubles       offset 0, length 8, count 4, stride 32          one step
#     8 x 8 x 8 corner of a 64^3 array of ints  round of 8 rows:  offset 0, length 32, count 8, stride 256
#                                               8 such rounds:    offset 0, count 8, stride 16384, body -> the step above
#
# A step with a body repeats the steps `bodies[first] .. bodies[first + body - 1]`; a step without repeats a block of
# bytes.  Offsets count from the start of the enclosing round, so that several steps may share one body.
# A program's memory follows what describes the type (numbers of blocks given one by one), never the number of elements.

cdef struct Step:
    Py_ssize_t offset                            # of the first block or round
    Py_ssize_t length                            # bytes of data in one block or round
    Py_ssize_t count                             # of blocks or rounds
    Py_ssize_t stride                            # from one block or round to the next
    Py_ssize_t start                             # bytes of data before this step in the enclosing round
    int first                                    # where the body begins in `bodies`
    int body                                     # steps in the body; 0: this step copies plain blocks


# Steps that need no allocation: most types are one block or one run of blocks.
cdef enum:
    OWN_STEPS = 1


cdef class Program:
    cdef Step *roots                             # what one element does, in order
    cdef Step *bodies
    cdef Step own_roots[OWN_STEPS]               # where `roots` points to as long as they suffice
    cdef int root_count, root_capacity
    cdef int body_count, body_capacity
    cdef readonly int depth                      # loops around the innermost blocks
    cdef readonly Py_ssize_t size                # bytes of data
    cdef dict imports                            # program whose bodies were copied -> where to; while building

    cdef int block(self, Py_ssize_t offset, Py_ssize_t length) except -1
    # `count` elements of another program, `stride` bytes apart, the first of them at `offset`.
    cdef int place(self, Program element, Py_ssize_t offset, Py_ssize_t count, Py_ssize_t stride) except -1
    # What was placed so far becomes `count` times that, `stride` bytes apart; it moves by `offset` bytes.
    cdef int repeat(self, Py_ssize_t count, Py_ssize_t stride) except -1
    cdef void shift(self, Py_ssize_t offset) noexcept
    cdef int append(self, const Step *step) except -1
    cdef int make_room(self, int needed) except -1
    cdef int add_body(self, const Step *steps, int count) except -1
    cdef int import_bodies(self, Program element) except -1
    # Nothing more will be added.
    cdef int finish(self) except -1
