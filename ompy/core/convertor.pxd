# Moves the data of `count` elements of a typemap between user memory and a run of bytes, from any byte to any byte,
# without recursion and in any order of positions.
#
#     user memory   |##..##..##..|##..##..##..|        count = 2 elements of a vector
#     packed        |############|                     positions 0 .. total
#                        ^ position
#
# A convertor is set up once for a message and then asked for one segment after the other; a receiver whose fragments
# come out of order calls `seek` first.  For contiguous typemaps the PML takes memcpy instead and needs no convertor.
from ompy.core.program cimport Step
from ompy.core.typemap cimport Typemap

# One level of nesting: which of the steps of a round is being done, and how far it is.
cdef struct Frame:
    const Step *steps
    int count                                    # steps in the round
    int current                                  # index of the step being done
    Py_ssize_t done                              # blocks or rounds of it that are done
    char *base                                   # where the enclosing round begins

# Equal blocks of user memory.
cdef struct Run:
    char *place
    Py_ssize_t length, count, stride

# Levels that need no allocation.
cdef enum:
    FRAMES = 5


cdef class Convertor:
    cdef readonly Typemap typemap
    cdef readonly Py_ssize_t total               # bytes of data in all elements
    cdef readonly Py_ssize_t position            # next packed byte, 0 .. total

    cdef Step whole                              # all elements as one step: the outermost level
    cdef Frame *frames                           # innermost last; frames[0] holds `whole` alone
    cdef Frame own_frames[FRAMES]
    cdef int capacity
    cdef int level                               # of the innermost frame in use
    cdef Py_ssize_t partial                      # bytes of the current block that are done

    # Aim at `count` elements at `address`, position 0.  May be called again: convertors live in the requests' pools.
    cdef int prepare(self, char *address, Py_ssize_t count, Typemap typemap) except -1
    cdef int seek(self, Py_ssize_t position) except -1
    # The same to a position that is known to be there.
    cdef void go_to(self, Py_ssize_t position) noexcept nogil
    # Copy at most `limit` bytes from user memory to `target`; returns the number copied, 0 at the end.
    cdef Py_ssize_t pack(self, char *target, Py_ssize_t limit) except -1
    # Copy at most `length` bytes from `source` to user memory; returns the number used.
    cdef Py_ssize_t unpack(self, const char *source, Py_ssize_t length) except -1
    # How many of the next bytes lie in one piece in user memory, and where; 0 at the end.  The position stays.
    cdef Py_ssize_t stretch(self, char **place) noexcept nogil
    # The next bytes, at most `limit`, as far as they lie in equal blocks; returns how many, 0 at the end.  The position moves
    # behind them.
    cdef Py_ssize_t next_run(self, Py_ssize_t limit, Run *run) noexcept nogil
    # From here on user memory begins `distance` bytes further up.
    cdef void shift(self, Py_ssize_t distance) noexcept nogil

    cdef Py_ssize_t move(self, char *packed, Py_ssize_t limit, bint packing) noexcept nogil
    cdef void descend(self, Py_ssize_t position) noexcept nogil
    cdef inline void enter(self, Frame *frame, const Step *step) noexcept nogil
    cdef void advance(self) noexcept nogil


# Strided blocks into a run, and a run into strided blocks.
cdef void gather_blocks(char *packed, const char *blocks, Py_ssize_t length, Py_ssize_t count,
                        Py_ssize_t stride) noexcept nogil
cdef void scatter_blocks(const char *packed, char *blocks, Py_ssize_t length, Py_ssize_t count,
                         Py_ssize_t stride) noexcept nogil
# Whole-buffer forms for those who need no segments.
cdef Py_ssize_t pack_all(char *address, Py_ssize_t count, Typemap typemap, char *target) except -1
cdef Py_ssize_t unpack_all(const char *source, Py_ssize_t length, char *address, Py_ssize_t count, Typemap typemap) except -1
# Whether they have a byte in common; what lies in the gaps of one is none of its bytes.
cdef bint share_memory(size_t address, Py_ssize_t count, Typemap typemap,
                       size_t other_address, Py_ssize_t other_count, Typemap other_type) except -1
# Copies typed data to typed data of the same signature, within this process.
cdef int copy_typed(char *source, Py_ssize_t source_count, Typemap source_type,
                    char *target, Py_ssize_t target_count, Typemap target_type) except -1
